"""Counting the records of a unit: batch headers tell, and only what they cannot tell is decoded.

That is a batch which a bound cuts, sets of magic 0 and 1, whose headers do not say how many records they
hold, and batches that reading would refuse.
Invariant: where every batch is sound, the count is the number of records that reading the unit gives. A
batch whose CRC is wrong counts as its header says, for nobody looks at its bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka._core.read_committed import SKIP, WHOLE
from txnkafka.errors import CorruptRecordError
from txnkafka.logdir.read import locating, unit_batches
from txnkafka.record.batch_header import ATTRIBUTE_CONTROL, MAGIC_2

if TYPE_CHECKING:
    from txnkafka.logdir.plan import ReadUnit
    from txnkafka.record.chunk import ChunkDecoder, OnCorrupt, SelectedBatches
    from txnkafka.storage.formats.segment_reader import LogFileReader

__all__ = ["count_unit"]


def count_unit(
    segment: LogFileReader, unit: ReadUnit, decoder: ChunkDecoder, on_corrupt: OnCorrupt | None = None
) -> int:
    """How many records ``read_unit`` gives. Raises CorruptRecordError where a batch that must be decoded is
    damaged, or hands it to ``on_corrupt`` and leaves the batch out."""
    handler = locating(unit, on_corrupt)
    total = 0
    for batches in unit_batches(segment, unit, on_corrupt):
        total += _take_whole(batches)
        try:
            total += sum(len(columns) for columns in decoder.chunks(batches, handler))
        except CorruptRecordError as error:
            error.locate(file=unit.path, topic=unit.topic, partition=unit.partition)
            raise
    return total


def _take_whole(batches: SelectedBatches) -> int:
    """Records of the batches that headers tell of, which are then no longer selected."""
    import numpy as np

    index = batches.index
    selection = np.frombuffer(batches.selection, np.uint8)
    # a control batch is selected when its CRC is wrong
    data = np.asarray(index.attributes) & ATTRIBUTE_CONTROL == 0
    told = (selection == WHOLE) & (np.asarray(index.magic) == MAGIC_2) & data
    selection[told] = SKIP
    return int(np.asarray(index.record_count)[told].sum(dtype=np.int64))

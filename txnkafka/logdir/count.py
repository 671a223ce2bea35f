"""Counts the records of a unit by batch headers, and decodes only batches whose headers do not suffice.

Decoded batches: batches cut by a bound, sets of magic 0 and 1, whose headers lack the number of records, and
batches that reading would refuse. Invariant: if every batch is sound, the count equals the number of records
that reading the unit returns. A batch with a wrong CRC counts by its header, because its bytes are not read.
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


def count_unit(
    segment: LogFileReader, unit: ReadUnit, decoder: ChunkDecoder, on_corrupt: OnCorrupt | None = None
) -> int:
    """Return the number of records that ``read_unit`` yields. If a batch that must be decoded is damaged,
    raises CorruptRecordError, or passes the error to ``on_corrupt`` and leaves the batch out."""
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
    """Count the records of the batches whose headers suffice, and deselect these batches."""
    import numpy as np

    index = batches.index
    selection = np.frombuffer(batches.selection, np.uint8)
    # a control batch with a wrong CRC is selected
    data = np.asarray(index.attributes) & ATTRIBUTE_CONTROL == 0
    counted = (selection == WHOLE) & (np.asarray(index.magic) == MAGIC_2) & data
    selection[counted] = SKIP
    return int(np.asarray(index.record_count)[counted].sum(dtype=np.int64))

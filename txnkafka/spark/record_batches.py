"""Decodes bytes with record batches to Arrow values, for the functions of ``functions.py``.

pyarrow is imported at once: only the functions load this module. A value has the format of a segment: batches
one after another, of any format and codec, possibly followed by zeros. Values are independent; the offsets
are those of the batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from txnkafka._core.columns import RecordColumns
from txnkafka._core.read_committed import HiddenRange, HiddenRanges, select
from txnkafka._core.scan import BatchIndex, scan
from txnkafka.errors import CorruptRecordError
from txnkafka.model import TopicPartition
from txnkafka.record import ControlRecordType
from txnkafka.record.arrow import arrow_schema, to_arrow
from txnkafka.record.batch_header import ATTRIBUTE_CONTROL, ATTRIBUTE_TRANSACTIONAL, MAGIC_2
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches
from txnkafka.record.crc import valid_crcs
from txnkafka.spark.read import without_empty_headers

SEQUENCE_MASK = (1 << 31) - 1  # sequences wrap to 0
NOWHERE = TopicPartition("", 0)  # the columns contain neither topic nor partition
OF_RECORD = arrow_schema(
    ("offset", "timestamp", "timestampType", "key", "value", "headers"), timestamp_unit="us"
)
OF_BATCH = pa.schema(
    [
        ("leaderEpoch", pa.int32()),
        ("producerId", pa.int64()),
        ("producerEpoch", pa.int32()),
        ("sequence", pa.int32()),
        ("isTransactional", pa.bool_()),
    ]
)
RECORD_TYPE = pa.struct([*OF_RECORD, *OF_BATCH])
NO_END = (1 << 63) - 1
MAX_VALUE_BYTES = 1 << 30  # a row of Spark and a column of Arrow end at 2 GiB
DONE = ("end", "zeros")


class RecordBatchesDecoder:
    """Decodes values. Only one thread at a time may use it."""

    def __init__(self) -> None:
        self._decoder = ChunkDecoder(headers=True)

    def records(
        self, content: memoryview, aborted: Iterable[HiddenRange] = (), end_offset: int = NO_END
    ) -> list[pa.StructArray]:
        """Return the records below ``end_offset`` as arrays of ``RECORD_TYPE``: all but control records and
        those of ``aborted`` transactions.

        Raises CorruptRecordError with the position of the first fault, ValueError when the records do not fit
        into a row."""
        try:
            return self._records(content, HiddenRanges(aborted), end_offset)
        except CorruptRecordError as error:
            error.remedy = "txnkafka_try_decode_record_batches gives null for such bytes"
            raise

    def _records(self, content: memoryview, aborted: HiddenRanges, end_offset: int) -> list[pa.StructArray]:
        index = scan(content)
        found, size = [], 0
        for first, end in _stretches(index):
            selection = select(index, aborted, end_offset=end_offset, start=first, stop=end)
            for records in self._chosen(content, index, selection, end_offset):
                found.append(records)
                size += records.nbytes
                if size > MAX_VALUE_BYTES:
                    raise ValueError(
                        f"a value of {len(content)} bytes becomes more than {MAX_VALUE_BYTES} bytes, "
                        'too many for one row: read the file with format("txnkafka") instead'
                    )
        if index.stop not in DONE:
            raise CorruptRecordError(index.stop_reason, position=index.end_position)
        return found

    def _chosen(
        self, content: memoryview, index: BatchIndex, selection: bytearray, end_offset: int
    ) -> Iterator[pa.StructArray]:
        def read(position: int, length: int) -> memoryview:
            return content[position : position + length]

        batch_of_record = _batch_of_record(index, selection)
        done = 0
        batches = SelectedBatches(read, index, selection, end_offset=end_offset)
        for columns in self._decoder.chunks(batches):
            count = len(columns)
            yield _structs(columns, index, batch_of_record(done, count))
            done += count


def _structs(columns: RecordColumns, index: BatchIndex, batches: Any) -> pa.StructArray:
    """Return an array of ``RECORD_TYPE``; ``batches`` are the batch numbers of the records."""

    def of_batch(column: memoryview) -> Any:
        return np.asarray(column)[batches]

    producer_id, base_sequence = of_batch(index.producer_id), of_batch(index.base_sequence)
    delta = np.asarray(columns.offsets) - of_batch(index.base_offset)
    numbers = {
        "leaderEpoch": of_batch(index.partition_leader_epoch),
        "producerId": producer_id,
        "producerEpoch": np.where(producer_id < 0, -1, of_batch(index.producer_epoch)),
        "sequence": np.where(base_sequence < 0, -1, base_sequence + delta & SEQUENCE_MASK),
    }
    records = without_empty_headers(to_arrow(columns, NOWHERE, OF_RECORD))
    arrays = [
        *records.columns,
        *(pa.array(found, OF_BATCH.field(name).type, mask=found < 0) for name, found in numbers.items()),
        pa.array(of_batch(index.attributes) & ATTRIBUTE_TRANSACTIONAL != 0),
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(RECORD_TYPE))


def _stretches(index: BatchIndex) -> Iterator[tuple[int, int]]:
    """Yield ranges [first, end) of batches that are all of magic 2, or all older, with growing offsets.
    Within one range a consumer would skip offsets that it has seen, but the bytes may contain batches in
    any order."""
    legacy = np.asarray(index.magic) < MAGIC_2
    again = np.asarray(index.base_offset)[1:] <= np.asarray(index.last_offset)[:-1]
    begins = np.flatnonzero((legacy[1:] != legacy[:-1]) | again) + 1
    return pairwise((0, *begins.tolist(), len(index)))


def _batch_of_record(index: BatchIndex, selection: bytearray) -> Any:
    """Return a function of (first record, count) that returns the batch number of each record of a range.

    In magic 2 the header has the number of records, which decoding has checked. Only the last batch of a
    range may be cut at an end offset: offsets grow, and later batches are not selected. Older formats do not
    have the requested fields, so any batch of the range is correct for them."""
    chosen = np.flatnonzero(np.frombuffer(selection, np.uint8))
    if len(chosen) and index.magic[int(chosen[0])] < MAGIC_2:
        return lambda _first, count: np.full(count, chosen[0])
    ends = np.asarray(index.record_count)[chosen].clip(0).cumsum(dtype=np.int64)
    return lambda first, count: chosen[np.searchsorted(ends, np.arange(first, first + count), "right")]


def has_valid_crcs(content: memoryview) -> bool:
    """Return whether ``content`` is whole batches with matching checksums, followed only by zeros."""
    index = scan(content)
    if index.stop not in DONE or any(magic > MAGIC_2 for magic in index.magic):
        return False
    return all(valid_crcs(content, index))


def control_type(content: memoryview) -> str | None:
    """Return the control type of the batch at the beginning of ``content`` in lower case: ``commit``,
    ``abort``, a type of KRaft, or ``unknown``. None when it is not a control batch, or its CRC is wrong."""
    index = scan(content)
    if not len(index) or not index.attributes[0] & ATTRIBUTE_CONTROL or not valid_crcs(content, index)[0]:
        return None
    try:
        return ControlRecordType(index.control_type[0]).name.lower()
    except ValueError:
        return ControlRecordType.UNKNOWN.name.lower()

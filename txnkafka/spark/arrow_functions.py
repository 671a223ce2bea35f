"""The functions of ``functions.py`` as Spark calls them in the executors, on Arrow arrays.

pyarrow is imported at once: Spark derives the kind of each function from its annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from txnkafka._core.read_committed import HiddenRange
from txnkafka.errors import CorruptRecordError
from txnkafka.spark import record_batches
from txnkafka.spark.record_batches import NO_END, RecordBatchesDecoder

ABORTED = ("producerId", "firstOffset", "lastOffset")
OUTPUT_BYTES = 16 << 20  # approximate size of the pieces of output


def decode_record_batches(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
    """Return lists of records. Raises CorruptRecordError and ValueError like RecordBatchesDecoder."""
    return _decoded(columns, RecordBatchesDecoder().records)


def decode_committed_record_batches(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    """Return lists of the records that a read_committed reader gets. Raises like
    ``decode_record_batches``, and TypeError for aborted transactions of another type."""
    decoder = RecordBatchesDecoder()
    rows = _Rows()
    for contents, aborted, last_stable_offsets in columns:
        for content, hidden, end in zip(contents, aborted, last_stable_offsets, strict=True):
            rows.append(
                decoder.records(_bytes_of(content), _ranges(hidden), end.as_py() if end.is_valid else NO_END)
                if content.is_valid
                else None
            )
            if rows.nbytes > OUTPUT_BYTES:
                yield rows.take()
        yield rows.take()


def _ranges(aborted: pa.ListScalar) -> list[HiddenRange]:
    try:
        return [HiddenRange(*(each[name] for name in ABORTED)) for each in aborted.as_py() or ()]
    except (KeyError, TypeError) as error:
        raise TypeError(
            f"aborted must be an array of structs with {', '.join(ABORTED)}, not {aborted.type}"
        ) from error


def try_decode_record_batches(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
    """Return lists of records, null where the bytes are damaged."""
    decoder = RecordBatchesDecoder()

    def records(content: memoryview) -> list[pa.StructArray] | None:
        try:
            return decoder.records(content)
        except CorruptRecordError:
            return None

    return _decoded(columns, records)


def crc_valid(column: pa.Array) -> pa.Array:
    """Return whether checksums match."""
    return pa.array(_each(record_batches.has_valid_crcs, column), pa.bool_())


def control_type(column: pa.Array) -> pa.Array:
    """Return names of control types."""
    return pa.array(_each(record_batches.control_type, column), pa.string())


def _each(function: Callable[[memoryview], Any], column: pa.Array) -> Iterator[Any]:
    for value in column:
        yield function(_bytes_of(value)) if value.is_valid else None


def _bytes_of(value: pa.BinaryScalar) -> memoryview:
    return memoryview(value.as_buffer()).cast("B")


def _decoded(
    columns: Iterator[pa.Array], records: Callable[[memoryview], list[pa.StructArray] | None]
) -> Iterator[pa.Array]:
    rows = _Rows()
    for column in columns:
        for found in _each(records, column):
            rows.append(found)
            if rows.nbytes > OUTPUT_BYTES:
                yield rows.take()
        yield rows.take()


class _Rows:
    """Collects lists of records for the rows of one output column."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.nbytes = 0
        self._records: list[pa.StructArray] = []
        self._ends = [0]
        self._nulls: list[bool] = []

    def append(self, records: list[pa.StructArray] | None) -> None:
        self._nulls.append(records is None)
        self._records += records or ()
        self._ends.append(self._ends[-1] + sum(map(len, records or ())))
        self.nbytes += sum(column.nbytes for column in records or ())

    def take(self) -> pa.ListArray:
        """Return the rows since the last call."""
        records = pa.concat_arrays([pa.array([], record_batches.RECORD_TYPE), *self._records])
        ends, nulls = pa.array(self._ends, pa.int32()), pa.array(self._nulls, pa.bool_())
        self._begin()
        return pa.ListArray.from_arrays(ends, records, mask=nulls)

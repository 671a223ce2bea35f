"""Columns of records to send: their conversion, and their cut into batches, without an object per record.

A column of keys or values is a pyarrow array of bytes or text, or a list of bytes and None. pyarrow is
needed only for its own arrays.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from txnkafka._core.key_partition import counting_order, gather, gather_numbers, partitions_of
from txnkafka.client.producer.batch_content import ColumnRange
from txnkafka.errors import MessageTooLargeError
from txnkafka.record.arrow import COLUMN_NAMES
from txnkafka.record.batch_header import HEADER_SIZE
from txnkafka.record.builder import InputColumns

if TYPE_CHECKING:
    from typing_extensions import Buffer

_ARGUMENTS: Final = {
    "key": "keys", "value": "values", "timestamp": "timestamps", "headers": "headers",
    "partition": "partitions",
}  # fmt: skip
_OVERHEAD: Final = 36  # of a record without its bytes, at most
_HEADER_OVERHEAD: Final = 10


class Column(NamedTuple):
    """Values of bytes: ``offsets`` (int32 or int64, one more than values), ``data``, and a bitmap if there
    are nulls."""

    offsets: memoryview
    data: Buffer | None
    validity: Buffer | None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def size(self, start: int, stop: int) -> int:
        """Return the bytes of some values."""
        return int(self.offsets[stop] - self.offsets[start])

    def taken(self, order: memoryview) -> Column:
        """Return the values with these numbers."""
        offsets, data, validity = gather(self.offsets, self.data, self.validity, order)
        return Column(memoryview(offsets).cast("q"), data, validity)


class HeaderColumn(NamedTuple):
    """Headers of records: ``offsets`` assign the pairs of names and values to records; ``source`` is the
    Arrow array."""

    offsets: memoryview
    names: Column
    values: Column
    source: Any

    def size(self, start: int, stop: int) -> int:
        """Return the bytes of the headers of some records, at most."""
        first, last = self.offsets[start], self.offsets[stop]
        count = last - first
        return int(self.names.size(first, last) + self.values.size(first, last) + count * _HEADER_OVERHEAD)


@dataclass(frozen=True, slots=True)
class SendColumns:
    """The records of one call."""

    count: int
    keys: Column | None
    values: Column | None
    timestamps: memoryview
    headers: HeaderColumn | None

    def size(self, start: int, stop: int) -> int:
        """Return the bytes of a batch of some records, at most."""
        columns = (self.keys, self.values, self.headers)
        size = sum(column.size(start, stop) for column in columns if column is not None)
        return size + HEADER_SIZE + _OVERHEAD * (stop - start)

    def taken(self, order: memoryview) -> SendColumns:
        """Return the records with these numbers."""
        return SendColumns(
            len(order),
            None if self.keys is None else self.keys.taken(order),
            None if self.values is None else self.values.taken(order),
            memoryview(gather_numbers(self.timestamps, order)).cast("q"),
            None if self.headers is None else _taken_headers(self.headers, order),
        )

    def input(self) -> InputColumns:
        """Return the input of the encoder."""
        given: dict[str, Any] = {"timestamps": self.timestamps}
        headers = self.headers
        columns = {"key": self.keys, "value": self.values}
        if headers is not None:
            given["header_offsets"] = headers.offsets
            columns |= {"header_key": headers.names, "header_value": headers.values}
        for name, column in columns.items():
            if column is not None:
                given[f"{name}_offsets"], given[f"{name}_data"] = column.offsets, column.data
                if column.validity is not None:
                    given[f"{name}_validity"] = column.validity
        return InputColumns(**given)

    def cut(self, source: InputColumns, start: int, stop: int, limit: int) -> Iterator[ColumnRange]:
        """Cut records ``start`` to ``stop`` into batches of at most ``limit`` bytes. Raises
        MessageTooLargeError for a record that is larger."""
        while start < stop:
            first = start
            # sizes grow with the end of the range
            end = bisect_right(range(first, stop), limit, lo=1, key=lambda last: self.size(first, last + 1))
            end = first + max(1, end)
            size = self.size(first, end)
            if size > limit:
                raise MessageTooLargeError(
                    f"record {first} may have {size} bytes with its batch; {limit} are allowed "
                    "(max.request.size)"
                )
            yield ColumnRange(source, first, end, size)
            start = end


def columns_to_send(keys: Any, values: Any, timestamps: Any, headers: Any, now_ms: int) -> SendColumns:
    """Convert the arguments of ``send_columns``. Raises TypeError and ValueError for wrong columns."""
    key_column, value_column = byte_column(keys, "keys"), byte_column(values, "values")
    lengths = {
        name: len(column)
        for name, column in (("keys", key_column), ("values", value_column))
        if column is not None
    }
    header_column = None if headers is None else _headers(headers)
    if header_column is not None:
        lengths["headers"] = len(header_column.offsets) - 1
    count = next(iter(lengths.values()), None)
    times = numbers_of(timestamps, "timestamps", "q") if timestamps is not None else None
    if times is not None:
        lengths["timestamps"] = len(times)
        count = len(times) if count is None else count
    if count is None:
        raise TypeError("send_columns needs keys, values or timestamps, for the number of records")
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{length} {name}" for name, length in lengths.items())
        raise ValueError(f"the columns have different lengths: {shown}")
    if times is None:
        times = memoryview(array("q", [now_ms]) * count)
    return SendColumns(count, key_column, value_column, times, header_column)


def byte_column(values: Any, name: str) -> Column | None:
    """Convert keys or values; None stays."""
    if values is None:
        return None
    if _is_arrow(values):
        return _arrow_bytes(values, name)
    if isinstance(values, str | bytes | bytearray | memoryview) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a pyarrow array, or a list of bytes and None, not {values!r:.60}")
    given = list(values)
    for number, value in enumerate(given):
        if value is not None and not isinstance(value, bytes | bytearray | memoryview):
            raise TypeError(f"{name}[{number}] must be bytes or None, not {type(value).__name__}")
    present = [b"" if value is None else value for value in given]
    offsets = array("q", accumulate(map(len, present), initial=0))
    validity = None
    if None in given:
        validity = bytearray((len(given) + 7) // 8)
        for number, value in enumerate(given):
            if value is not None:
                validity[number >> 3] |= 1 << (number & 7)
    return Column(memoryview(offsets), b"".join(present), validity)


def numbers_of(values: Any, name: str, kind: Literal["q", "i"]) -> memoryview:
    """Convert a column of numbers to int64 (``q``) or int32 (``i``)."""
    if _is_arrow(values):
        values = _arrow_numbers(values, name, kind)
    elif hasattr(values, "dtype"):  # numpy
        values = values.astype("datetime64[ms]") if values.dtype.kind == "M" else values
        values = values.astype({"q": "int64", "i": "int32"}[kind], casting="unsafe", copy=True)
    elif not isinstance(values, array) or values.typecode != kind:
        try:
            values = array(kind, values)
        except OverflowError:
            raise ValueError(f"{name} has a number out of range") from None
    return memoryview(values)


def by_partition(
    columns: SendColumns, partitions: memoryview, count: int
) -> tuple[SendColumns, Sequence[tuple[int, int, int]]]:
    """Sort records by partition; return them, and (partition, start, stop) of each partition that has
    some."""
    order, bounds = array("q", bytes(8 * columns.count)), array("q", bytes(8 * (count + 1)))
    counting_order(partitions, count, order, bounds)
    rows = [(number, bounds[number], bounds[number + 1]) for number in range(count)]
    parts = [each for each in rows if each[1] < each[2]]
    return (columns if len(parts) == 1 else columns.taken(memoryview(order))), parts


def key_partitions(columns: SendColumns, count: int, without_key: int) -> memoryview:
    """Return the partitions of records by the hashes of their keys."""
    assert columns.keys is not None
    found = memoryview(array("i", bytes(4 * columns.count)))
    keys = columns.keys
    partitions_of(keys.offsets, keys.data, keys.validity, count, without_key, found)
    return found


def arrow_columns(batch: Any, partition: int | None) -> dict[str, Any]:
    """Return the arguments of ``send_columns`` for a RecordBatch or Table. Raises TypeError, ValueError."""
    if not _is_arrow(batch) or not hasattr(batch, "schema"):
        raise TypeError(f"send_arrow takes a pyarrow RecordBatch or Table, not {type(batch).__name__}")
    names = batch.schema.names
    unknown = [name for name in names if name not in COLUMN_NAMES]
    if unknown:
        raise ValueError(f"no record has a column {unknown[0]}: the columns are {', '.join(COLUMN_NAMES)}")
    given = {arrow: batch.column(arrow) for arrow in _ARGUMENTS if arrow in names}
    if partition is not None:
        given.pop("partition", None)
    return {_ARGUMENTS[name]: column for name, column in given.items()}


def _is_arrow(values: Any) -> bool:
    return type(values).__module__.partition(".")[0] == "pyarrow"


def _one_array(values: Any) -> Any:
    import pyarrow as pa

    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _arrow_bytes(values: Any, name: str) -> Column:
    import pyarrow as pa

    found, types = _one_array(values), pa.types
    kind = found.type
    if types.is_null(kind):
        return Column(memoryview(array("i", bytes(4 * (len(found) + 1)))), None, bytes((len(found) + 7) // 8))
    if not (types.is_binary(kind) or types.is_string(kind) or _is_large(kind)):
        try:
            found = found.cast(pa.large_binary())
        except pa.ArrowException:
            raise TypeError(f"{name} must be bytes or text, not {kind}") from None
    width = 8 if _is_large(found.type) else 4
    validity, offsets, data = found.buffers()
    begin, end = width * found.offset, width * (found.offset + len(found) + 1)
    places = _view(offsets)[begin:end] if offsets is not None and len(found) else bytes(width)
    return Column(
        memoryview(places).cast("q" if width == 8 else "i"),
        None if data is None else _view(data),
        None if validity is None or not found.null_count else _bitmap(found),
    )


def _is_large(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_large_binary(kind) or pa.types.is_large_string(kind))


def _bitmap(values: Any) -> Buffer:
    """Return the validity of an array from its first value on."""
    if values.offset % 8:
        return _bitmap_of(values.is_valid())
    return _view(values.buffers()[0])[values.offset // 8 :]


def _bitmap_of(flags: Any) -> Buffer:
    import pyarrow as pa

    return _view(pa.concat_arrays([flags, flags[:0]]).buffers()[1])  # from its first bit on


def _view(buffer: Any) -> memoryview:
    return memoryview(buffer).cast("B")


def _arrow_numbers(values: Any, name: str, kind: Literal["q", "i"]) -> Any:
    import pyarrow as pa

    found = _one_array(values)
    if found.null_count:
        raise ValueError(f"{name} must not have nulls")
    try:
        if pa.types.is_timestamp(found.type):
            found = found.cast(pa.timestamp("ms", tz=found.type.tz), safe=False).cast(pa.int64())
        found = found.cast(pa.int64() if kind == "q" else pa.int32())
    except pa.ArrowException as error:
        raise TypeError(f"{name} must be numbers: {error}") from None
    width = 8 if kind == "q" else 4
    whole = _view(found.buffers()[1]) if len(found) else memoryview(b"")
    return whole[width * found.offset : width * (found.offset + len(found))].cast(kind)


def _headers(values: Any) -> HeaderColumn:
    import pyarrow as pa

    found = _one_array(values) if _is_arrow(values) else pa.array(values, _header_type())
    found = found.cast(_header_type())
    structs = found.values
    names = _arrow_bytes(structs.field(0), "names of headers")
    contents = _arrow_bytes(structs.field(1), "values of headers")
    if structs.field(0).null_count:
        raise ValueError("a header needs a name")
    offsets = numbers_of(found.offsets, "headers", "q")
    return HeaderColumn(offsets, names, contents, found)


def _header_type() -> Any:
    import pyarrow as pa

    return pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def _taken_headers(headers: HeaderColumn, order: memoryview) -> HeaderColumn:
    import pyarrow as pa

    numbers = pa.Array.from_buffers(pa.int64(), len(order), [None, pa.py_buffer(order)])
    return _headers(headers.source.take(numbers))

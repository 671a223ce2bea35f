"""Converts record columns to Arrow record batches, with the column names of Spark's Kafka source.

Keys, values and headers are passed without a copy; as long as the Arrow arrays live, their memory is not
reused. pyarrow and numpy are imported with the first batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from txnkafka.env.packages import import_package
from txnkafka.model import TopicPartition
from txnkafka.record.batch import header_key
from txnkafka.shown import nearest, plain_name

if TYPE_CHECKING:
    import pyarrow as pa

    from txnkafka._core.columns import RecordColumns

__all__ = [
    "COLUMN_NAMES",
    "arrow_schema",
    "finer_timestamps",
    "header_columns",
    "record_column",
    "to_arrow",
]

_NOWHERE = TopicPartition("", -1)
COLUMN_NAMES = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


def arrow_schema(names: Sequence[str] = COLUMN_NAMES, *, timestamp_unit: str = "ms") -> pa.Schema:
    """Return the schema of the named columns. Raises ValueError for an unknown name, and TypeError for a
    single str."""
    if isinstance(names, str | bytes):
        raise TypeError(f"columns are a list of names, as in [{names!r}], not {names!r}")
    return _schema(tuple(names), timestamp_unit)


@lru_cache(maxsize=64)  # a consumer asks for the same one with each poll
def _schema(names: tuple[str, ...], timestamp_unit: str) -> pa.Schema:
    pa = import_package("pyarrow", "a record batch", "arrow")
    types = {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp(timestamp_unit, tz="UTC"),
        "timestampType": pa.int32(),
        "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    }
    unknown = [name for name in names if name not in types]
    if unknown:
        raise ValueError(f"no column {', '.join(unknown)}: {nearest(unknown[0], COLUMN_NAMES)}")
    return pa.schema([(name, types[name]) for name in names])


def to_arrow(columns: RecordColumns, topic_partition: TopicPartition, schema: pa.Schema) -> pa.RecordBatch:
    """Convert the columns of ``schema`` (see ``arrow_schema``). ``columns`` must contain copies, and headers
    if the schema has them."""
    import pyarrow as pa

    arrays = [_COLUMNS[field.name](columns, topic_partition, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def record_column(name: str, columns: RecordColumns, kind: pa.DataType) -> Any:
    """Convert one column that does not depend on the partition to an Arrow array of type ``kind``."""
    return _COLUMNS[name](columns, _NOWHERE, kind)


def header_columns(columns: RecordColumns) -> tuple[Any, Any]:
    """Return names and values of all headers, one after another, as Arrow binary arrays."""
    import pyarrow as pa

    count = len(memoryview(columns.header_key_offsets)) - 1
    names = [None, _buffer(columns.header_key_offsets), _buffer(columns.header_key_data)]
    values = [
        _buffer(columns.header_value_validity),
        _buffer(columns.header_value_offsets),
        _buffer(columns.header_value_data),
    ]
    return (
        pa.Array.from_buffers(pa.binary(), count, names),
        pa.Array.from_buffers(pa.binary(), count, values, columns.header_value_null_count),
    )


def _buffer(column: Any) -> pa.Buffer | None:
    import pyarrow as pa

    return None if column is None else pa.py_buffer(column)


def _keys(columns: RecordColumns, _: TopicPartition, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    buffers = [_buffer(columns.key_validity), _buffer(columns.key_offsets), _buffer(columns.key_data)]
    return pa.Array.from_buffers(kind, len(columns), buffers, columns.key_null_count)


def _values(columns: RecordColumns, _: TopicPartition, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    buffers = [_buffer(columns.value_validity), _buffer(columns.value_offsets), _buffer(columns.value_data)]
    return pa.Array.from_buffers(kind, len(columns), buffers, columns.value_null_count)


def _topic(columns: RecordColumns, topic_partition: TopicPartition, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    return pa.repeat(pa.scalar(plain_name(topic_partition.topic), kind), len(columns))


def _partition(columns: RecordColumns, topic_partition: TopicPartition, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    return pa.repeat(pa.scalar(topic_partition.partition, kind), len(columns))


def _offsets(columns: RecordColumns, _: TopicPartition, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    return pa.Array.from_buffers(kind, len(columns), [None, _buffer(columns.offsets)])


def _timestamps(columns: RecordColumns, _: TopicPartition, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if kind.unit == "ms":
        return pa.Array.from_buffers(kind, len(columns), [None, _buffer(columns.timestamps)])
    finer = finer_timestamps(columns.timestamps, kind.unit)
    return pa.Array.from_buffers(kind, len(columns), [None, pa.py_buffer(finer)])


def finer_timestamps(milliseconds: Any, unit: str) -> Any:
    """Return timestamps in ``us`` or ``ns`` as a numpy array; a timestamp out of range becomes the nearest
    limit instead of overflowing."""
    import numpy as np

    factor = {"us": 1_000, "ns": 1_000_000}[unit]
    limit = np.iinfo(np.int64).max // factor
    return np.clip(np.asarray(milliseconds), -limit, limit) * factor


def _timestamp_types(columns: RecordColumns, _: TopicPartition, kind: pa.DataType) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    lengths = np.diff(np.asarray(columns.run_ends), prepend=0)
    return pa.array(np.repeat(np.asarray(columns.run_timestamp_types).astype(np.int32), lengths), kind)


def _headers(columns: RecordColumns, _: TopicPartition, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    names, values = header_columns(columns)
    fields = [kind.value_type.field(0), kind.value_type.field(1)]
    structs = pa.StructArray.from_arrays([_text(names), values], fields=fields)
    return pa.Array.from_buffers(
        kind, len(columns), [None, _buffer(columns.header_offsets)], children=[structs]
    )


def _text(names: pa.Array) -> pa.Array:
    """Decode header keys as UTF-8; invalid bytes become U+FFFD, as in Java's consumer."""
    import pyarrow as pa

    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([header_key(name) for name in names.to_pylist()], pa.string())


_COLUMNS: dict[str, Callable[[RecordColumns, TopicPartition, Any], Any]] = {
    "key": _keys,
    "value": _values,
    "topic": _topic,
    "partition": _partition,
    "offset": _offsets,
    "timestamp": _timestamps,
    "timestampType": _timestamp_types,
    "headers": _headers,
}

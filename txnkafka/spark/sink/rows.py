"""Rows of Spark 4.0, whose writers of streams get no Arrow batches, as Arrow batches."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from txnkafka.spark.schema import HEADERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql.types import StructType

_ROWS: Final = 10_000
_HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_TYPES: Final = {
    "string": pa.string(), "binary": pa.binary(), "int": pa.int32(), "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"), HEADERS.simpleString(): _HEADERS,
}  # fmt: skip


def arrow_rows(rows: Iterable[Any], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches, with the columns of ``schema``."""
    arrow = pa.schema([(field.name, _TYPES[field.dataType.simpleString()]) for field in schema.fields])
    source = iter(rows)
    while chunk := list(islice(source, _ROWS)):
        columns = zip(*chunk, strict=True)
        arrays = [
            pa.array(map(_plain, column), field.type) for column, field in zip(columns, arrow, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=arrow)


def _plain(value: Any) -> Any:
    """Return a value as Arrow takes it: Spark's rows have local times without a zone."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.astimezone(UTC)
    if isinstance(value, list):
        return [each if isinstance(each, dict) else dict(each.asDict()) for each in value]
    return bytes(value) if isinstance(value, bytearray) else value

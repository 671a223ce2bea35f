"""Columns of the source: those of Spark's Kafka source, in Spark's types and in Arrow's.

A narrower schema is how Spark 4 lets a Python source leave columns out: what is not in it is not decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from txnkafka.spark.options import nearest

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["KAFKA_COLUMNS", "arrow_schema_of", "batch_schema", "source_schema"]

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
COLUMN_TYPES: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": HEADERS,
}
KAFKA_COLUMNS = tuple(name for name in COLUMN_TYPES if name != "headers")
NULLABLE = ("key", "value", "headers")


def source_schema(columns: Sequence[str] = KAFKA_COLUMNS) -> StructType:
    """Spark's schema of the named columns. Raises ValueError for a name that is none of them."""
    if isinstance(columns, str) or not columns:
        raise ValueError(f"columns must be a list of names, not {columns!r}")
    for name in columns:
        _check_name(name)
    if len(set(columns)) < len(columns):
        raise ValueError(f"a column is named twice in {list(columns)}")
    return StructType([StructField(name, COLUMN_TYPES[name]) for name in columns])


def batch_schema(columns: Sequence[str]) -> pa.Schema:
    """Arrow schema of the named columns. Raises ValueError as ``source_schema``."""
    return arrow_schema_of(source_schema(columns))


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark expects for a schema that a user gave. Raises ValueError for a column
    that does not exist, or not like this."""
    import pyarrow as pa

    from txnkafka.record.arrow import arrow_schema

    for field in schema.fields:
        _check_field(field)
    plain = arrow_schema(schema.names, timestamp_unit="us")
    return pa.schema([plain.field(i).with_nullable(field.nullable) for i, field in enumerate(schema.fields)])


def _check_name(name: str) -> None:
    if name not in COLUMN_TYPES:
        raise ValueError(f"there is no column {name}: {nearest(name, COLUMN_TYPES)}")


def _check_field(field: StructField) -> None:
    _check_name(field.name)
    expected = COLUMN_TYPES[field.name]
    if field.dataType != expected:
        raise ValueError(
            f"column {field.name} is {expected.simpleString()}, not {field.dataType.simpleString()}; "
            "cast it after reading"
        )
    if not field.nullable and field.name in NULLABLE:
        raise ValueError(f"column {field.name} may hold nulls: the schema must not say NOT NULL")

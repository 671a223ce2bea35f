"""The columns of the source, which are the columns of Spark's Kafka source, in Spark's types and in Arrow's.

A Python source in Spark 4 leaves columns out by a narrower schema: columns that are missing in it are not
decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

from txnkafka.shown import nearest

if TYPE_CHECKING:
    import pyarrow as pa

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
RECORD_COLUMNS = StructType(
    [StructField(name, kind, name in ("key", "value", "headers")) for name, kind in COLUMN_TYPES.items()]
)


def named_columns(columns: StructType, names: Sequence[str]) -> StructType:
    """Return the named columns as a Spark schema. Raises ValueError for an unknown name."""
    if isinstance(names, str) or not names:
        raise ValueError(f"columns must be a list of names, not {names!r}")
    for name in names:
        _check_name(name, columns.names)
    if len(set(names)) < len(names):
        raise ValueError(f"a column is named twice in {list(names)}")
    return StructType([StructField(name, columns[name].dataType) for name in names])


def batch_schema(columns: Sequence[str]) -> pa.Schema:
    """Return the Arrow schema of the named columns of records. Raises ValueError like ``named_columns``."""
    return arrow_schema_of(named_columns(RECORD_COLUMNS, columns))


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark expects for a user's schema. Raises ValueError for a column that
    does not exist or has another type."""
    import pyarrow as pa

    from txnkafka.record.arrow import arrow_schema

    check_fields(schema, RECORD_COLUMNS)
    plain = arrow_schema(schema.names, timestamp_unit="us")
    return pa.schema([plain.field(i).with_nullable(field.nullable) for i, field in enumerate(schema.fields)])


def check_fields(schema: StructType, columns: StructType) -> None:
    """Raise ValueError for a field of ``schema`` that is missing in ``columns``, or differs from it."""
    for field in schema.fields:
        _check_name(field.name, columns.names)
        _check_field(field, columns[field.name])


def _check_name(name: str, names: Iterable[str]) -> None:
    if name not in names:
        raise ValueError(f"unknown column {name}: {nearest(name, names)}")


def _check_field(field: StructField, column: StructField) -> None:
    if field.dataType != column.dataType:
        raise ValueError(
            f"column {field.name} is {column.dataType.simpleString()}, not {field.dataType.simpleString()}; "
            "cast it after reading"
        )
    if column.nullable and not field.nullable:
        raise ValueError(f"column {field.name} may contain nulls: remove NOT NULL from the schema")

"""The columns of rows that are written: those of Spark's Kafka sink, and the timestamp of records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import BinaryType, DataType, IntegerType, StringType, TimestampType

from txnkafka.shown import nearest
from txnkafka.spark.schema import HEADERS

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_BYTES: Final = (StringType(), BinaryType())
ROW_TYPES: Final[dict[str, tuple[DataType, ...]]] = {
    "key": _BYTES,
    "value": _BYTES,
    "headers": (HEADERS,),
    "topic": (StringType(),),
    "partition": (IntegerType(),),
    "timestamp": (TimestampType(),),
}
IGNORED: Final = ("offset", "timestampType")
"""Columns of the source that a log assigns anew."""


def check_rows(schema: StructType, topic: str | None) -> None:
    """Raise ValueError for columns that cannot be written."""
    names = [field.name for field in schema.fields]
    if "value" not in names:
        raise ValueError(f"column value is missing; the columns are {', '.join(names) or 'none'}")
    if topic is None and "topic" not in names:
        raise ValueError("no topic: give the option topic, or a column topic")
    if len(set(names)) < len(names):
        raise ValueError(f"two columns have one name: {', '.join(names)}")
    for field in schema.fields:
        if field.name in IGNORED:
            continue
        if field.name not in ROW_TYPES:
            raise ValueError(
                f"unknown column {field.name}: {nearest(field.name, ROW_TYPES)}; leave it out with select(…)"
            )
        if _plain(field.dataType) not in map(_plain, ROW_TYPES[field.name]):
            allowed = " or ".join(kind.simpleString() for kind in ROW_TYPES[field.name])
            raise ValueError(
                f"column {field.name} must be {allowed}, not {field.dataType.simpleString()}: cast it"
            )


def _plain(kind: DataType) -> str:
    """Return a type without the nullability of its parts."""
    return kind.simpleString()

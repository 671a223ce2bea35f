"""The definition of a table: its columns, its tasks, the rows of a task.

The plan is small data that is made on the driver; logs are read in the executors. A table refuses options
that do not apply to it, instead of silently ignoring them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from txnkafka.model import NO_TIMESTAMP
from txnkafka.shown import plain_name
from txnkafka.spark.options import ReadOptions
from txnkafka.spark.read import MAX_BATCH_ROWS
from txnkafka.spark.schema import check_fields, named_columns

if TYPE_CHECKING:
    import pyarrow as pa

BOOLEAN, INT, LONG, STRING, TIMESTAMP = (
    BooleanType(),
    IntegerType(),
    LongType(),
    StringType(),
    TimestampType(),
)
HALF_TARGETS = ArrayType(
    StructType([StructField("topic", STRING), StructField("partition", INT), StructField("records", LONG)])
)

# keywords of ReadKeywords that belong together
SELECTION = frozenset(("topic", "topic_pattern", "assign"))
RANGES = frozenset(
    (
        "starting_offsets",
        "ending_offsets",
        "starting_timestamp",
        "ending_timestamp",
        "starting_offsets_by_timestamp",
        "ending_offsets_by_timestamp",
        "starting_offsets_by_timestamp_strategy",
    )
)
SIZES = frozenset(("min_partitions", "max_bytes_per_partition", "io", "storage_options"))

LARGEST_MICROSECONDS = (2**63 - 1) // 1000 * 1000

Task = TypeVar("Task")
Kind = ArrayType | BooleanType | IntegerType | LongType | StringType | TimestampType


@dataclass(frozen=True)
class Table(Generic[Task]):
    """One table. ``columns`` include their nullability; ``keywords`` are the keywords of ReadKeywords that
    apply to it. ``plan(paths, options, parallelism)`` runs on the driver, ``rows(tasks, schema, options)``
    in the executors: it returns the columns in ``schema``, in its order."""

    columns: StructType
    keywords: frozenset[str]
    plan: Callable[[Iterable[str], ReadOptions, int], list[Task]]
    rows: Callable[[Iterable[Task], pa.Schema, ReadOptions], Iterator[pa.RecordBatch]]
    arrow_schema: Callable[[StructType], pa.Schema]

    def schema(self, names: Sequence[str] | None = None) -> StructType:
        """Return the Spark schema of the named columns; without names, of all but headers. Raises ValueError
        for an unknown name."""
        if names is None:
            names = [name for name in self.columns.names if name != "headers"]
        return named_columns(self.columns, names)


def table_columns(kinds: dict[str, Kind], *, nullable: tuple[str, ...]) -> StructType:
    """Build columns by name; those that are not ``nullable`` have a value in every row."""
    return StructType([StructField(name, kind, name in nullable) for name, kind in kinds.items()])


def arrow_schema_of(columns: StructType) -> Callable[[StructType], pa.Schema]:
    """Return a function that returns the Arrow schema which Spark expects for a schema of some of
    ``columns``. It raises ValueError for a column that does not exist or has another type."""

    def arrow_schema(schema: StructType) -> pa.Schema:
        import pyarrow as pa

        types: dict[DataType, pa.DataType] = {
            BOOLEAN: pa.bool_(),
            INT: pa.int32(),
            LONG: pa.int64(),
            STRING: pa.string(),
            TIMESTAMP: pa.timestamp("us", tz="UTC"),
            HALF_TARGETS: pa.list_(
                pa.struct([("topic", pa.string()), ("partition", pa.int32()), ("records", pa.int64())])
            ),
        }
        check_fields(schema, columns)
        return pa.schema(
            [pa.field(field.name, types[field.dataType], field.nullable) for field in schema.fields]
        )

    return arrow_schema


def batches_of_rows(
    rows: Iterable[tuple[Any, ...]], columns: StructType, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Convert rows with all ``columns`` to record batches of the columns in ``schema``; few rows are in
    memory at once."""
    import pyarrow as pa

    places = [columns.names.index(name) for name in schema.names]
    rows = iter(rows)
    while piece := list(islice(rows, MAX_BATCH_ROWS)):
        values = list(zip(*piece, strict=True))
        arrays = [
            pa.array(map(_arrow_value, values[place]), field.type)
            for place, field in zip(places, schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _arrow_value(value: object) -> object:
    """Escape bytes of topics and paths that are not UTF-8, because Arrow has only Unicode."""
    return plain_name(value) if isinstance(value, str) else value


def microseconds(timestamp: int) -> int | None:
    """Convert a timestamp of Kafka to Spark's microseconds; None for a missing one."""
    if timestamp == NO_TIMESTAMP:
        return None
    return max(-LARGEST_MICROSECONDS, min(timestamp * 1000, LARGEST_MICROSECONDS))

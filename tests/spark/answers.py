"""Converts rows of Spark to the format of the golden cases' expected lines. Workers import it, so it imports
little."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from txnkafka import TimestampType, TopicPartition
from txnkafka.spark.options import ReadOptions, read_options

if TYPE_CHECKING:
    import pyarrow as pa

    from tests.golden.cases import Case

__all__ = ["ALL_COLUMNS", "Json", "TablePart", "expected_lines", "line", "planned", "rows_of"]

Json = Any
ALL_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


def expected_lines(case: Case, partition: TopicPartition, level: str) -> list[Json]:
    """Return what the consumer got, without the leader epoch, for which Spark's Kafka source has no
    column."""
    return without_leader_epoch(case.expected_records(partition, level))


def without_leader_epoch(records: list[Json]) -> list[Json]:
    return [
        {name: value for name, value in record.items() if name != "leader_epoch"} for record in records
    ]  # fmt: skip


def line(row: Mapping[str, Any], timestamp: int) -> Json:
    """Return a row with all columns, and its timestamp in milliseconds."""
    return {
        "offset": row["offset"],
        "timestamp": timestamp,
        "timestamp_type": TimestampType(row["timestampType"]).label,
        "key": _base64(row["key"]),
        "value": _base64(row["value"]),
        "headers": [[each["key"], _base64(each["value"])] for each in row["headers"] or ()],
    }


def _base64(content: bytes | bytearray | None) -> str | None:
    return None if content is None else b64encode(content).decode("ascii")


class TablePart(NamedTuple):
    """One planned task of one table of one directory; ``name`` is chosen by the test."""

    name: Hashable
    table: str
    task: object
    options: ReadOptions


def planned(name: Hashable, table: str, path: str, **reading: Any) -> list[TablePart]:
    """Plan the tasks that read a table; ``count`` is one here."""
    from txnkafka.spark.tables import TABLES
    from txnkafka.spark.tables.partition_tasks import plan_partitions

    options = read_options(**reading)
    plan = plan_partitions if table == "count" else TABLES[table].plan
    return [TablePart(name, table, task, options) for task in plan([path], options, 1)]


def rows_of(parts: Iterable[TablePart]) -> Iterator[tuple[Hashable, str, Json]]:
    """Yield (name, table, row) of planned tasks; runs in the worker. Timestamps in milliseconds."""
    for name, table, task, options in parts:
        yield from ((name, table, row) for row in _rows(table, task, options))


def _rows(table: str, task: object, options: ReadOptions) -> Iterator[Json]:
    from txnkafka.spark.table_jobs import count_partitions
    from txnkafka.spark.tables import TABLES

    if table == "count":
        yield from count_partitions([task], options)  # type: ignore[list-item]
        return
    schema = TABLES[table].arrow_schema(TABLES[table].schema())
    for batch in TABLES[table].rows([task], schema, options):
        yield from in_milliseconds(batch).to_pylist()


def in_milliseconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Convert timestamps to numbers."""
    import pyarrow as pa
    import pyarrow.compute

    for place, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type):
            values = pa.compute.divide(batch.column(place).cast(pa.int64()), 1000)
            batch = batch.set_column(place, field.name, values)
    return batch

"""``table=records``, the default table, has one row per record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from txnkafka.spark.options import ReadKeywords, ReadOptions
from txnkafka.spark.plan import ReadTask, plan_tasks
from txnkafka.spark.read import TaskReader
from txnkafka.spark.schema import RECORD_COLUMNS, arrow_schema_of
from txnkafka.spark.tables.table import Table

if TYPE_CHECKING:
    import pyarrow as pa


def _rows(tasks: Iterable[ReadTask], schema: pa.Schema, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    return TaskReader(schema, options)(tasks)


RECORDS: Table[ReadTask] = Table(
    columns=RECORD_COLUMNS,
    keywords=frozenset(ReadKeywords.__annotations__) | {"include_headers"},
    plan=plan_tasks,
    rows=_rows,
    arrow_schema=arrow_schema_of,
)

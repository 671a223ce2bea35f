"""``table=findings`` has one row per finding of ``txnkafka verify``.

The driver checks the directories and the facts that concern several partitions, for which it reads a few
small files; the executors check every byte of each partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from txnkafka.logdir import Finding
from txnkafka.logdir.verify.report import verify_directories, verify_partition
from txnkafka.spark.options import ReadOptions
from txnkafka.spark.plan import open_log_dir
from txnkafka.spark.tables.partition_tasks import Sources, chosen_or_all, each_partition, source_tasks
from txnkafka.spark.tables.table import (
    INT,
    LONG,
    SELECTION,
    SIZES,
    STRING,
    Table,
    arrow_schema_of,
    batches_of_rows,
    table_columns,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from txnkafka.logdir import PartitionView

COLUMNS = table_columns(
    {
        "topic": STRING,
        "partition": INT,
        "file": STRING,
        "position": LONG,
        "severity": STRING,
        "code": STRING,
        "message": STRING,
        "remedy": STRING,
        "cause": STRING,
    },
    nullable=("topic", "partition", "position"),
)


class FindingsTask(NamedTuple):
    """Findings of the driver, and partitions to check."""

    found: tuple[Finding, ...]
    sources: Sources


def _plan(paths: Iterable[str], options: ReadOptions, parallelism: int) -> list[FindingsTask]:
    log_dir = open_log_dir(paths, options)
    partitions = chosen_or_all(log_dir, options)
    found = tuple(verify_directories(log_dir, partitions))
    tasks = source_tasks(log_dir, partitions, options, parallelism)
    return [FindingsTask(found, ()), *(FindingsTask((), sources) for sources in tasks)]


def _rows(tasks: Iterable[FindingsTask], schema: pa.Schema, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    for task in tasks:
        known = [(None, None, *finding) for finding in task.found]
        yield from batches_of_rows(known, COLUMNS, schema)
        yield from batches_of_rows(each_partition(task.sources, _partition), COLUMNS, schema)


def _partition(view: PartitionView) -> Iterator[tuple[Any, ...]]:
    for finding in verify_partition(view):
        yield view.topic, view.partition, *finding


FINDINGS: Table[FindingsTask] = Table(
    columns=COLUMNS,
    keywords=SELECTION | SIZES,
    plan=_plan,
    rows=_rows,
    arrow_schema=arrow_schema_of(COLUMNS),
)

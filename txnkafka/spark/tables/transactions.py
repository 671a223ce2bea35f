"""``table=transactions``: one row a transaction and partition, whatever became of it.

A row tells of the whole transaction, as far as it is in the log, also where only part of it lies in the
offsets that were asked for. Whose it is follows from the producer id, which belongs to one transactional id
for ever; the driver reads the coordinator's log for that, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from txnkafka._core.read_committed import TransactionRange
from txnkafka.model import IsolationLevel
from txnkafka.spark.options import ReadOptions
from txnkafka.spark.plan import open_log_dir, report
from txnkafka.spark.selection import chosen_partitions, partition_request
from txnkafka.spark.tables.partition_tasks import Sources, each_partition, source_tasks
from txnkafka.spark.tables.table import (
    INT,
    LONG,
    RANGES,
    SELECTION,
    SIZES,
    STRING,
    TIMESTAMP,
    Table,
    arrow_schema_of,
    batches_of_rows,
    microseconds,
    table_columns,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from txnkafka.logdir import PartitionView

__all__ = ["TRANSACTIONS", "TransactionsTask"]

COLUMNS = table_columns(
    {
        "topic": STRING,
        "partition": INT,
        "transactionalId": STRING,
        "producerId": LONG,
        "producerEpoch": INT,
        "outcome": STRING,
        "firstOffset": LONG,
        "lastOffset": LONG,
        "markerOffset": LONG,
        "batches": LONG,
        "records": LONG,
        "bytes": LONG,
        "firstTimestamp": TIMESTAMP,
        "lastTimestamp": TIMESTAMP,
        "markerTimestamp": TIMESTAMP,
        "coordinatorEpoch": INT,
    },
    nullable=(
        "transactionalId",
        "markerOffset",
        "firstTimestamp",
        "lastTimestamp",
        "markerTimestamp",
        "coordinatorEpoch",
    ),
)


class TransactionsTask(NamedTuple):
    """Partitions, and the transactional id of each producer id that the coordinator's log knows."""

    sources: Sources
    transactional_ids: Mapping[int, str]


def _plan(paths: Iterable[str], options: ReadOptions, parallelism: int) -> list[TransactionsTask]:
    log_dir = open_log_dir(paths, options)
    partitions = chosen_partitions(log_dir, options)
    report(log_dir.coordinator.findings, log_dir)
    transactional_ids = log_dir.coordinator.transactional_ids
    tasks = source_tasks(log_dir, partitions, options, parallelism)
    return [TransactionsTask(sources, transactional_ids) for sources in tasks]


def _rows(
    tasks: Iterable[TransactionsTask], schema: pa.Schema, options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    # open transactions lie behind the last stable offset, and are rows too
    request = replace(options.request, isolation_level=IsolationLevel.READ_UNCOMMITTED)
    options = replace(options, request=request)
    for task in tasks:
        read = partial(_partition, options=options, transactional_ids=task.transactional_ids)
        yield from batches_of_rows(each_partition(task.sources, read), COLUMNS, schema)


def _partition(
    view: PartitionView, options: ReadOptions, transactional_ids: Mapping[int, str]
) -> Iterator[tuple[Any, ...]]:
    start, end = view.offset_range(partition_request(view, options))
    report(view.tail_findings, view.topic_partition)
    for each in _transactions(view, end):
        if each.last_offset >= start:
            yield view.topic, view.partition, transactional_ids.get(each.producer_id), *_row(each)


def _transactions(view: PartitionView, end: int) -> Iterator[TransactionRange]:
    """What the log shows, and what only the producer snapshot knows of open ones whose first records, or
    all of them, were deleted."""
    first_offsets = {each.producer_id: each.first_offset for each in view.open_transactions}
    for each in view.iter_transactions(end_offset=end):
        if each.outcome == "open":
            first = first_offsets.get(each.producer_id, each.first_offset)
            yield each._replace(first_offset=min(first, each.first_offset))
        else:
            yield each
    yield from (each for each in view.open_transactions if not each.batches and each.first_offset < end)


def _row(each: TransactionRange) -> tuple[Any, ...]:
    has_marker = each.last_offset > each.last_data_offset
    return (
        each.producer_id,
        each.producer_epoch,
        each.outcome,
        each.first_offset,
        each.last_data_offset,
        each.last_offset if has_marker else None,
        each.batches,
        each.records,
        each.bytes,
        microseconds(each.first_timestamp),
        microseconds(each.last_timestamp),
        microseconds(each.marker_timestamp),
        None if each.coordinator_epoch < 0 else each.coordinator_epoch,
    )


TRANSACTIONS: Table[TransactionsTask] = Table(
    columns=COLUMNS,
    keywords=SELECTION | RANGES | SIZES | {"fail_on_data_loss"},
    plan=_plan,
    rows=_rows,
    arrow_schema=arrow_schema_of(COLUMNS),
)

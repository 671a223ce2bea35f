"""``table=transactions`` has one row per transaction and partition, whatever its outcome.

A row covers the whole transaction, as far as the log has it, even if only part of it is in the requested
offsets. Its owner follows from the producer id, which belongs to one transactional id for ever; the driver
reads the coordinator's log for that, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from txnkafka._core.read_committed import TransactionRange
from txnkafka.logdir.requested import offsets_of
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
    """Partitions, and the transactional id of each producer id in the coordinator's log."""

    sources: Sources
    transactional_ids: Mapping[int, str]


def _plan(paths: Iterable[str], options: ReadOptions, parallelism: int) -> list[TransactionsTask]:
    log_dir = open_log_dir(paths, options)
    partitions = chosen_partitions(log_dir, options)
    report(log_dir.coordinator.findings)
    transactional_ids = log_dir.coordinator.transactional_ids
    tasks = source_tasks(log_dir, partitions, options, parallelism)
    return [TransactionsTask(sources, transactional_ids) for sources in tasks]


def _rows(
    tasks: Iterable[TransactionsTask], schema: pa.Schema, options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    # open transactions are above the last stable offset, and are also rows
    request = replace(options.request, isolation_level=IsolationLevel.READ_UNCOMMITTED)
    options = replace(options, request=request)
    for task in tasks:
        read = partial(_partition, options=options, transactional_ids=task.transactional_ids)
        yield from batches_of_rows(each_partition(task.sources, read), COLUMNS, schema)


def _partition(
    view: PartitionView, options: ReadOptions, transactional_ids: Mapping[int, str]
) -> Iterator[tuple[Any, ...]]:
    start, end = offsets_of(view, partition_request(view, options))
    report(view.findings)
    for txn in _transactions(view, end):
        if txn.last_offset >= start:
            yield view.topic, view.partition, transactional_ids.get(txn.producer_id), *_row(txn)


def _transactions(view: PartitionView, end: int) -> Iterator[TransactionRange]:
    """Yield the transactions in the log, and open ones whose first records, or all of them, were deleted,
    which are only in the producer snapshot."""
    first_offsets = {txn.producer_id: txn.first_offset for txn in view.open_transactions}
    for txn in view.iter_transactions(end_offset=end):
        if txn.outcome == "open":
            first = first_offsets.get(txn.producer_id, txn.first_offset)
            yield txn._replace(first_offset=min(first, txn.first_offset))
        else:
            yield txn
    yield from (txn for txn in view.open_transactions if not txn.batches and txn.first_offset < end)


def _row(transaction: TransactionRange) -> tuple[Any, ...]:
    has_marker = transaction.last_offset > transaction.last_data_offset
    return (
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.outcome,
        transaction.first_offset,
        transaction.last_data_offset,
        transaction.last_offset if has_marker else None,
        transaction.batches,
        transaction.records,
        transaction.bytes,
        microseconds(transaction.first_timestamp),
        microseconds(transaction.last_timestamp),
        microseconds(transaction.marker_timestamp),
        None if transaction.coordinator_epoch < 0 else transaction.coordinator_epoch,
    )


TRANSACTIONS: Table[TransactionsTask] = Table(
    columns=COLUMNS,
    keywords=SELECTION | RANGES | SIZES | {"fail_on_data_loss"},
    plan=_plan,
    rows=_rows,
    arrow_schema=arrow_schema_of(COLUMNS),
)

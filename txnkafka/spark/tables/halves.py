"""``table=halves`` has the transactional messages of ``txnkafka.checkback``, from ``__txn_half``.

A row is a half, also one that is done, until its outcome is forgotten. A task replays whole partitions of
that topic, as the owner of the partition does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from txnkafka.checkback.half_topics import HALF_TOPIC
from txnkafka.coordinator.half.half_history import HalfHistory
from txnkafka.errors import CorruptRecordError
from txnkafka.logdir.requested import records_requested
from txnkafka.shown import plain_name
from txnkafka.spark.options import ReadOptions
from txnkafka.spark.plan import open_log_dir, report
from txnkafka.spark.read import damage_fails_the_job, damage_handler
from txnkafka.spark.tables.partition_tasks import Sources, each_partition, source_tasks
from txnkafka.spark.tables.table import (
    HALF_TARGETS,
    INT,
    LONG,
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

    from txnkafka.coordinator.half.half_history import HalfEntry
    from txnkafka.logdir import PartitionView

COLUMNS = table_columns(
    {
        "transactionId": STRING,
        "producerGroup": STRING,
        "state": STRING,
        "outcome": STRING,
        "decidedBy": STRING,
        "reason": STRING,
        "asks": INT,
        "bornTimestamp": TIMESTAMP,
        "lastAskedTimestamp": TIMESTAMP,
        "decidedTimestamp": TIMESTAMP,
        "endedTimestamp": TIMESTAMP,
        "targets": HALF_TARGETS,
        "records": LONG,
        "partition": INT,
        "offset": LONG,
    },
    nullable=(
        "outcome",
        "decidedBy",
        "reason",
        "bornTimestamp",
        "lastAskedTimestamp",
        "decidedTimestamp",
        "endedTimestamp",
        "records",
        "offset",
    ),
)


def _plan(paths: Iterable[str], options: ReadOptions, parallelism: int) -> list[Sources]:
    log_dir = open_log_dir(paths, options)
    partitions = [each for each in log_dir.topic_partitions if each.topic == HALF_TOPIC]
    return source_tasks(log_dir, partitions, options, parallelism)


def _rows(tasks: Iterable[Sources], schema: pa.Schema, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    with damage_fails_the_job():
        for sources in tasks:
            read = partial(_partition, options=options)
            yield from batches_of_rows(each_partition(sources, read), COLUMNS, schema)


def _partition(view: PartitionView, options: ReadOptions) -> Iterator[tuple[Any, ...]]:
    history, on_corrupt = HalfHistory(), damage_handler(options)
    request = replace(options.request, on_corrupt=on_corrupt or "stop")
    for record in records_requested(view, request):
        reason = history.replay(record.offset, record.key, record.value)
        if reason is not None:
            _left_out(
                CorruptRecordError(reason, offset=record.offset, **view.topic_partition._asdict()), on_corrupt
            )
    report(view.findings)
    for entry in history:
        yield *_row(entry), view.partition, entry.offset


def _left_out(error: CorruptRecordError, on_corrupt: Any) -> None:
    if on_corrupt is None:
        raise error
    on_corrupt(error)


def _row(entry: HalfEntry) -> tuple[Any, ...]:
    counts = [each.records for each in entry.targets if each.records is not None]
    is_known = len(counts) == len(entry.targets) > 0
    return (
        entry.transaction_id,
        entry.producer_group,
        entry.state.value,
        None if entry.outcome is None else entry.outcome.name.lower(),
        None if entry.by is None else entry.by.name.lower(),
        entry.reason,
        entry.asks,
        *(
            None if milliseconds is None else microseconds(milliseconds)
            for milliseconds in (entry.born_ms, entry.last_asked_ms, entry.decided_ms, entry.ended_ms)
        ),
        [{**each._asdict(), "topic": plain_name(each.topic)} for each in entry.targets],
        sum(counts) if is_known else None,
    )


HALVES: Table[Sources] = Table(
    columns=COLUMNS,
    keywords=SIZES | {"fail_on_data_loss"},
    plan=_plan,
    rows=_rows,
    arrow_schema=arrow_schema_of(COLUMNS),
)

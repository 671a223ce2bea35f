"""``table=offsets`` has the offsets that groups have committed, from ``__consumer_offsets``.

A row is the committed offset of a group and partition, or one that is pending in an open transaction. A task
replays whole partitions of that topic, since the last record of a key decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC
from txnkafka.errors import LogDirError
from txnkafka.logdir.groups import replay_offsets_log
from txnkafka.spark.options import ReadOptions
from txnkafka.spark.plan import report
from txnkafka.spark.tables.partition_tasks import Sources, each_partition, plan_partitions
from txnkafka.spark.tables.table import (
    BOOLEAN,
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

    from txnkafka.logdir import PartitionView
    from txnkafka.wire.records import GroupOffset

COLUMNS = table_columns(
    {
        "group": STRING,
        "topic": STRING,
        "partition": INT,
        "topicId": STRING,
        "offset": LONG,
        "leaderEpoch": INT,
        "metadata": STRING,
        "commitTimestamp": TIMESTAMP,
        "expireTimestamp": TIMESTAMP,
        "pending": BOOLEAN,
        "producerId": LONG,
    },
    nullable=("topicId", "leaderEpoch", "commitTimestamp", "expireTimestamp", "producerId"),
)


def _plan(paths: Iterable[str], options: ReadOptions, parallelism: int) -> list[Sources]:
    return plan_partitions(paths, replace(options, topics=(CONSUMER_OFFSETS_TOPIC,)), parallelism)


def _rows(tasks: Iterable[Sources], schema: pa.Schema, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    for sources in tasks:
        read = partial(_partition, options=options)
        yield from batches_of_rows(each_partition(sources, read), COLUMNS, schema)


def _partition(view: PartitionView, options: ReadOptions) -> Iterator[tuple[Any, ...]]:
    groups = replay_offsets_log([view])
    if groups.findings and options.fail_on_data_loss:
        finding = groups.findings[0]
        raise LogDirError(f"{finding.file}: {finding.message}; failOnDataLoss=false shows what could be read")
    report(groups.findings)
    for committed in groups.committed.values():
        yield *_row(committed), False, None
    for pending in groups.pending.values():
        for offset in pending:
            yield *_row(offset.committed), True, offset.producer_id


def _row(committed: GroupOffset) -> tuple[Any, ...]:
    return (
        committed.group,
        committed.topic,
        committed.partition,
        committed.topic_id,
        committed.offset,
        None if committed.leader_epoch < 0 else committed.leader_epoch,
        committed.metadata,
        microseconds(committed.commit_timestamp),
        microseconds(committed.expire_timestamp),
    )


OFFSETS: Table[Sources] = Table(
    columns=COLUMNS,
    keywords=SIZES | {"fail_on_data_loss"},
    plan=_plan,
    rows=_rows,
    arrow_schema=arrow_schema_of(COLUMNS),
)

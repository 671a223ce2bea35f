"""``txnkafka txn`` lists, describes and aborts the transactions of a cluster, as ``kafka-transactions.sh``
does. ``txnkafka txns`` reads directories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.cluster_options import cluster_options, opened
from txnkafka.cli.command import WordOf
from txnkafka.cli.command_group import CommandGroup
from txnkafka.cli.output import Layout, write_paragraph, write_text
from txnkafka.cli.rows import Row, format_option, write_rows
from txnkafka.cli.txn_two_phase import complete, held_back, open_for_long, refuse_prepared, with_limit
from txnkafka.cli.txns import OPEN, STATES
from txnkafka.env import SystemClock
from txnkafka.shown import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txnkafka.cli.output import Messages
    from txnkafka.client.admin import (
        AbortTransactionSpec,
        Admin,
        HangingTransaction,
        ProducerState,
        TransactionDescription,
    )
    from txnkafka.model import TopicPartition

FINDINGS = 1
ONE_MINUTE_MS = 60_000
LISTED = {
    "TransactionalId": "transactional_id",
    "Coordinator": "coordinator",
    "ProducerId": "producer_id",
    "TransactionState": "transaction_state",
}
DESCRIBED = {
    "ProducerEpoch": "producer_epoch",
    "TransactionTimeoutMs": "transaction_timeout_ms",
    "CurrentTransactionStartTimeMs": "current_transaction_start_time_ms",
    "TransactionDurationMs": "transaction_duration_ms",
    "TopicPartitions": "topic_partitions",
}
PRODUCERS = {
    "Topic": "topic",
    "Partition": "partition",
    "ProducerId": "producer_id",
    "ProducerEpoch": "producer_epoch",
    "LatestCoordinatorEpoch": "coordinator_epoch",
    "LastSequence": "last_sequence",
    "LastTimestamp": "last_timestamp",
    "CurrentTransactionStartOffset": "current_transaction_start_offset",
}
HANGING = {
    "Topic": "topic",
    "Partition": "partition",
    "ProducerId": "producer_id",
    "ProducerEpoch": "producer_epoch",
    "CoordinatorEpoch": "coordinator_epoch",
    "StartOffset": "start_offset",
    "LastTimestamp": "last_timestamp",
    "Duration(min)": "duration_min",
}
HANGING_WIDE = {"TransactionalId": "transactional_id", "TwoPhase": "is_two_phase"}
TABLES = ("text", "wide")
IDS = Layout(("TransactionalId", "TopicPartitions"))


@click.group(cls=CommandGroup, short_help="List, describe and abort transactions of a cluster.")
def txn() -> None:
    """List, describe and abort transactions: in a data directory (--data), which this command opens for its
    duration, or on brokers (--bootstrap). 'txnkafka txns' reads the directories of a broker that runs."""


txn.add_command(complete)


@txn.command("list", short_help="List transactional ids.")
@click.option(
    "--state",
    "states",
    type=WordOf(STATES, case_sensitive=False),
    multiple=True,
    help="Only ids in this state. Repeatable.",
)
@click.option("--producer-id", "producer_ids", type=int, multiple=True, help="Only this one. Repeatable.")
@click.option(
    "--duration-filter",
    type=click.IntRange(min=0),
    metavar="MS",
    help="Only transactions that are open for longer; ids without a transaction stay.",
)
@click.option(
    "--transactional-id-pattern", metavar="REGEX", help="Only ids that a regular expression (RE2) matches."
)
@click.option(
    "--two-phase", is_flag=True, help="Only open transactions with two-phase commit: they have no timeout."
)
@cluster_options
@format_option
@click.pass_obj
def list_(
    messages: Messages,
    /,
    *,
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    duration_filter: int | None,
    transactional_id_pattern: str | None,
    two_phase: bool,
    output_format: str,
    **options: Any,
) -> int:
    """List the transactional ids of all coordinators, each with its producer and the state of its
    transaction; with --two-phase also the duration and the partitions, oldest first."""
    if two_phase and (states or producer_ids):
        raise click.UsageError("--two-phase excludes --state and --producer-id")
    with opened(messages, options) as cluster, cluster.admin() as admin:
        if two_phase:
            open_ones = admin.list_two_phase_transactions(
                min_duration_ms=duration_filter or 0, pattern=transactional_id_pattern
            )
            _write_described(open_ones, output_format)
            return 0
        listed = admin.list_transactions(
            states=states,
            producer_ids=producer_ids,
            min_duration_ms=duration_filter,
            pattern=transactional_id_pattern,
        )
    rows = [
        {
            "transactional_id": each.transactional_id,
            "coordinator": each.coordinator,
            "producer_id": each.producer_id,
            "transaction_state": each.state,
        }
        for each in listed
    ]
    write_rows(rows, output_format, LISTED, {}, IDS)
    return 0


@txn.command(short_help="Show transactional ids with their open transactions.")
@click.argument("ids", metavar="TRANSACTIONAL_ID...", nargs=-1, required=True)
@cluster_options
@format_option
@click.pass_obj
def describe(messages: Messages, /, *, ids: tuple[str, ...], output_format: str, **options: Any) -> int:
    """Show transactional ids with the partitions of their open transactions.

    Exit status: 2 when an id does not exist."""
    with opened(messages, options) as cluster, cluster.admin() as admin:
        found = admin.describe_transactions(ids)
    _write_described(found.values(), output_format)
    return 0


@txn.command(short_help="Show the producers of partitions.")
@click.option("--topic", required=True, metavar="T", help="The topic.")
@click.option("--partition", type=click.IntRange(min=0), metavar="P", help="Default: all its partitions.")
@click.option("--broker-id", type=int, metavar="N", help="Ask the replica on this broker, not the leader.")
@cluster_options
@format_option
@click.pass_obj
def describe_producers(
    messages: Messages,
    /,
    *,
    topic: str,
    partition: int | None,
    broker_id: int | None,
    output_format: str,
    **options: Any,
) -> int:
    """Show the producers that have written to the partitions of a topic, with their open transactions.

    Exit status: 2 when the topic or partition does not exist."""
    with opened(messages, options) as cluster, cluster.admin() as admin:
        partitions = _partitions(admin, topic, partition)
        found = admin.describe_producers(partitions, broker_id=broker_id)
    rows = [{**place._asdict(), **state._asdict()} for place, states in found.items() for state in states]
    write_rows(rows, output_format, PRODUCERS, {}, Layout(("Topic",)))
    return 0


@txn.command(short_help="Find transactions that nothing will end.")
@click.option("--topic", metavar="T", help="Search this topic; default: all topics.")
@click.option("--partition", type=click.IntRange(min=0), metavar="P", help="Search this one of --topic.")
@click.option("--broker-id", type=int, metavar="N", help="Search the replicas on this broker.")
@click.option(
    "--max-transaction-timeout",
    "max_minutes",
    type=click.IntRange(min=0),
    default=15,
    show_default=True,
    metavar="MINUTES",
    help="The brokers' transaction.max.timeout.ms: a younger transaction never counts as hanging.",
)
@cluster_options
@format_option
@click.pass_obj
def find_hanging(
    messages: Messages,
    /,
    *,
    topic: str | None,
    partition: int | None,
    broker_id: int | None,
    max_minutes: int,
    output_format: str,
    **options: Any,
) -> int:
    """Find hanging transactions: open in a partition for longer than any transaction may be, but not part of
    the transaction that a coordinator has for their producer. They hold back read_committed consumers;
    'txnkafka txn abort' ends one. Old transactions of a two-phase commit do not hang, and are named after
    the table.

    Exit status: 1 when transactions hang."""
    from txnkafka.model import TopicPartition

    if partition is not None and topic is None:
        raise click.UsageError("--partition needs --topic")
    with opened(messages, options) as cluster, cluster.admin() as admin:
        found = admin.find_hanging_transactions(
            topics=topic,
            partitions=None if partition is None else [TopicPartition(topic or "", partition)],
            broker_id=broker_id,
            max_transaction_timeout_ms=max_minutes * ONE_MINUTE_MS,
        )
        is_table = output_format in TABLES
        waiting = open_for_long(admin, topic, partition, max_minutes * ONE_MINUTE_MS) if is_table else []
    now_ms = SystemClock().now_ms()
    write_rows(
        [_hanging(each, now_ms) for each in found], output_format, HANGING, HANGING_WIDE, Layout(("Topic",))
    )
    if is_table:
        for each in found:
            write_paragraph(_advice(each))
        for description in waiting:
            write_paragraph(held_back(description, now_ms))
        write_paragraph(counted(len(found), "hanging transaction"))
    return FINDINGS if found else 0


@txn.command(short_help="Abort a hanging transaction in its partition.", changes=True)
@click.option("--topic", required=True, metavar="T", help="The topic.")
@click.option("--partition", type=click.IntRange(min=0), required=True, metavar="P", help="The partition.")
@click.option("--start-offset", type=click.IntRange(min=0), help="First offset of the transaction.")
@click.option("--producer-id", type=int, help="Instead of --start-offset, with --producer-epoch.")
@click.option("--producer-epoch", type=int, help="The epoch of --producer-id.")
@click.option(
    "--coordinator-epoch", type=int, default=-1, help="Of the producer's last end marker; default: none."
)
@click.option("--dry-run", is_flag=True, help="Only name the transaction.")
@cluster_options
@click.pass_obj
def abort(
    messages: Messages,
    /,
    *,
    topic: str,
    partition: int,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int,
    dry_run: bool,
    **options: Any,
) -> int:
    """Abort an open transaction in one partition, by an ABORT marker. Its coordinator does not learn of it:
    use this for transactions that hang ('txnkafka txn find-hanging'), and 'txnkafka txn fence' for
    transactions that are merely open. An open transaction of a two-phase commit is refused.

    Exit status: 2 when no transaction begins at --start-offset, or the transaction or marker is refused."""
    from txnkafka.client.admin import AbortTransactionSpec

    if (start_offset is None) == (producer_id is None) or (producer_id is None) != (producer_epoch is None):
        raise click.UsageError("name the transaction: --start-offset, or --producer-id and --producer-epoch")
    with opened(messages, options) as cluster, cluster.admin() as admin:
        if start_offset is not None:
            spec = _starting_at(admin, topic, partition, start_offset)
        else:
            spec = AbortTransactionSpec(
                topic, partition, producer_id or 0, producer_epoch or 0, coordinator_epoch
            )
        refuse_prepared(admin, spec)
        if not dry_run:
            admin.abort_transaction(spec)
    verb = "would be aborted" if dry_run else "aborted"
    write_text(
        f"{topic}-{partition}: {verb}: the transaction of producer {spec.producer_id}, "
        f"epoch {spec.producer_epoch}"
    )
    return 0


@txn.command(short_help="Fence the producers of transactional ids.", changes=True)
@click.argument("ids", metavar="TRANSACTIONAL_ID...", nargs=-1, required=True)
@cluster_options
@click.pass_obj
def fence(messages: Messages, /, *, ids: tuple[str, ...], **options: Any) -> int:
    """Fence the producers of transactional ids: open transactions are aborted, and running producers with
    these ids fail at their next request. An unused id is created.

    Exit status: 2 when an id could not be fenced; the others are fenced."""
    with opened(messages, options) as cluster, cluster.admin() as admin:
        for name, producer in admin.fence_producers(ids).items():
            write_text(f"{name}: fenced; producer {producer.producer_id}, epoch {producer.producer_epoch}")
    return 0


def _write_described(found: Iterable[TransactionDescription], output_format: str) -> None:
    now_ms = SystemClock().now_ms()
    rows = [_description(each, now_ms) for each in found]
    shown = [with_limit(row) for row in rows] if output_format in TABLES else rows
    write_rows(shown, output_format, {**LISTED, **DESCRIBED}, {}, IDS)


def _description(found: TransactionDescription, now_ms: int) -> Row:
    start_ms = found.transaction_start_time_ms
    is_open = start_ms is not None and found.state in OPEN
    return {
        "transactional_id": found.transactional_id,
        "coordinator": found.coordinator,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "transaction_state": found.state,
        "transaction_timeout_ms": found.transaction_timeout_ms,
        "current_transaction_start_time_ms": start_ms,
        "transaction_duration_ms": max(now_ms - (start_ms or 0), 0) if is_open else None,
        "topic_partitions": sorted(map(str, found.topic_partitions)),
    }


def _partitions(admin: Admin, topic: str, partition: int | None) -> list[TopicPartition]:
    from txnkafka.model import TopicPartition

    if partition is not None:
        return [TopicPartition(topic, partition)]
    described = admin.describe_topics(topic)[topic]
    return [TopicPartition(topic, each.partition) for each in described.partitions]


def _hanging(found: HangingTransaction, now_ms: int) -> Row:
    row = found._asdict()
    place = row.pop("topic_partition")
    duration_ms = max(0, now_ms - found.last_timestamp)
    return {
        **place._asdict(),
        **row,
        "duration_ms": duration_ms,
        "duration_min": duration_ms // ONE_MINUTE_MS,
    }


def _advice(found: HangingTransaction) -> str:
    topic, partition = found.topic_partition
    two_phase = " (its id takes part in two-phase commits: first look for the outcome in the other system)"
    return (
        f"{found.topic_partition}: no end marker will come"
        f"{two_phase if found.is_two_phase else ''}; to abort: txnkafka txn abort --topic {topic} "
        f"--partition {partition} --start-offset {found.start_offset}"
    )


def _starting_at(admin: Admin, topic: str, partition: int, offset: int) -> AbortTransactionSpec:
    """Return the open transaction that begins at an offset. Raises KafkaError if none does."""
    from txnkafka.client.admin import AbortTransactionSpec
    from txnkafka.errors import KafkaError
    from txnkafka.model import TopicPartition

    place = TopicPartition(topic, partition)
    states = admin.describe_producers([place])[place]
    for state in states:
        if state.current_transaction_start_offset == offset:
            return AbortTransactionSpec(
                topic, partition, state.producer_id, state.producer_epoch, state.coordinator_epoch
            )
    raise KafkaError(f"{place}: no open transaction begins at offset {offset}; {_open_ones(states)}")


def _open_ones(states: tuple[ProducerState, ...]) -> str:
    offsets = [each.current_transaction_start_offset for each in states]
    begun = sorted(each for each in offsets if each is not None)
    return f"open ones begin at {', '.join(map(str, begun))}" if begun else "none is open"

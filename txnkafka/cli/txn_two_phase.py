"""Transactions with two-phase commit in ``txnkafka txn``: open ones, and the command that completes one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.cluster_options import cluster_options, opened
from txnkafka.cli.command import Command
from txnkafka.cli.output import write_text
from txnkafka.shown import duration

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.cli.rows import Row
    from txnkafka.client.admin import AbortTransactionSpec, Admin, TransactionDescription

NO_TIMEOUT_MS = (1 << 31) - 1


@click.command(cls=Command, short_help="Commit a prepared transaction.")
@click.argument("transactional_id", metavar="TRANSACTIONAL_ID")
@click.option(
    "--state", required=True, metavar="PRODUCER:EPOCH", help="The state that your database has for it."
)
@cluster_options
@click.pass_obj
def complete(messages: Messages, /, *, transactional_id: str, state: str, **options: Any) -> int:
    """Commit the prepared transaction of a two-phase commit whose producer does not come back. Its producer
    is fenced. 'txnkafka txn fence' aborts it instead.

    Exit status: 2 when the id has no open transaction of this state, which then stays as it is."""
    from txnkafka.client.prepared_txn_state import PreparedTxnState

    try:
        wanted = PreparedTxnState.parse(state)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--state") from None
    with opened(messages, options) as cluster, cluster.admin() as admin:
        admin.complete_transaction(transactional_id, wanted)
    write_text(f"{transactional_id}: committed: the prepared transaction {wanted}")
    return 0


def with_limit(row: Row) -> Row:
    """Return a row of a table, in which no timeout is ``none``."""
    is_two_phase = row["transaction_timeout_ms"] == NO_TIMEOUT_MS
    return {**row, "transaction_timeout_ms": "none"} if is_two_phase else row


def open_for_long(
    admin: Admin, topic: str | None, partition: int | None, least_ms: int
) -> list[TransactionDescription]:
    """Return the transactions of two-phase commits that are open for longer, in the searched partitions."""
    return [
        each
        for each in admin.list_two_phase_transactions(min_duration_ms=least_ms)
        if any(
            topic in (None, name) and partition in (None, number) for name, number in each.topic_partitions
        )
    ]


def held_back(found: TransactionDescription, now_ms: int) -> str:
    """Return the line about an open transaction that does not hang, although it is open for long."""
    name, began_ms = found.transactional_id, found.transaction_start_time_ms
    where = ", ".join(sorted(map(str, found.topic_partitions)))
    return (
        f"{name}: does not hang: it takes part in a two-phase commit, without a time limit, and is open for "
        f"{duration(max(0, now_ms - (began_ms or now_ms)))} in {where}. If its producer does not come back: "
        f"txnkafka txn complete {name} --state {found.producer_id}:{found.producer_epoch} commits it, "
        f"txnkafka txn fence {name} aborts it"
    )


def refuse_prepared(admin: Admin, spec: AbortTransactionSpec) -> None:
    """Raise KafkaError for a transaction with two-phase commit that its coordinator has: a marker in one
    partition would divide it."""
    from txnkafka.errors import KafkaError
    from txnkafka.model import TopicPartition

    partition = TopicPartition(spec.topic, spec.partition)
    for each in admin.list_two_phase_transactions():
        is_same = (each.producer_id, each.producer_epoch) == (spec.producer_id, spec.producer_epoch)
        if is_same and partition in each.topic_partitions:
            name = each.transactional_id
            raise KafkaError(
                f"{partition}: the transaction of {name!r} takes part in a two-phase commit, and its other "
                f"partitions may be committed; 'txnkafka txn fence {name}' aborts it everywhere, "
                f"'txnkafka txn complete {name} --state {each.producer_id}:{each.producer_epoch}' commits it"
            )

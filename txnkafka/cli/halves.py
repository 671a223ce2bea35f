"""``txnkafka halves`` lists, decides, parks and resumes the halves of check-back messages."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.cluster_options import cluster_options, opened
from txnkafka.cli.command_group import CommandGroup
from txnkafka.cli.output import Layout, write_paragraph, write_text
from txnkafka.cli.rows import Row, format_option, write_rows
from txnkafka.shown import counted, iso_time

if TYPE_CHECKING:
    from txnkafka.checkback.admin import HalfMessage
    from txnkafka.checkback.message import Message
    from txnkafka.cli.cluster_options import Cluster
    from txnkafka.cli.half_verdict import Circumstances
    from txnkafka.cli.output import Messages
    from txnkafka.client.admin import Admin

COLUMNS = {
    "TRANSACTION-ID": "transaction_id",
    "GROUP": "producer_group",
    "STATE": "state",
    "BORN": "born",
    "ASKS": "asks",
    "LAST-ASKED": "last_asked",
}
WIDE = {
    "OUTCOME": "outcome",
    "DECIDED-BY": "decided_by",
    "REASON": "reason",
    "HALF-PARTITION": "partition",
    "HALF-OFFSET": "offset",
}
MESSAGE_COLUMNS = {
    name: name for name in ("topic", "partition", "timestamp", "key", "value_bytes", "headers")
}
TABLES = ("text", "wide")


@click.group(cls=CommandGroup, short_help="List and decide halves of check-back messages.")
def halves() -> None:
    """List, decide, park and resume halves: transactional messages that wait for the outcome of their local
    transaction. In a data directory (--data), which this command opens for its duration, or on brokers
    (--bootstrap)."""


@halves.command("list", short_help="List halves.")
@click.option("--group", metavar="GROUP", help="Only halves of this producer group.")
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Only halves that were sent, or parked, before that time.",
)
@cluster_options
@format_option
@click.pass_obj
def list_(
    messages: Messages, /, *, group: str | None, older_than: float | None, output_format: str, **options: Any
) -> int:
    """List the halves that are neither visible nor rolled back, also parked ones."""
    with opened(messages, options) as cluster, cluster.half_admin() as admin:
        found = admin.list_half_messages(group, older_than)
    write_rows([_row(each) for each in found], output_format, COLUMNS, WIDE, Layout(("TRANSACTION-ID",)))
    if output_format in TABLES:
        count = sum(each.state == "parked" for each in found)
        write_paragraph(f"{counted(len(found), 'half', 'halves')}, {count:,} parked")
    return 0


@halves.command(short_help="Show a half with its messages.")
@click.argument("transaction_id", metavar="TRANSACTION_ID")
@cluster_options
@format_option
@click.pass_obj
def show(messages: Messages, /, *, transaction_id: str, output_format: str, **options: Any) -> int:
    """Show a half with its messages, the reason for its state, and the command that changes it.

    Exit status: 2 when no half has this id, or it is done."""
    from txnkafka.checkback import CheckBackConfig
    from txnkafka.cli.half_verdict import explained, verdict_of

    chosen = {"--data": options["data"], "--bootstrap": options["bootstrap"]}
    with opened(messages, options) as cluster, cluster.half_admin() as admin:
        found = admin.describe_half_message(transaction_id)
        facts = _circumstances(cluster, chosen, found.producer_group)
    settings = CheckBackConfig()
    lines = explained(found, facts, settings)
    contents = [_content(each) for each in found.messages]
    if output_format not in TABLES:
        explanation = [{"kind": line.kind, "text": line.text} for line in lines]
        verdict = verdict_of(found, facts, settings).value
        row = {**_row(found), "verdict": verdict, "explanation": explanation, "messages": contents}
        write_rows([row], output_format, {}, {})
        return 0
    write_rows([_row(found)], output_format, COLUMNS, WIDE, Layout(("TRANSACTION-ID",)))
    write_rows(contents, output_format, MESSAGE_COLUMNS, {}, Layout(("topic",)))
    for line in lines:
        (write_text if line.kind == "command" else write_paragraph)(str(line))
    return 0


@halves.command(short_help="Commit or roll back a half.", changes=True)
@click.argument("transaction_id", metavar="TRANSACTION_ID")
@click.argument("outcome", type=click.Choice(("commit", "rollback")))
@cluster_options
@click.pass_obj
def decide(messages: Messages, /, *, transaction_id: str, outcome: str, **options: Any) -> int:
    """Commit or roll back a half that is not decided, whatever its producer and listener would answer. First
    check the database of the local transaction.

    Exit status: 2 when the half was decided before with the other outcome, is parked, or is unknown."""
    from txnkafka.checkback.message import LocalTransactionState

    with opened(messages, options) as cluster, cluster.half_admin() as admin:
        admin.decide(transaction_id, LocalTransactionState(outcome))
    write_text(f"{transaction_id}: {outcome}")
    return 0


@halves.command(short_help="End the checks of a half.", changes=True)
@click.argument("transaction_id", metavar="TRANSACTION_ID")
@click.option("--reason", metavar="TEXT", help="Kept with the parked half.")
@cluster_options
@click.pass_obj
def park(messages: Messages, /, *, transaction_id: str, reason: str | None, **options: Any) -> int:
    """End the checks of a half that is not decided: the resolver keeps it in __txn_check_max.

    Exit status: 2 when the half was decided before, or is unknown."""
    with opened(messages, options) as cluster, cluster.half_admin() as admin:
        admin.park(transaction_id, reason)
    write_text(f"{transaction_id}: parked")
    return 0


@halves.command(short_help="Check parked halves again.", changes=True)
@click.argument("ids", metavar="TRANSACTION_ID...", nargs=-1, required=True)
@cluster_options
@click.pass_obj
def resume(messages: Messages, /, *, ids: tuple[str, ...], **options: Any) -> int:
    """Take parked halves back: their checks begin again, with count 0.

    Exit status: 2 when a half is not parked; those before it are resumed."""
    with opened(messages, options) as cluster, cluster.half_admin() as admin:
        for transaction_id in ids:
            admin.resume_check_half_message(transaction_id)
            write_text(f"{transaction_id}: resumed")
    return 0


def _circumstances(cluster: Cluster, chosen: dict[str, str | None], group: str) -> Circumstances:
    """Look for the processes that a half may wait for; a data directory has none while it is open here."""
    from txnkafka.checkback.half_topics import RESOLVER_GROUP, check_group
    from txnkafka.cli.half_verdict import Circumstances
    from txnkafka.env import SystemClock

    options = " ".join(f"{name} {quote(value)}" for name, value in chosen.items() if value is not None)
    now_ms = SystemClock().now_ms()
    if chosen["--data"] is not None:
        return Circumstances(now_ms, None, None, options)
    with cluster.admin() as admin:
        resolvers, listeners = (_members(admin, name) for name in (RESOLVER_GROUP, check_group(group)))
    return Circumstances(now_ms, resolvers, listeners, options)


def _members(admin: Admin, group: str) -> int:
    from txnkafka.error_codes import ErrorCode
    from txnkafka.errors import KafkaError

    try:
        return len(admin.describe_groups(group)[group].members)
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return 0


def _row(half: HalfMessage) -> Row:
    return {
        "transaction_id": half.transaction_id,
        "producer_group": half.producer_group,
        "state": half.state,
        "born": _time(half.born_timestamp),
        "asks": half.asks,
        "last_asked": _time(half.last_asked_timestamp),
        "outcome": half.outcome,
        "decided_by": half.decided_by,
        "reason": half.reason,
        "partition": half.partition,
        "offset": half.offset,
    }


def _content(message: Message) -> Row:
    value, key = message.value_bytes(), message.key_bytes()
    return {
        "topic": message.topic,
        "partition": message.partition,
        "timestamp": _time(message.timestamp),
        "key": None if key is None else _text(key),
        "value": None if value is None else _text(value),
        "value_bytes": None if value is None else len(memoryview(value)),
        "headers": [name for name, _ in message.record_headers()],
    }


def _text(data: Any) -> str:
    return bytes(data).decode(errors="backslashreplace")


def _time(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else iso_time(milliseconds)

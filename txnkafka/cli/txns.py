"""``txnkafka txns`` lists the transactional ids of a directory, as ``kafka-transactions.sh`` does with a
cluster."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.command import Command
from txnkafka.cli.judgement import now_option
from txnkafka.cli.named import check_patterns, is_named
from txnkafka.cli.output import FORMATS, Layout, write_json, write_paragraph, write_table
from txnkafka.cli.progress import Progress
from txnkafka.cli.target import directory_options, open_log_dir
from txnkafka.shown import counted, duration

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.cli.target import StorageOptions
    from txnkafka.logdir import LogDir
    from txnkafka.wire.records import TransactionMetadata

__all__ = ["txns"]

FINDINGS = 1
Row = dict[str, Any]
STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
    "PrepareEpochFence",
)  # fmt: skip
OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort")

COLUMNS = {
    "TransactionalId": "transactional_id",
    "Coordinator": "coordinator",
    "ProducerId": "producer_id",
    "TransactionState": "transaction_state",
}
WIDE = {
    **COLUMNS,
    "ProducerEpoch": "producer_epoch",
    "TransactionTimeoutMs": "transaction_timeout_ms",
    "CurrentTransactionStartTimeMs": "current_transaction_start_time_ms",
    "TransactionDurationMs": "transaction_duration_ms",
    "TopicPartitions": "topic_partitions",
}
OPEN_COLUMNS = ("OpenFor", "Timeout", "Partitions")
DROPPABLE = ("Coordinator", "Partitions", "Timeout")
NAMES = ("TransactionalId", "TopicPartitions")


@click.command(cls=Command, short_help="List transactional ids and their transactions.")
@directory_options
@click.option(
    "--transactional-id",
    "patterns",
    multiple=True,
    metavar="ID",
    help="Only this one, or those that a pattern such as 'shop-*' matches. Repeatable.",
)
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES, case_sensitive=False),
    multiple=True,
    help="Only those in this state. Repeatable.",
)
@now_option
@click.option("--format", "output_format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.pass_obj
def txns(
    messages: Messages,
    /,
    *,
    logdir: tuple[str, ...],
    io: str,
    storage_options: StorageOptions,
    patterns: tuple[str, ...],
    states: tuple[str, ...],
    now: int | None,
    output_format: str,
) -> int:
    """List the transactional ids in LOGDIR's partitions of __transaction_state, each with the state that its
    coordinator wrote last, as 'kafka-transactions.sh list' does; --format wide and json show what 'describe'
    does. 'txnkafka lso' shows which of them hold up a partition.

    LOGDIR is a log directory, a copy of one, or a single partition directory. Several count as directories of
    one broker.

    Exit status: 1 when part of the coordinator's log could not be read, 2 when nothing of it is in LOGDIR.
    """
    with Progress(messages) as progress:
        log_dir = open_log_dir(logdir, io, messages, storage_options)
        progress.phase("loading __transaction_state")
        rows = _rows(log_dir, now)
    for finding in log_dir.coordinator.findings:
        messages.finding(finding)
    names, place = [row["transactional_id"] for row in rows], ", ".join(log_dir.paths)
    check_patterns(patterns, names, "transactional id", "transactional ids", place)
    chosen = [row for row in rows if _is_chosen(row, patterns, states)]
    if output_format == "json":
        write_json(chosen)
    elif output_format == "jsonl":
        for row in chosen:
            write_json(row)
    else:
        _write(chosen, wide=output_format == "wide")
    return FINDINGS if log_dir.coordinator.findings else 0


def _rows(log_dir: LogDir, now: int | None) -> list[Row]:
    from txnkafka.env import SystemClock
    from txnkafka.errors import UnknownTopicOrPartitionError
    from txnkafka.logdir.clock import DirectoryClock

    coordinator = log_dir.coordinator
    if not coordinator.partitions:
        raise UnknownTopicOrPartitionError(
            f"no partition of __transaction_state in {', '.join(log_dir.paths)}: the transactional ids are "
            "in the log directories that contain them"
        )
    now_ms = DirectoryClock(log_dir, SystemClock().now_ms(), now).at().now_ms
    return [
        _row(state, coordinator.located[name], now_ms)
        for name, state in sorted(coordinator.transactions.items())
    ]


def _row(state: TransactionMetadata, partition: int, now_ms: int) -> Row:
    start = state.start_timestamp if state.start_timestamp >= 0 else None
    is_open = start is not None and state.state.label in OPEN
    return {
        "transactional_id": state.transactional_id,
        "coordinator": f"__transaction_state-{partition}",
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "transaction_state": state.state.label,
        "transaction_timeout_ms": state.transaction_timeout_ms,
        "current_transaction_start_time_ms": start,
        "transaction_duration_ms": max(now_ms - (start or 0), 0) if is_open else None,
        "topic_partitions": sorted(map(str, state.topic_partitions)),
        "last_update_time_ms": state.last_update_timestamp,
    }


def _is_chosen(row: Row, patterns: tuple[str, ...], states: tuple[str, ...]) -> bool:
    of_state = not states or row["transaction_state"] in states
    return of_state and is_named(row["transactional_id"], patterns)


def _write(rows: list[Row], *, wide: bool) -> None:
    if wide:
        shown = [{**row, "topic_partitions": " ".join(row["topic_partitions"]) or None} for row in rows]
        write_table(list(WIDE), [[row[name] for name in WIDE.values()] for row in shown], Layout(NAMES))
    else:
        cells = [[*(row[name] for name in COLUMNS.values()), *_open_for(row)] for row in rows]
        write_table([*COLUMNS, *OPEN_COLUMNS], cells, Layout(NAMES, DROPPABLE))
    states = Counter(row["transaction_state"] for row in rows)
    counts = ", ".join(f"{states[state]:,} {state}" for state in STATES if states[state])
    write_paragraph(f"{counted(len(rows), 'transactional id')}{': ' if counts else ''}{counts}")


def _open_for(row: Row) -> tuple[object, ...]:
    """Return what a person wants to know of an open transaction, nothing of another."""
    if row["transaction_duration_ms"] is None:
        return None, None, None
    times = row["transaction_duration_ms"], row["transaction_timeout_ms"]
    return (*map(duration, times), len(row["topic_partitions"]))

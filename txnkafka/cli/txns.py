"""``txnkafka txns`` lists the transactional ids of a directory, as ``kafka-transactions.sh`` does for a
cluster."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.command import Command
from txnkafka.cli.judgement import Judges, judge_options
from txnkafka.cli.named import check_patterns, is_named
from txnkafka.cli.output import FORMATS, Layout, write_json, write_paragraph, write_table
from txnkafka.cli.progress import Progress
from txnkafka.cli.target import directory_options
from txnkafka.cli.txn_two_phase import NO_TIMEOUT_MS, with_limit
from txnkafka.shown import counted, duration

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.logdir import LogDir
    from txnkafka.wire.records import TransactionMetadata

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
    "HangsIn": "hanging_partitions",
}
OPEN_COLUMNS = ("OpenFor", "Timeout", "Partitions")
DROPPABLE = ("Coordinator", "Partitions", "Timeout", "OpenFor")
LISTS = ("topic_partitions", "hanging_partitions")
NAMES = ("TransactionalId", "TopicPartitions", "HangsIn")


@click.command(cls=Command, short_help="List transactional ids and their transactions.")
@directory_options
@click.option(
    "--transactional-id",
    "patterns",
    multiple=True,
    metavar="ID",
    help="Only this id, or a pattern such as 'shop-*'. Repeatable.",
)
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES, case_sensitive=False),
    multiple=True,
    help="Only ids in this state. Repeatable.",
)
@judge_options
@click.option("--format", "output_format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.pass_obj
def txns(
    messages: Messages,
    /,
    *,
    patterns: tuple[str, ...],
    states: tuple[str, ...],
    output_format: str,
    **options: Any,
) -> int:
    """List the transactional ids in LOGDIR's partitions of __transaction_state, each with the last state that
    its coordinator wrote, like 'kafka-transactions.sh list'; --format wide and json add the fields of
    'describe'. HangsIn names the partitions in LOGDIR where a transaction of the id hangs, whatever its
    state; 'txnkafka lso' shows the next step.

    LOGDIR is a log directory, a copy of one, or a single partition directory. Several count as directories of
    one broker.

    Exit status: 1 when a transaction hangs in a partition or part of the coordinator's log could not be read,
    2 when LOGDIR has no partition of that log or a partition could not be read."""
    with Progress(messages) as progress:
        judges = Judges(messages, progress, topic=(), partition=(), **options)
        log_dir, now_ms = judges.log_dir, judges.now_ms()
        _check(log_dir)
        hanging = _hanging(judges)
    rows = [
        _row(state, log_dir.coordinator.located[name], now_ms, hanging[name])
        for name, state in sorted(log_dir.coordinator.transactions.items())
    ]
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
    if hanging[None] and not patterns and not states:
        messages.warning(
            f"a transaction whose producer has no transactional id here hangs in {', '.join(hanging[None])}"
        )
    found = any(row["hanging_partitions"] for row in chosen) or log_dir.coordinator.findings
    return max(judges.could_not, FINDINGS if found else 0)


def _check(log_dir: LogDir) -> None:
    from txnkafka.errors import UnknownTopicOrPartitionError

    if not log_dir.coordinator.partitions:
        raise UnknownTopicOrPartitionError(
            f"no partition of __transaction_state in {', '.join(log_dir.paths)}: the transactional ids are "
            "in the log directories that contain them"
        )


def _hanging(judges: Judges) -> defaultdict[str | None, list[str]]:
    """Return the partitions with hanging transactions, by transactional id (None: unknown id)."""
    found: defaultdict[str | None, list[str]] = defaultdict(list)
    for report, _ in judges.judged(lambda view, report: None, only_stuck=False):
        for each in report.open_transactions:
            if each.verdict.needs_marker:
                found[each.transactional_id].append(f"{report.topic}-{report.partition}")
    return found


def _row(state: TransactionMetadata, partition: int, now_ms: int, hanging: list[str]) -> Row:
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
        "hanging_partitions": hanging,
    }


def _is_chosen(row: Row, patterns: tuple[str, ...], states: tuple[str, ...]) -> bool:
    of_state = not states or row["transaction_state"] in states
    return of_state and is_named(row["transactional_id"], patterns)


def _write(rows: list[Row], *, wide: bool) -> None:
    hanging = [row["hanging_partitions"] for row in rows if row["hanging_partitions"]]
    if wide:
        shown = [with_limit({**row, **{name: " ".join(row[name]) or None for name in LISTS}}) for row in rows]
        write_table(list(WIDE), [[row[name] for name in WIDE.values()] for row in shown], Layout(NAMES))
    else:
        cells = [[*(row[name] for name in COLUMNS.values()), *_open_for(row)] for row in rows]
        names = [*COLUMNS, *OPEN_COLUMNS]
        if hanging:
            names.append("HangsIn")
            for row, line in zip(rows, cells, strict=True):
                line.append(" ".join(row["hanging_partitions"]) or None)
        write_table(names, cells, Layout(NAMES, DROPPABLE))
    states = Counter(row["transaction_state"] for row in rows)
    counts = ", ".join(f"{states[state]:,} {state}" for state in STATES if states[state])
    write_paragraph(f"{counted(len(rows), 'transactional id')}{': ' if counts else ''}{counts}")
    if hanging:
        ids, has = counted(len(rows), "transactional id"), "has" if len(hanging) == 1 else "have"
        partitions = counted(len({*chain.from_iterable(hanging)}), "partition")
        text = f"{len(hanging):,} of {ids} {has} a hanging transaction, in {partitions}"
        write_paragraph(f"{text}; 'txnkafka lso' shows what to do", "hanging")


def _open_for(row: Row) -> tuple[object, ...]:
    """Return the duration, timeout and number of partitions of an open transaction; three times None
    otherwise."""
    if row["transaction_duration_ms"] is None:
        return None, None, None
    timeout = row["transaction_timeout_ms"]
    shown = "none" if timeout == NO_TIMEOUT_MS else duration(timeout)
    return duration(row["transaction_duration_ms"]), shown, len(row["topic_partitions"])

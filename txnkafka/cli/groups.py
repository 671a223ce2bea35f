"""``txnkafka groups`` lists the committed offsets of groups, as ``kafka-consumer-groups.sh`` does for a
cluster, and the transaction that each waiting group waits for."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from txnkafka.cli.command import Command
from txnkafka.cli.judgement import Judges, judge_options
from txnkafka.cli.live_groups import Request, Selection, live_options
from txnkafka.cli.live_groups import run as run_live
from txnkafka.cli.named import is_named
from txnkafka.cli.output import FORMATS, Layout, printable, write_json, write_paragraph, write_table
from txnkafka.cli.progress import Progress
from txnkafka.cli.target import target_options
from txnkafka.shown import counted, iso_time, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnkafka.cli.output import Messages
    from txnkafka.logdir.explain import Explanation, JudgedTransaction
    from txnkafka.logdir.group_lag import GroupLag, PendingCommit
    from txnkafka.model import TopicPartition

FINDINGS = 1
MOST_LISTED = 10

COLUMNS = {
    "GROUP": "group",
    "TOPIC": "topic",
    "PARTITION": "partition",
    "CURRENT-OFFSET": "current_offset",
    "LOG-END-OFFSET": "log_end_offset",
    "LAG": "lag",
    "STABLE-OFFSET": "last_stable_offset",
    "STABLE-LAG": "stable_lag",
    "PENDING": "pending",
    "WAITS-BEHIND": "waits",
}
WIDE = {
    **COLUMNS,
    "VERDICT": "verdict",
    "CONSUMER-ID": "consumer_id",
    "HOST": "host",
    "CLIENT-ID": "client_id",
    "LEADER-EPOCH": "leader_epoch",
    "METADATA": "metadata",
    "COMMITTED-AT": "committed_at",
}
NAMES = ("GROUP", "TOPIC", "WAITS-BEHIND", "CONSUMER-ID", "CLIENT-ID", "METADATA")
OF_FILES = {
    "logdir": "LOGDIR", "io": "--io", "storage_options": "--storage-option", "waiting": "--waiting",
    "now": "--now", "max_minutes": "--max-transaction-timeout",
}  # fmt: skip
DROPPABLE = ("STABLE-OFFSET", "LOG-END-OFFSET", "PENDING", "LAG", "CURRENT-OFFSET")


@click.command(cls=Command, short_help="List the offsets of groups, and what they wait for.")
@target_options
@click.option(
    "--group",
    "patterns",
    multiple=True,
    metavar="GROUP",
    help="Only this group, or a pattern such as 'billing*'. Repeatable.",
)
@click.option("--waiting", is_flag=True, help="Only groups that wait for a transaction.")
@judge_options
@live_options
@click.option("--format", "output_format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.pass_obj
def groups(
    messages: Messages,
    /,
    *,
    patterns: tuple[str, ...],
    waiting: bool,
    output_format: str,
    **options: Any,
) -> int:
    """List the offsets that groups have committed, from LOGDIR's partitions of __consumer_offsets, as
    'kafka-consumer-groups.sh --describe' does. LAG is the distance to the log end, STABLE-LAG the distance to
    the last stable offset, where a read_committed consumer stops. A group that has reached the last stable
    offset waits for the transaction that holds it.

    LOGDIR is a log directory, a copy of one, or a single partition directory. Several count as directories of
    one broker. --topic and --partition select partitions that groups have read.

    With --bootstrap it lists the groups of a running cluster, and with --data those of a data directory that
    it opens, with their members. There --reset-offsets and --delete change groups.

    Exit status: 1 when a group waits for a transaction that does not end by itself ('txnkafka lso' shows the
    next step), or part of the coordinator's log could not be read; 2 when LOGDIR has no partition of that
    log."""
    request = Request(options)
    if request.is_live:
        _check_live()
        selection = Selection(patterns, options["topic"], options["partition"])
        return run_live(messages, request, selection, output_format)
    with Progress(messages) as progress:
        judges = Judges(messages, progress, **options)
        progress.phase("loading __consumer_offsets")
        lags = [
            lag
            for lag in judges.group_lags(patterns)
            if is_named(lag.group, patterns) and (not waiting or lag.waits_behind or lag.pending)
        ]
    if output_format == "json":
        write_json([lag.as_dict() for lag in lags])
    elif output_format == "jsonl":
        for lag in lags:
            write_json(lag.as_dict())
    else:
        _write(lags, wide=output_format == "wide")
    stuck = any(lag.is_stuck for lag in lags)
    return max(judges.status, FINDINGS if stuck else 0)


def _check_live() -> None:
    """Raise UsageError for options that are about files."""
    context = click.get_current_context()
    for name, option in OF_FILES.items():
        if context.get_parameter_source(name) not in (None, ParameterSource.DEFAULT):
            raise click.UsageError(f"{option} is about files: leave out --data and --bootstrap, or {option}")


def _write(lags: list[GroupLag], *, wide: bool) -> None:
    columns = WIDE if wide else COLUMNS
    rows = [_row(lag) for lag in lags]
    layout = Layout(NAMES, () if wide else DROPPABLE)
    write_table(list(columns), [[row[name] for name in columns.values()] for row in rows], layout)
    for line, verdict in _sentences(lags):
        write_paragraph(printable(line), verdict)
    write_paragraph(_summary(lags))


def _summary(lags: list[GroupLag]) -> str:
    """Return the number of waiting groups: at last stable offsets, and for their own pending offsets."""
    groups = {lag.group for lag in lags}
    stable = {lag.group for lag in lags if lag.waits_behind is not None}
    pending = {lag.group for lag in lags if lag.pending}
    waiting = stable | pending
    verb = "waits" if 1 in (len(waiting), len(groups)) else "wait"
    text = f"{len(waiting):,} of {counted(len(groups), 'group')} {verb}"
    if not pending:
        return f"{text} at a last stable offset"
    return f"{text}: {len(stable):,} at a last stable offset, {len(pending):,} for pending offsets"


def _row(lag: GroupLag) -> dict[str, Any]:
    behind, committed = lag.waits_behind, lag.committed
    return lag.as_dict() | {
        "pending": " ".join(str(each.offset) for each in lag.pending) or None,
        "waits": None if behind is None else _name(behind.transactional_id, behind.transaction.producer_id),
        "verdict": None if behind is None else behind.verdict.value,
        "committed_at": None if committed is None else iso_time(committed.commit_timestamp),
    }


def _name(transactional_id: str | None, producer_id: int) -> str:
    return f"producer {producer_id}" if transactional_id is None else transactional_id


def _sentences(lags: list[GroupLag]) -> Iterator[tuple[str, str | None]]:
    """Yield a sentence per transaction with waiting groups or pending offsets, each with its verdict."""
    waiting: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    pending: defaultdict[PendingCommit, list[str]] = defaultdict(list)
    for lag in lags:
        if lag.waits_behind is not None and lag.report is not None:
            behind = _behind(lag.topic_partition, lag.report, lag.waits_behind)
            waiting[behind, lag.waits_behind.verdict.value].append(lag.group)
        for each in lag.pending:
            pending[each._replace(offset=-1)].append(f"{lag.group} ({lag.topic_partition})")
    for (text, verdict), groups in waiting.items():
        yield f"{text} {_wait(len(groups))} {_listed(groups)}", verdict
    for each, names in pending.items():
        word = None if each.transaction is None else each.transaction.verdict.value
        yield (
            f"{_owner('offsets', each.transactional_id, each.producer_id)}{f', {word},' if word else ''} are "
            f"pending; a read_committed consumer that starts now waits for their end: {_listed(names)}",
            word,
        )


def _behind(topic_partition: TopicPartition, report: Explanation, judged: JudgedTransaction) -> str:
    whose = _owner("transaction", judged.transactional_id, judged.transaction.producer_id)
    held = f"{counted(report.waiting.records, 'record')} ({size(report.waiting.bytes)})"
    return (
        f"{topic_partition}, last stable offset {report.last_stable_offset}: behind the {whose}, "
        f"{judged.verdict.value}, with {held} to come,"
    )


def _owner(noun: str, transactional_id: str | None, producer_id: int) -> str:
    whose = "" if transactional_id is None else f" of {transactional_id!r}"
    return f"{noun}{whose} (producer {producer_id})"


def _wait(count: int) -> str:
    return f"{counted(count, 'group')} {'waits' if count == 1 else 'wait'}:"


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:MOST_LISTED])
    return shown if len(names) <= MOST_LISTED else f"{shown} and {len(names) - MOST_LISTED:,} more"

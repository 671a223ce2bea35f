"""``txnkafka lso`` explains the last stable offset of each partition, and advises the next step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.command import Command
from txnkafka.cli.judgement import Judged, Judges, judge_options
from txnkafka.cli.output import FORMATS, write_json
from txnkafka.cli.progress import Progress
from txnkafka.cli.target import target_options

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.logdir.explain import Explanation
    from txnkafka.logdir.partition import PartitionView
    from txnkafka.logdir.strip import Strip


@click.command(cls=Command, short_help="Explain the last stable offset of partitions.")
@target_options
@judge_options
@click.option("--stuck", is_flag=True, help="Only partitions that are stuck.")
@click.option("--format", "output_format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.pass_obj
def lso(messages: Messages, /, *, stuck: bool, output_format: str, **options: Any) -> int:
    """Explain the last stable offset of the partitions in LOGDIR, where a read_committed reader stops.

    LOGDIR is a log directory, a copy of one, or a single partition directory. Several count as directories of
    one broker. The partitions of __transaction_state identify the owner of an open transaction and show
    whether it hangs; without them the verdict may be unknown.

    Timeouts are judged by the newest time that a broker left in LOGDIR, or by this machine's clock while a
    broker has LOGDIR locked; --now sets another time, such as the time of the copy.

    Exit status: 1 when a partition is stuck (a transaction hangs, is overdue, or waits for its end marker),
    records wait for a transaction of unknown state, or the end of a log is damaged, 2 when a partition could
    not be read."""
    with Progress(messages) as progress:
        judges = Judges(messages, progress, with_lost=True, **options)
        reports = judges.judged(_strip if output_format == "text" else _no_strip, only_stuck=stuck)
        _write(reports, output_format)
        if output_format in ("text", "wide"):
            judges.write_summary(stuck=stuck)
        elif stuck:
            judges.note_summary()
    return judges.status


def _no_strip(view: PartitionView, report: Explanation) -> None:
    return None


def _strip(view: PartitionView, report: Explanation) -> Strip | None:
    """Draw a stuck partition from shortly before its last stable offset; earlier offsets are stable and not
    read."""
    from txnkafka.cli.strip_text import cells_of_width
    from txnkafka.logdir.strip import strip_of

    if not report.is_stuck:
        return None
    cells, stable = cells_of_width(), report.last_stable_offset
    start = stable - max((report.log_end_offset - stable) // 3, cells // 4)
    return strip_of(view, cells, hanging=report.hanging_producers, start_offset=start)


def _write(reports: Iterator[Judged], output_format: str) -> None:
    if output_format == "json":
        write_json([judged.report.to_dict() for judged in reports])
    elif output_format == "jsonl":
        for judged in reports:
            write_json(judged.report.to_dict())
    else:
        from txnkafka.cli.lso_text import write_reports, write_wide

        if output_format == "wide":
            write_wide(judged.report for judged in reports)
        else:
            write_reports(reports)

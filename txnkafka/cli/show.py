"""``txnkafka show`` draws each partition as a strip: committed, aborted, open, hanging, held back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.command import Command
from txnkafka.cli.judgement import Judged, Judges, judge_options
from txnkafka.cli.output import printable, write_json, write_paragraph, write_text
from txnkafka.cli.progress import Progress
from txnkafka.cli.target import target_options

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.logdir.explain import Explanation
    from txnkafka.logdir.partition import PartitionView
    from txnkafka.logdir.strip import Strip

MOST_CELLS = 10_000


@click.command(cls=Command, short_help="Draw each partition: committed, aborted, open, held back.")
@target_options
@judge_options
@click.option("--stuck", is_flag=True, help="Only partitions that are stuck.")
@click.option(
    "--cells",
    type=click.IntRange(2, MOST_CELLS),
    metavar="N",
    help="Number of offset ranges that a log is divided into; default: as many as fit into a line.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "jsonl"]),
    default="text",
    show_default=True,
)
@click.pass_obj
def show(messages: Messages, /, *, stuck: bool, cells: int | None, output_format: str, **options: Any) -> int:
    """Draw each partition in LOGDIR as a strip of cells. A cell covers a range of offsets and shows the worst
    state in it: a hanging transaction, an open transaction, records held back by it, aborted records,
    committed records. An arrow marks the last stable offset, where a read_committed reader stops.

    LOGDIR is a log directory, a copy of one, a single partition directory or a single .log file. Only batch
    headers are read. Open transactions are judged as in 'txnkafka lso'.

    Exit status: 1 when a partition is stuck or the end of its log is damaged, 2 when a partition could not be
    read."""
    from txnkafka.cli.strip_text import cells_of_width

    with Progress(messages) as progress:
        judges = Judges(messages, progress, **options)
        count = cells or cells_of_width()
        drawn = judges.judged(lambda view, report: _strip(view, report, count), only_stuck=stuck)
        if output_format == "json":
            write_json([_row(each) for each in drawn])
        elif output_format == "jsonl":
            for each in drawn:
                write_json(_row(each))
        else:
            _write_text(drawn)
            judges.write_summary(stuck=stuck)
        if stuck and output_format != "text":
            judges.note_summary()
    return judges.status


def _strip(view: PartitionView, report: Explanation, cells: int) -> Strip:
    from txnkafka.logdir.strip import strip_of

    return strip_of(view, cells, hanging=report.hanging_producers)


def _row(judged: Judged) -> dict[str, Any]:
    row = judged.report.to_dict()
    names = ("topic", "partition", "log_start_offset", "log_end_offset", "high_watermark",
             "last_stable_offset", "verdict", "is_stuck")  # fmt: skip
    assert judged.strip is not None
    return {**{name: row[name] for name in names}, **judged.strip.as_dict()}


def _write_text(drawn: Iterator[Judged]) -> None:
    from txnkafka.cli.strip_text import Legend, extent, write_strip

    legend, is_any = Legend(), False
    for report, strip in drawn:
        assert strip is not None
        name = printable(f"{report.topic}-{report.partition}")
        write_paragraph(f"{name}  {report.verdict.value}: {extent(strip)}", report.verdict.value)
        if strip.cells:
            is_any = True
            write_strip(strip)
            legend.add(strip)
    if is_any:
        write_text("")
        legend.write()

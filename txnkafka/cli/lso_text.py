"""Formats reports of ``lso`` as text: a paragraph per partition, with a strip if it is stuck, or a table with
a row per open transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from txnkafka.cli.output import Layout, write_paragraph, write_table, write_text
from txnkafka.logdir.verdict import Verdict
from txnkafka.shown import iso_time, offset_range, size

if TYPE_CHECKING:
    from txnkafka.cli.judgement import Judged
    from txnkafka.logdir.explain import Explanation, JudgedTransaction, Line

COLUMNS = (
    "topic", "partition", "start", "end", "hw", "lso", "verdict", "waiting-records", "waiting-size",
    "held-segments", "producer-id", "epoch", "transactional-id", "first-offset", "records", "size",
    "since", "transaction",
)  # fmt: skip
NAMES = Layout(("topic", "transactional-id"))


def write_reports(reports: Iterable[Judged]) -> None:
    """Write the reason for each last stable offset, its time, the waiting records, and the advice. A strip
    with a new symbol gets a legend."""
    from txnkafka.cli.strip_text import Legend, extent, write_strip

    legend = Legend()
    for report, strip in reports:
        lines = report.lines
        for line in lines[:2]:
            _write_line(line)
        if strip is not None:
            if strip.start_offset > report.log_start_offset:
                before = offset_range(report.log_start_offset, strip.start_offset - 1)
                write_paragraph(f"  The end of the log, {extent(strip)}; {before} are left out here:")
            write_strip(strip)
            legend.add(strip)
            legend.write()
        for line in lines[2:]:
            _write_line(line)


def _write_line(line: Line) -> None:
    if line.kind == "command":  # in one line, for copying
        write_text(str(line))
    else:
        write_paragraph(str(line), next((each.value for each in Verdict if each in line.text), None))


def write_wide(reports: Iterable[Explanation]) -> None:
    """Write a row per open transaction, or one row for a partition without any; column ``transaction`` is the
    transaction's own verdict."""
    write_table(COLUMNS, (row for report in reports for row in _rows(report)), NAMES)


def _rows(report: Explanation) -> Iterator[list[object]]:
    waiting = report.waiting
    head: list[object] = [
        report.topic, report.partition, report.log_start_offset, report.log_end_offset,
        report.high_watermark, report.last_stable_offset, report.verdict.value,
        waiting.records, size(waiting.bytes), len(waiting.segments),
    ]  # fmt: skip
    for judged in report.open_transactions or [None]:
        yield [*head, *([None] * 8 if judged is None else _cells(judged))]


def _cells(judged: JudgedTransaction) -> list[object]:
    transaction = judged.transaction
    return [
        transaction.producer_id, transaction.producer_epoch, judged.transactional_id,
        transaction.first_offset, transaction.records, size(transaction.bytes),
        iso_time(judged.since_ms), judged.verdict.value,
    ]  # fmt: skip

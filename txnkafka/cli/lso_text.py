"""Formats reports of ``lso`` as text: a paragraph per partition, with a strip if it is stuck, or a table with
a row per open transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from txnkafka.cli.output import Layout, printable, write_paragraph, write_table, write_text
from txnkafka.cli.times import iso_time
from txnkafka.logdir.verdict import Verdict
from txnkafka.shown import counted, offset_range, size

if TYPE_CHECKING:
    from txnkafka.cli.judgement import Judged
    from txnkafka.logdir.lost import Lost
    from txnkafka.logdir.lso import JudgedTransaction, LsoReport, Waiting

__all__ = ["write_reports", "write_wide"]

COMMAND_INDENT = "    "
MOST_RANGES = 3

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
        lines = list(_lines(report))
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


def _write_line(line: str) -> None:
    if line.startswith(COMMAND_INDENT):  # in one line, for copying
        write_text(printable(line))
    else:
        write_paragraph(printable(line), next((each.value for each in Verdict if each in line), None))


def write_wide(reports: Iterable[LsoReport]) -> None:
    """Write a row per open transaction, or one row for a partition without any; column ``transaction`` is the
    transaction's own verdict."""
    write_table(COLUMNS, (row for report in reports for row in _rows(report)), NAMES)


def _rows(report: LsoReport) -> Iterator[list[object]]:
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


def _lines(report: LsoReport) -> Iterator[str]:
    name = f"{report.topic}-{report.partition}"
    if report.verdict is Verdict.NOT_STUCK:
        yield f"{name}  NOT_STUCK: everything up to the log end {report.log_end_offset} is stable"
        return
    yield f"{name}  {report.verdict.value}"
    if report.verdict is Verdict.HW_BEHIND:
        yield f"  Why: {report.reason}: {_amount(report.waiting)} there."
        yield "  What to do: nothing if the broker was killed; else look at the replicas that lag behind."
        return
    yield (
        f"  The last stable offset stands at {report.last_stable_offset}, the log ends at "
        f"{report.log_end_offset}: {_amount(report.waiting)} behind it."
    )
    if report.lost is not None and (report.lost.missing or report.lost.records):
        yield f"  {_lost(report.lost)}"
    if report.waiting.segments:
        yield f"  {_held_segments(report.waiting)}"
    yield from _transactions(report)


def _transactions(report: LsoReport) -> Iterator[str]:
    """Yield the lines about open transactions. Repeated advice is written once; later transactions only add
    their commands and conditions."""
    said: set[str] = set()
    for judged in report.open_transactions:
        if not said:
            yield f"  It is held by {_described(judged)}."
            yield f"  Why: {judged.reason}."
            yield f"  Judged at {iso_time(report.judged.now_ms)}, {report.judged.now_origin}."
        else:
            yield f"  Open too, {judged.verdict.value}: {_described(judged)}; {judged.reason}."
        advice, command, risk, condition = judged.repair
        first = advice not in said
        said.add(advice)
        if first:
            yield f"  What to do: {advice}."
        if first and risk is not None:
            yield f"  Risk: {risk}."
        if command is not None:
            yield f"  Only if {condition}:"
            yield f"{COMMAND_INDENT}{command}"


def _amount(waiting: Waiting) -> str:
    verb = "waits" if waiting.records == 1 else "wait"
    return f"{counted(waiting.records, 'record')} ({size(waiting.bytes)}) {verb}"


def _lost(lost: Lost) -> str:
    ranges = [offset_range(*each) for each in lost.missing[:MOST_RANGES]]
    if len(lost.missing) > MOST_RANGES:
        ranges.append(f"{len(lost.missing) - MOST_RANGES:,} more ranges")
    is_one = len(lost.missing) == 1 and lost.missing[0][0] == lost.missing[0][1]
    parts = [f"{', '.join(ranges)} {'is' if is_one else 'are'} missing or damaged"] if ranges else []
    if lost.transactions:
        verb = "is" if lost.records == 1 else "are"
        parts.append(
            f"{counted(lost.records, 'record')} of {counted(lost.transactions, 'transaction')} {verb} "
            "undecided without an end marker, and held back from read_committed"
        )
    return f"The log is not whole: {'; '.join(parts)}. 'txnkafka verify' names the files."


def _held_segments(waiting: Waiting) -> str:
    first, count = waiting.segments[0], len(waiting.segments)
    which = f"Segment {first}" if count == 1 else f"{count:,} segments from {first} on"
    return f"{which} can be neither compacted nor tiered while it stands there."


def _described(judged: JudgedTransaction) -> str:
    transaction = judged.transaction
    whose = "of no known transactional id"
    if judged.transactional_id is not None:
        whose = f"of transactional id {judged.transactional_id!r}"
    since = ""
    if judged.since_ms is not None:
        whom = "producer" if transaction.first_timestamp >= 0 else "coordinator"
        since = f", open since {iso_time(judged.since_ms)} by the {whom}'s clock"
    what = "its records are deleted, only a producer snapshot remembers it"
    if transaction.records:
        what = (
            f"{counted(transaction.records, 'record')} ({size(transaction.bytes)}) "
            f"at {offset_range(transaction.first_offset, transaction.last_offset)}"
        )
    return f"producer {transaction.producer_id} epoch {transaction.producer_epoch} {whose}{since}: {what}"

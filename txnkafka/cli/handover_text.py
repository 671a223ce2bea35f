"""The report of ``txnkafka handover`` as text."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from txnkafka.cli.output import Layout, printable, write_finding, write_paragraph, write_table, write_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txnkafka.handover.report import GroupRow, HandOver, TransactionRow

NAMES = Layout(("transactional id", "partitions", "group"))


def write_report(report: HandOver, *, is_wide: bool) -> None:
    """Write findings, changes, open transactions, groups, settings and the verdict to stdout; ``is_wide``
    lists every transactional id and group."""
    for step in report.steps:
        write_paragraph(f"{printable(step.partition or 'directory')}: {printable(step.text)}")
    for finding in report.findings:
        write_finding(finding)
    if report.is_possible:
        _write_transactions(report.transactions, is_wide=is_wide)
        _write_groups(report.groups, is_wide=is_wide)
        _write_settings(report)
    write_paragraph(_verdict(report))


def _write_transactions(rows: list[TransactionRow], *, is_wide: bool) -> None:
    states = Counter(row.state for row in rows)
    counts = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
    write_text(f"transactional ids: {counts or 'none'}")
    if is_wide and rows:
        names = ("transactional id", "producer id", "epoch", "state", "partitions", "after the hand-over")
        write_table(names, ((*row[:4], " ".join(row.partitions), row.fate) for row in rows), NAMES)
        return
    for row in rows:
        if row.is_open:
            write_paragraph(f"  {printable(row.transactional_id)} ({row.state}): {printable(row.fate)}")


def _write_groups(rows: list[GroupRow], *, is_wide: bool) -> None:
    types = Counter(row.group_type for row in rows)
    counts = ", ".join(f"{count:,} {each}" for each, count in sorted(types.items()))
    write_text(f"groups: {counts or 'none'}")
    if is_wide and rows:
        names = ("group", "type", "generation", "members", "offsets", "pending", "after the hand-over")
        write_table(names, rows, NAMES)
        return
    for row in _of_interest(rows):
        write_paragraph(f"  {printable(row.group)} ({row.group_type}): {row.fate}")


def _of_interest(rows: list[GroupRow]) -> Iterable[GroupRow]:
    return (row for row in rows if row.members or row.pending or row.group_type not in ("classic", "simple"))


def _write_settings(report: HandOver) -> None:
    is_kafka = report.to == "kafka"
    write_text("lines for server.properties:" if is_kafka else "the command that serves it:")
    for line in report.settings:
        write_text(f"  {printable(line)}")


def _verdict(report: HandOver) -> str:
    to = report.to.label
    if not report.is_possible:
        left = "" if report.steps and not report.is_planned else "; nothing was changed"
        return f"{to} must not start on it before the errors above are dealt with{left}"
    if not report.is_planned:
        return f"ready: {to} may start on it"
    count = len(report.steps)
    if count:
        return f"{to} may start on it after {count} change{'s' if count > 1 else ''}; nothing was changed"
    return f"ready: {to} may start on it as it is"

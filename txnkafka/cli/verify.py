"""``txnkafka verify`` checks a log directory: what is wrong, where, and what to do."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.command import Command
from txnkafka.cli.output import printable, write_json, write_text
from txnkafka.cli.target import chosen_partitions, target_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.cli.output import Messages
    from txnkafka.cli.target import Partitions, StorageOptions, Topics
    from txnkafka.logdir import Finding
    from txnkafka.logdir.verify.report import VerifyReport

__all__ = ["verify"]

FINDINGS, COULD_NOT = 1, 2
PROGRESS_BYTES = 256 << 20
COLUMNS = 100


@click.command(cls=Command, short_help="Check everything and report faults.")
@target_options
@click.option(
    "--level",
    type=click.Choice(["header", "crc", "records"]),
    default="crc",
    show_default=True,
    help="Batch headers only; every checksum too; every record decoded too.",
)
@click.option("--fail-fast", is_flag=True, help="Stop at the first error or warning.")
@click.option("--format", type=click.Choice(["text", "json", "jsonl"]), default="text", show_default=True)
@click.pass_obj
def verify(
    messages: Messages,
    /,
    *,
    logdir: tuple[str, ...],
    topic: Topics,
    partition: Partitions,
    io: str,
    storage_options: StorageOptions,
    level: str,
    fail_fast: bool,
    format: str,
) -> int:
    """Check the logs in LOGDIR, and compare the files beside them (indexes, producer snapshots, checkpoints)
    with the logs. Nothing is changed.

    LOGDIR is a log directory, a copy of one, a single partition directory or a single .log file. Several
    count as directories of one broker. The codes of findings are explained in docs/findings.md.

    Exit status: 1 when there is an error or a warning, 2 when something could not be read and checked.
    """
    from txnkafka.logdir import LogDir
    from txnkafka.logdir.verify import verify as verify_log_dir

    log_dir = LogDir(logdir, io=io, storage_options=dict(storage_options))
    chosen = chosen_partitions(log_dir, topic, partition)
    progress = _Progress() if sys.stderr.isatty() and messages.verbosity >= 0 else None
    report = verify_log_dir(
        log_dir,
        chosen,
        level=level,
        fail_fast=fail_fast,
        on_finding=_printer(format, progress),
        progress=progress,
    )
    if progress is not None:
        progress.clear()
    if format == "json":
        write_json(_document(report))
    elif format == "text":
        write_text(_summary(report))
    if not report.is_complete:
        return COULD_NOT
    return 0 if report.is_sound else FINDINGS


def _document(report: VerifyReport) -> dict[str, Any]:
    return {**report._asdict(), "findings": [finding._asdict() for finding in report.findings]}


def _printer(format: str, progress: _Progress | None) -> Callable[[Finding], None] | None:
    if format == "json":
        return None

    def show(finding: Finding) -> None:
        if progress is not None:
            progress.clear()
        if format == "jsonl":
            write_json(finding._asdict())
        else:
            write_text(_line(finding))

    return show


def _line(finding: Finding) -> str:
    where = printable(finding.file)
    if finding.position is not None:
        where += f" at position {finding.position}"
    message = printable(" ".join(finding.message.splitlines()))
    return f"{finding.severity}: {where}: {message} [{finding.code}]; {finding.remedy}"


def _summary(report: VerifyReport) -> str:
    severities = Counter(finding.severity for finding in report.findings)
    found = ", ".join(_count(severities[severity], severity) for severity in ("error", "warning", "note"))
    checked = ", ".join(
        _count(getattr(report, f"{noun}s" if noun != "batch" else "batches"), noun)
        for noun in ("partition", "segment", "batch", "record")
    )
    return f"{checked}: {found}"


def _count(number: int, word: str) -> str:
    plural = f"{word}es" if word == "batch" else f"{word}s"
    return f"{number:,} {word if number == 1 else plural}"


class _Progress:
    """Shows progress in one line on stderr that is overwritten."""

    def __init__(self) -> None:
        self._done = 0
        self._shown = 0

    def __call__(self, path: str, size: int) -> None:
        self._done += size
        if self._done - self._shown >= PROGRESS_BYTES:
            self._shown = self._done
            text = printable(f"{self._done >> 20:,} MiB checked, {path}")[:COLUMNS]
            sys.stderr.write(f"\r{text:{COLUMNS}}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Clear the line, if anything was written."""
        if self._shown:
            sys.stderr.write(f"\r{'':{COLUMNS}}\r")
            sys.stderr.flush()

"""``txnkafka verify`` checks a log directory, and reports each fault with its place and remedy."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.command import Command
from txnkafka.cli.output import NO_BREAK, write_finding, write_json, write_paragraph
from txnkafka.cli.progress import Progress
from txnkafka.cli.target import chosen_partitions, target_options, threads_option
from txnkafka.shown import counted

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.cli.target import Partitions, StorageOptions, Topics
    from txnkafka.logdir import Finding, PartitionView
    from txnkafka.logdir.directory_files import ReadMethod
    from txnkafka.logdir.verify.report import VerifyReport

FINDINGS, COULD_NOT = 1, 2
LISTED = 10


@click.command(cls=Command, short_help="Check everything and report faults.")
@target_options
@click.option(
    "--level",
    type=click.Choice(["header", "crc", "records"]),
    default="crc",
    show_default=True,
    help="Check batch headers; and checksums; and decode every record.",
)
@threads_option
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
    io: ReadMethod,
    storage_options: StorageOptions,
    level: str,
    threads: int | None,
    fail_fast: bool,
    format: str,
) -> int:
    """Check the logs in LOGDIR, and compare the derived files (indexes, producer snapshots, checkpoints) with
    the logs. Nothing is changed.

    LOGDIR is a log directory, a copy of one, a single partition directory or a single .log file. Several
    count as directories of one broker. The codes of findings are explained in docs/findings.md.

    Exit status: 1 for an error or a warning, 2 when a file or partition could not be read and checked."""
    from txnkafka.logdir import LogDir
    from txnkafka.logdir.verify import verify as verify_log_dir

    printer = _Printer(format)
    with Progress(messages) as progress:
        log_dir = LogDir(logdir, io=io, threads=threads, storage_options=dict(storage_options))
        chosen = chosen_partitions(log_dir, topic, partition)
        progress.phase("comparing the files around the logs")
        shown = (
            _Together(progress) if log_dir.threads > 1 and not fail_fast else _OneByOne(progress, len(chosen))
        )
        report = verify_log_dir(
            log_dir,
            chosen,
            level=level,
            fail_fast=fail_fast,
            on_finding=printer.add,
            on_partition=shown.begin,
            progress=shown.read,
        )
    printer.end()
    if format == "json":
        write_json(_document(report))
    elif format == "text":
        write_paragraph(_summary(report))
    if not report.is_complete:
        return COULD_NOT
    return 0 if report.is_sound else FINDINGS


def _document(report: VerifyReport) -> dict[str, Any]:
    return {**report._asdict(), "findings": [finding._asdict() for finding in report.findings]}


class _OneByOne:
    """Shows the partition that is checked, and how much of it."""

    def __init__(self, progress: Progress, partitions: int) -> None:
        self._progress = progress
        progress.partitions(partitions)

    def begin(self, view: PartitionView) -> None:
        self._progress.partition(view.topic_partition, _size(view))

    def read(self, path: str, size: int) -> None:
        self._progress.read(size)


class _Together:
    """Shows how much of the partitions begun so far is checked: threads check several at a time."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._done = self._total = 0

    def begin(self, view: PartitionView) -> None:
        self._total += _size(view)

    def read(self, path: str, size: int) -> None:
        self._done += size
        self._progress.amount("checking", self._done, self._total)


def _size(view: PartitionView) -> int:
    from txnkafka.errors import KafkaError

    try:
        return sum(segment.size for segment in view.files.segments)
    except (KafkaError, OSError):
        return 0  # verify reports it


class _Printer:
    """Writes findings as they arrive, except for ``json``. In text, consequences of a finding are indented
    below it, and the same fault in several derived files is one line plus the other file names."""

    def __init__(self, format: str) -> None:
        self._format = format
        self._first: Finding | None = None
        self._others: list[str] = []

    def add(self, finding: Finding) -> None:
        """Write a finding, or collect it with similar findings."""
        if self._format == "jsonl":
            write_json(finding._asdict())
        elif self._format == "text" and not self._takes(finding):
            self.end()
            self._first = finding
            write_finding(finding)

    def _takes(self, finding: Finding) -> bool:
        first = self._first
        is_alike = first is not None and _kind(first) == _kind(finding) and not finding.file.endswith(".log")
        if is_alike:
            self._others.append(finding.file)
        return is_alike

    def end(self) -> None:
        """Write the file names of the collected similar findings."""
        if self._first is not None and self._others:
            files = dict.fromkeys(each for each in self._others if each != self._first.file)
            names = [file.rpartition("/")[2] for file in files]
            named = ", ".join([*names[:LISTED], *(["and others"] if len(names) > LISTED else [])])
            indent = "    " if self._first.cause else "  "
            text = f"{len(self._others):,} more like this{f' in {named}' if named else ''}"
            write_paragraph(f"{indent}{text}; --format jsonl lists each")
        self._first, self._others = None, []


def _kind(finding: Finding) -> tuple[str, ...]:
    folder = finding.file.rpartition("/")[0]
    return finding.severity, finding.code, finding.cause, finding.remedy, folder


def _summary(report: VerifyReport) -> str:
    severities = Counter(finding.severity for finding in report.findings)
    found = [counted(severities[severity], severity) for severity in ("error", "warning", "note")]
    checked = (
        counted(report.partitions, "partition"),
        counted(report.segments, "segment"),
        counted(report.batches, "batch", "batches"),
        counted(report.records, "record"),
    )
    return ": ".join(", ".join(each.replace(" ", NO_BREAK) for each in part) for part in (checked, found))

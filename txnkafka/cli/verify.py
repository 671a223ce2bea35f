"""``txnkafka verify`` checks a log directory: what is wrong, where, and what to do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.command import Command
from txnkafka.cli.output import NO_BREAK, write_finding, write_json, write_paragraph
from txnkafka.cli.progress import Progress
from txnkafka.cli.target import chosen_partitions, target_options
from txnkafka.shown import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.cli.output import Messages
    from txnkafka.cli.target import Partitions, StorageOptions, Topics
    from txnkafka.logdir import Finding, PartitionView
    from txnkafka.logdir.verify.report import VerifyReport

__all__ = ["verify"]

FINDINGS, COULD_NOT = 1, 2


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

    with Progress(messages) as progress:
        log_dir = LogDir(logdir, io=io, storage_options=dict(storage_options))
        chosen = chosen_partitions(log_dir, topic, partition)
        progress.phase("comparing the files around the logs")
        progress.partitions(len(chosen))
        report = verify_log_dir(
            log_dir,
            chosen,
            level=level,
            fail_fast=fail_fast,
            on_finding=_printer(format),
            on_partition=lambda view: _begin(progress, view),
            progress=lambda path, size: progress.read(size),
        )
    if format == "json":
        write_json(_document(report))
    elif format == "text":
        write_paragraph(_summary(report))
    if not report.is_complete:
        return COULD_NOT
    return 0 if report.is_sound else FINDINGS


def _document(report: VerifyReport) -> dict[str, Any]:
    return {**report._asdict(), "findings": [finding._asdict() for finding in report.findings]}


def _begin(progress: Progress, view: PartitionView) -> None:
    from txnkafka.errors import KafkaError

    try:
        size = sum(segment.size for segment in view.files.segments)
    except (KafkaError, OSError):
        size = 0  # a finding of verify
    progress.partition(view.topic_partition, size)


def _printer(format: str) -> Callable[[Finding], None] | None:
    if format == "json":
        return None
    if format == "jsonl":
        return lambda finding: write_json(finding._asdict())
    return write_finding


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

"""Runs ``export``: selects the engine, shows progress, and reports the result."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from txnkafka.cli.output import write_json, write_text
from txnkafka.cli.progress import Progress
from txnkafka.cli.read_options import notes
from txnkafka.export import ExportOptions, ExportReport, LocalEngine, export
from txnkafka.export.tables import check_installed
from txnkafka.shown import counted, size

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.export.run import Engine
    from txnkafka.logdir import LogDir, PartitionView, ReadRequest
    from txnkafka.model import TopicPartition

FINDINGS = 1


def export_options(request: ReadRequest, **given: Any) -> ExportOptions:
    """Build the options of an export from the command line. Raises UsageError."""
    pairs = [setting.partition("=") for setting in given.pop("catalog")]
    given["catalog"] = tuple((name, value) for name, _, value in pairs)
    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        return ExportOptions(request=request, **chosen)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


class Runner:
    """Runs an export and reports on stderr."""

    def __init__(self, log_dir: LogDir, messages: Messages, request: ReadRequest) -> None:
        self._log_dir = log_dir
        self._messages = messages
        self._request = request

    def run(
        self,
        chosen: list[TopicPartition],
        output: str,
        options: ExportOptions,
        *,
        engine: str,
        threads: int,
        incremental: bool,
    ) -> ExportReport:
        """Begin or continue the export."""
        check_installed(options.to)
        # pyiceberg warns about columns without statistics in every file, which is intended
        logging.getLogger("pyiceberg").addHandler(logging.NullHandler())
        with self._said_when_interrupted(), Progress(self._messages) as progress:
            progress.partitions(len(chosen))

            def located(view: PartitionView) -> ReadRequest:
                progress.partition(view.topic_partition)
                for note in notes(view, self._request):
                    self._messages.note(note)
                return self._request

            return export(
                self._log_dir,
                chosen,
                output,
                options,
                locate=located,
                incremental=incremental,
                engine=_engine(engine, threads),
                progress=lambda done, total: progress.amount("writing", done, total),
            )

    @contextmanager
    def _said_when_interrupted(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            self._messages.note("nothing is lost: the same command continues the export")
            raise


def _engine(engine: str, threads: int) -> Engine:
    if engine == "local":
        from txnkafka.env import LocalDataFiles

        return LocalEngine(LocalDataFiles(), threads)
    try:
        from txnkafka.spark.export import SparkEngine
    except ImportError as error:
        raise click.UsageError(f"--engine spark: {error}; pip install 'txnkafka[spark]'") from None
    # the driver's own Python by default: Spark would use the first python3 on the PATH
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return SparkEngine()


def report_export(report: ExportReport, output: str, messages: Messages, output_format: str) -> int:
    """Report the result; return the exit status."""
    for finding in report.findings:
        messages.finding(finding)
    for text in report.stopped:
        messages.error(
            f"{text}; the export of this partition ends there, "
            "--on-corrupt skip reads on, into another --output"
        )
    for text in report.left_out:
        messages.error(f"left out: {text}")
    if output_format == "json":
        write_json({**report._asdict(), "findings": [finding._asdict() for finding in report.findings]})
    else:
        new = "" if report.new_rows == report.rows else f", {report.new_rows:,} of them now"
        write_text(
            f"{counted(report.rows, 'record')} of {counted(report.partitions, 'partition')} in "
            f"{counted(report.files, 'file')} ({size(report.bytes)}) in {output}{new}"
        )
    return 0 if report.is_sound else FINDINGS

"""``txnkafka lso`` explains the last stable offset of each partition, and says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from txnkafka.cli.command import Command
from txnkafka.cli.output import FORMATS, write_json
from txnkafka.cli.target import chosen_partitions, open_log_dir, target_options
from txnkafka.cli.times import Timestamp

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.cli.target import Partitions, StorageOptions, Topics
    from txnkafka.logdir import LogDir
    from txnkafka.logdir.clock import DirectoryClock
    from txnkafka.logdir.lso import LsoReport
    from txnkafka.model import TopicPartition

__all__ = ["lso"]

FINDINGS, COULD_NOT = 1, 2
MINUTE_MS = 60_000


@click.command(cls=Command, short_help="Explain the last stable offset of partitions.")
@target_options
@click.option("--now", type=Timestamp(), help="Judge timeouts by this time instead.")
@click.option(
    "--max-transaction-timeout",
    "max_minutes",
    type=click.IntRange(min=0),
    default=15,
    show_default=True,
    metavar="MINUTES",
    help="Unless the broker was stopped cleanly, no younger transaction is said to hang.",
)
@click.option("--format", "output_format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.pass_obj
def lso(
    messages: Messages,
    /,
    *,
    logdir: tuple[str, ...],
    topic: Topics,
    partition: Partitions,
    io: str,
    storage_options: StorageOptions,
    now: int | None,
    max_minutes: int,
    output_format: str,
) -> int:
    """Explain the last stable offset of the partitions in LOGDIR, where a read_committed reader stops.

    LOGDIR is a log directory, a copy of one, or a single partition directory. Several count as directories of
    one broker. The partitions of __transaction_state show whose transaction is open, and whether it hangs:
    without them the answer may be unknown.

    Timeouts are judged by the newest time that a broker left in LOGDIR, or by this machine's clock while a
    broker has it locked; --now sets another time, such as that of the copy.

    Exit status: 1 when a partition is stuck (a transaction hangs, is overdue, or waits for its end marker) or
    records wait for a transaction of which too little is known here, 2 when a partition could not be read.
    """
    from txnkafka.env import SystemClock
    from txnkafka.logdir.clock import DirectoryClock

    log_dir = open_log_dir(logdir, io, messages, storage_options)
    chosen = chosen_partitions(log_dir, topic, partition)
    clock = DirectoryClock(log_dir, SystemClock().now_ms(), now)
    reporter = Reporter(log_dir, messages, clock, max_minutes * MINUTE_MS)
    _write(reporter.reports(chosen), output_format)
    return reporter.status


class Reporter:
    """Yields reports of partitions. A partition that cannot be read is reported on stderr and skipped."""

    def __init__(
        self, log_dir: LogDir, messages: Messages, clock: DirectoryClock, max_transaction_timeout_ms: int
    ) -> None:
        self.status = 0
        self._log_dir = log_dir
        self._messages = messages
        self._clock = clock
        self._max_transaction_timeout_ms = max_transaction_timeout_ms

    def reports(self, partitions: list[TopicPartition]) -> Iterator[LsoReport]:
        """Yield the report of each partition that can be read."""
        from txnkafka.errors import KafkaError

        for finding in self._log_dir.coordinator.findings:
            self._messages.finding(finding)
        for topic_partition in partitions:
            try:
                report = self._report(topic_partition)
            except KafkaError as error:
                self.status = COULD_NOT
                self._messages.error(f"{topic_partition}: {error}")
                continue
            if report.is_stuck:
                self.status = max(self.status, FINDINGS)
            yield report

    def _report(self, topic_partition: TopicPartition) -> LsoReport:
        from txnkafka.logdir.lso import lso_report
        from txnkafka.logdir.verdict import Circumstances

        view = self._log_dir.partition(*topic_partition)
        try:
            now_ms, origin = self._clock.at(view)
            circumstances = Circumstances(now_ms, self._max_transaction_timeout_ms, now_origin=origin)
            report = lso_report(view, self._log_dir.coordinator, circumstances)
            for finding in view.tail_findings:
                self._messages.finding(finding)
        finally:
            view.close()
        return report


def _write(reports: Iterator[LsoReport], output_format: str) -> None:
    if output_format == "json":
        write_json([report.as_dict() for report in reports])
    elif output_format == "jsonl":
        for report in reports:
            write_json(report.as_dict())
    else:
        from txnkafka.cli.lso_text import write_report, write_wide

        if output_format == "wide":
            write_wide(reports)
        else:
            for report in reports:
                write_report(report)

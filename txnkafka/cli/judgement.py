"""What ``lso`` and ``show`` have in common: the options by which transactions are judged, and the reports of
partitions one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import click

from txnkafka.cli.command import Function, add_options
from txnkafka.cli.named import check_patterns
from txnkafka.cli.output import write_text
from txnkafka.cli.target import chosen_partitions, is_chosen, open_log_dir
from txnkafka.cli.times import Timestamp
from txnkafka.model import TopicPartition
from txnkafka.shown import counted

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.cli.progress import Progress
    from txnkafka.cli.target import Partitions, StorageOptions, Topics
    from txnkafka.logdir.group_lag import GroupLag
    from txnkafka.logdir.lso import JudgedTransaction, LsoReport
    from txnkafka.logdir.partition import PartitionView
    from txnkafka.logdir.strip import Strip

__all__ = ["Judged", "Judges", "judge_options", "now_option"]

FINDINGS, COULD_NOT = 1, 2
MINUTE_MS = 60_000

now_option = click.option("--now", type=Timestamp(), help="Judge timeouts by this time instead.")


class Judged(NamedTuple):
    """The report on a partition, and its strip where one is drawn."""

    report: LsoReport
    strip: Strip | None


Draw = Callable[["PartitionView", "LsoReport"], "Strip | None"]


def judge_options(function: Function) -> Function:
    """Add --now and --max-transaction-timeout to a command."""
    return add_options(
        function,
        now_option,
        click.option(
            "--max-transaction-timeout",
            "max_minutes",
            type=click.IntRange(min=0),
            default=15,
            show_default=True,
            metavar="MINUTES",
            help="Unless the broker was stopped cleanly, no younger transaction is said to hang.",
        ),
    )


class Judges:
    """Judges the chosen partitions of a directory. One that cannot be read is reported on stderr and
    skipped."""

    def __init__(
        self,
        messages: Messages,
        progress: Progress,
        *,
        logdir: tuple[str, ...],
        topic: Topics,
        partition: Partitions,
        io: str,
        storage_options: StorageOptions,
        now: int | None,
        max_minutes: int,
    ) -> None:
        from txnkafka.env import SystemClock
        from txnkafka.logdir.clock import DirectoryClock

        self.status = self.stuck = self.total = 0
        self._messages, self._progress = messages, progress
        self._log_dir = open_log_dir(logdir, io, messages, storage_options)
        self._topics, self._partitions = topic, partition
        self._clock = DirectoryClock(self._log_dir, SystemClock().now_ms(), now)
        self._max_transaction_timeout_ms = max_minutes * MINUTE_MS
        self._here = frozenset(self._log_dir.topic_partitions)
        self._reports: dict[TopicPartition, LsoReport | None] = {}

    def judged(self, draw: Draw, *, only_stuck: bool) -> Iterator[Judged]:
        """Yield the report of each partition that can be read, with what ``draw`` returns; those that are not
        stuck are left out if ``only_stuck``."""
        from txnkafka.errors import KafkaError

        chosen = chosen_partitions(self._log_dir, self._topics, self._partitions)
        self._progress.phase("loading __transaction_state")
        for finding in self._log_dir.coordinator.findings:
            self._messages.finding(finding)
        for topic_partition in self._progress.each(chosen):
            try:
                judged = self._judge(topic_partition, draw, only_stuck=only_stuck)
            except KafkaError as error:
                self.status = COULD_NOT
                self._messages.error(f"{topic_partition}: {error}")
                continue
            self.total += 1
            if judged.report.is_stuck:
                self.stuck += 1
                self.status = max(self.status, FINDINGS)
            if judged.report.is_stuck or not only_stuck:
                yield judged

    def _judge(self, topic_partition: TopicPartition, draw: Draw, *, only_stuck: bool) -> Judged:
        with closing(self._log_dir.partition(*topic_partition)) as view:
            report = self._report(view)
            strip = draw(view, report) if report.is_stuck or not only_stuck else None
            self.status = max(self.status, self._messages.findings(view.tail_findings))
        return Judged(report, strip)

    def group_lags(self, patterns: tuple[str, ...]) -> list[GroupLag]:
        """Return the groups in the directory's partitions of ``__consumer_offsets``, with the chosen
        partitions that they have read. Raises UnknownTopicOrPartitionError when nothing of it is here, and
        for a topic or partition that is neither here nor read; KafkaError for a pattern that matches no
        group."""
        from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC
        from txnkafka.errors import UnknownTopicOrPartitionError
        from txnkafka.logdir.group_lag import group_lags

        groups, coordinator = self._log_dir.groups, self._log_dir.coordinator
        if not groups.partitions:
            raise UnknownTopicOrPartitionError(
                f"no partition of {CONSUMER_OFFSETS_TOPIC} in {', '.join(self._log_dir.paths)}: the offsets "
                "of groups are in the log directories that contain them"
            )
        for finding in (*groups.findings, *coordinator.findings):
            self._messages.finding(finding)
            self.status = FINDINGS
        self._check_choice(patterns, {*groups.committed, *groups.pending, *groups.members})
        pending: dict[int, JudgedTransaction] = {}
        if groups.pending:
            for number in groups.partitions:
                report = self._report_of(TopicPartition(CONSUMER_OFFSETS_TOPIC, number))
                open_transactions = () if report is None else report.open_transactions
                pending |= {each.transaction.producer_id: each for each in open_transactions}
        names = coordinator.transactional_ids
        found = group_lags(groups, self._chosen_report, lambda key: (names.get(key), pending.get(key)))
        return [lag for lag in found if is_chosen(lag.topic_partition, self._topics, self._partitions)]

    def _check_choice(self, patterns: tuple[str, ...], there: set[tuple[str, TopicPartition]]) -> None:
        place = ", ".join(self._log_dir.paths)
        check_patterns(patterns, {group for group, _ in there}, "group", "groups", place)
        read = {topic_partition for _, topic_partition in there}
        chosen_partitions(self._log_dir, self._topics, self._partitions, read)

    def _chosen_report(self, topic_partition: TopicPartition) -> LsoReport | None:
        is_wanted = is_chosen(topic_partition, self._topics, self._partitions)
        return self._report_of(topic_partition) if is_wanted else None

    def _report_of(self, topic_partition: TopicPartition) -> LsoReport | None:
        """Return the report on a partition, made once; None when it is not here or cannot be read."""
        from txnkafka.errors import KafkaError

        if topic_partition not in self._reports:
            self._reports[topic_partition] = None
            if topic_partition in self._here:
                self._progress.phase(str(topic_partition))
                try:
                    with closing(self._log_dir.partition(*topic_partition)) as view:
                        self._reports[topic_partition] = self._report(view)
                except KafkaError as error:
                    self.status = COULD_NOT
                    self._messages.error(f"{topic_partition}: {error}")
        return self._reports[topic_partition]

    def _report(self, view: PartitionView) -> LsoReport:
        from txnkafka.logdir.lso import lso_report
        from txnkafka.logdir.verdict import Circumstances

        now_ms, origin = self._clock.at(view)
        circumstances = Circumstances(now_ms, self._max_transaction_timeout_ms, now_origin=origin)
        return lso_report(view, self._log_dir.coordinator, circumstances)

    def write_summary(self, *, stuck: bool) -> None:
        """Write how many partitions are stuck, where several were looked at or only those are shown."""
        if self.total > 1 or stuck:
            verb = "is" if self.stuck == 1 or self.total == 1 else "are"
            write_text(f"{self.stuck:,} of {counted(self.total, 'partition')} {verb} stuck")

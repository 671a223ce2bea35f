"""The common part of ``lso`` and ``show``: options for judging transactions, and reports of partitions in
sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import click

from txnkafka.cli.command import Function, add_options
from txnkafka.cli.named import check_patterns
from txnkafka.cli.output import write_paragraph
from txnkafka.cli.target import chosen_partitions, is_chosen, open_log_dir
from txnkafka.cli.times import Timestamp
from txnkafka.model import TopicPartition
from txnkafka.shown import counted, duration, iso_minute

if TYPE_CHECKING:
    from txnkafka.cli.output import Messages
    from txnkafka.cli.progress import Progress
    from txnkafka.cli.target import Partitions, StorageOptions, Topics
    from txnkafka.logdir.directory_files import ReadMethod
    from txnkafka.logdir.explain import Explanation, JudgedTransaction
    from txnkafka.logdir.group_lag import GroupLag
    from txnkafka.logdir.partition import PartitionView
    from txnkafka.logdir.strip import Strip

FINDINGS, COULD_NOT = 1, 2
MINUTE_MS = 60_000

now_option = click.option(
    "--now", type=Timestamp(), help="Judge timeouts by this time; --now now is this machine's clock."
)


class Judged(NamedTuple):
    """The report on a partition, with its strip if one was drawn."""

    report: Explanation
    strip: Strip | None


Draw = Callable[["PartitionView", "Explanation"], "Strip | None"]


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
            help="Unless the broker was stopped cleanly, a younger transaction never counts as hanging.",
        ),
    )


class Judges:
    """Judges the chosen partitions of a directory. An unreadable partition is reported on stderr and
    skipped."""

    def __init__(
        self,
        messages: Messages,
        progress: Progress,
        *,
        logdir: tuple[str, ...],
        topic: Topics,
        partition: Partitions,
        io: ReadMethod,
        storage_options: StorageOptions,
        now: int | None,
        max_minutes: int,
        with_lost: bool = False,
    ) -> None:
        from txnkafka.env import SystemClock
        from txnkafka.logdir.clock import DirectoryClock

        self.status = 0
        self._messages, self._progress = messages, progress
        self._tally = _Tally(SystemClock().now_ms(), now)
        self.log_dir = open_log_dir(logdir, io, messages, storage_options)
        self._topics, self._partitions = topic, partition
        self._clock = DirectoryClock(self.log_dir, self._tally.machine_ms, now)
        self._with_lost = with_lost
        self._max_transaction_timeout_ms = max_minutes * MINUTE_MS
        self._here = frozenset(self.log_dir.topic_partitions)
        self._reports: dict[TopicPartition, Explanation | None] = {}

    @property
    def could_not(self) -> int:
        """2 if a partition could not be read, else 0."""
        return COULD_NOT if self.status == COULD_NOT else 0

    def now_ms(self) -> int:
        """Return the time for judging the coordinator, in milliseconds."""
        return self._clock.at().now_ms

    def judged(self, draw: Draw, *, only_stuck: bool) -> Iterator[Judged]:
        """Yield the report of each readable partition, with the strip from ``draw``; ``only_stuck`` leaves
        out partitions that are not stuck."""
        from txnkafka.errors import KafkaError

        chosen = chosen_partitions(self.log_dir, self._topics, self._partitions)
        self._progress.phase("loading __transaction_state")
        for finding in self.log_dir.coordinator.findings:
            self._messages.finding(finding)
        for topic_partition in self._progress.each(chosen):
            try:
                judged = self._judge(topic_partition, draw, only_stuck=only_stuck)
            except KafkaError as error:
                self.status = COULD_NOT
                self._messages.error(f"{topic_partition}: {error}")
                continue
            self._tally.add(judged.report)
            if judged.report.is_stuck:
                self.status = max(self.status, FINDINGS)
            if judged.report.is_stuck or not only_stuck:
                yield judged

    def _judge(self, topic_partition: TopicPartition, draw: Draw, *, only_stuck: bool) -> Judged:
        with closing(self.log_dir.partition(*topic_partition)) as view:
            report = self._report(view)
            strip = draw(view, report) if report.is_stuck or not only_stuck else None
            self.status = max(self.status, self._messages.findings(view.findings))
        return Judged(report, strip)

    def group_lags(self, patterns: tuple[str, ...]) -> list[GroupLag]:
        """Return the groups in the directory's partitions of ``__consumer_offsets``, with the chosen
        partitions that they have read. Raises UnknownTopicOrPartitionError when no partition of
        ``__consumer_offsets`` is here, and for a topic or partition that is not here and that no group has
        read; KafkaError for a pattern that matches no group."""
        from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC
        from txnkafka.errors import UnknownTopicOrPartitionError
        from txnkafka.logdir.group_lag import group_lags

        groups, coordinator = self.log_dir.groups, self.log_dir.coordinator
        if not groups.partitions:
            raise UnknownTopicOrPartitionError(
                f"no partition of {CONSUMER_OFFSETS_TOPIC} in {', '.join(self.log_dir.paths)}: the offsets "
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
        place = ", ".join(self.log_dir.paths)
        check_patterns(patterns, {group for group, _ in there}, "group", "groups", place)
        read = {topic_partition for _, topic_partition in there}
        chosen_partitions(self.log_dir, self._topics, self._partitions, read)

    def _chosen_report(self, topic_partition: TopicPartition) -> Explanation | None:
        is_wanted = is_chosen(topic_partition, self._topics, self._partitions)
        return self._report_of(topic_partition) if is_wanted else None

    def _report_of(self, topic_partition: TopicPartition) -> Explanation | None:
        """Return the cached report on a partition; None when it is not here or cannot be read."""
        from txnkafka.errors import KafkaError

        if topic_partition not in self._reports:
            self._reports[topic_partition] = None
            if topic_partition in self._here:
                self._progress.phase(str(topic_partition))
                try:
                    with closing(self.log_dir.partition(*topic_partition)) as view:
                        self._reports[topic_partition] = self._report(view)
                except KafkaError as error:
                    self.status = COULD_NOT
                    self._messages.error(f"{topic_partition}: {error}")
        return self._reports[topic_partition]

    def _report(self, view: PartitionView) -> Explanation:
        from txnkafka.logdir.lso import explanation_of
        from txnkafka.logdir.verdict import Circumstances

        now_ms, origin = self._clock.at(view)
        circumstances = Circumstances(now_ms, self._max_transaction_timeout_ms, now_origin=origin)
        return explanation_of(view, self.log_dir.coordinator, circumstances, with_lost=self._with_lost)

    def write_summary(self, *, stuck: bool) -> None:
        """Write the number of stuck partitions, if several were judged or only stuck ones are shown, and the
        number with a transaction within its timeout, with the time of the judgement."""
        if self._tally.total > 1 or stuck:
            write_paragraph(self._tally.summary())

    def note_summary(self) -> None:
        """Write the summary as a note if transactions are within their timeouts; for machine-readable
        formats."""
        if self._tally.within:
            self._messages.note(self._tally.summary())


class _Tally:
    """Counts judged partitions: all, Kafka's own, stuck, and with open transactions but not stuck. ``now_ms``
    is the time that the user chose, if any."""

    def __init__(self, machine_ms: int, now_ms: int | None) -> None:
        self.machine_ms = machine_ms
        self._is_chosen = now_ms is not None
        self.total = self.within = 0
        self._internal = self._stuck = self._waiting = 0
        self._latest_ms = -1  # time of the last judgement "within its timeout"

    def add(self, report: Explanation) -> None:
        """Count a partition."""
        from txnkafka.logdir.names import is_internal

        self.total += 1
        self._internal += is_internal(report.topic)
        self._stuck += report.is_stuck
        if report.open_transactions and not report.is_stuck:
            self.within += 1
            self._waiting += report.waiting.records
            self._latest_ms = max(self._latest_ms, report.judged.now_ms)

    def summary(self) -> str:
        """Return the counts as a sentence."""
        verb = "is" if self._stuck == 1 or self.total == 1 else "are"
        own = f" ({self._internal:,} of Kafka's own topics)" if 0 < self._internal < self.total else ""
        text = f"{self._stuck:,} of {counted(self.total, 'partition')}{own} {verb} stuck"
        if not self.within:
            return text
        has, their = ("has", "its timeout") if self.within == 1 else ("have", "their timeout")
        waits = "waits" if self._waiting == 1 else "wait"
        return (
            f"{text}; {self.within:,} {has} open transactions within {their} "
            f"({counted(self._waiting, 'record')} {waits}), judged at {self._moment()}"
        )

    def _moment(self) -> str:
        """Return the time of the judgement, with its distance from this machine's clock unless the user chose
        it."""
        when, age = iso_minute(self._latest_ms), self.machine_ms - self._latest_ms
        if self._is_chosen:
            return f"{when}, as --now says"
        if age < MINUTE_MS:
            return when
        return f"{when}, {duration(age)} before this machine's clock: --now now"

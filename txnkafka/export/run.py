"""Runs an export: plans a round or continues it, stages units on an engine, counts them in order.

The units of a partition count in the order of their offsets, whatever the order of staging: when the export
stops at a damaged batch, later units must not count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.env import DataFiles, LocalDataFiles
from txnkafka.export.manifest import Manifest, Round
from txnkafka.export.plan import Locate, RoundPlan, plan_round
from txnkafka.export.tables import commit_table
from txnkafka.export.unit import StagedUnit, UnitTask, stage_unit

if TYPE_CHECKING:
    from txnkafka.export.options import ExportOptions
    from txnkafka.logdir.directory import LogDir
    from txnkafka.logdir.finding import Finding
    from txnkafka.model import TopicPartition

Engine = Callable[[Iterable[UnitTask]], Iterable[StagedUnit]]
"""Stages units, in any order."""
Progress = Callable[[int, int], None]
"""Called with the finished log bytes and their total."""


class ExportReport(NamedTuple):
    """The result of an export. ``round`` counts from 0; ``rows``, ``files`` and ``bytes`` are totals of that
    round, ``new_rows`` the rows added by this run. ``stopped`` and ``left_out`` name damaged batches."""

    export_id: str
    round: int
    partitions: int
    rows: int
    files: int
    bytes: int
    new_rows: int
    findings: list[Finding]
    stopped: list[str]
    left_out: list[str]

    @property
    def is_sound(self) -> bool:
        """True if no batch was left out."""
        serious = any(finding.severity == "error" for finding in self.findings)
        return not (serious or self.stopped or self.left_out)


def export(
    log_dir: LogDir,
    partitions: list[TopicPartition],
    output: str,
    options: ExportOptions,
    *,
    locate: Locate,
    incremental: bool = False,
    engine: Engine | None = None,
    progress: Progress | None = None,
    files: DataFiles | None = None,
) -> ExportReport:
    """Export the records that ``locate`` selects to ``output``, or continue an export with the same options.
    A finished export stays unchanged, unless ``incremental`` adds the records appended since.

    Raises KafkaError when the directory contains another export, or when the log has changed since the plan
    or cannot be read."""
    files = LocalDataFiles() if files is None else files
    with closing(Manifest(files, output, options)) as manifest:
        running = _Run(manifest, log_dir, options, LocalEngine(files) if engine is None else engine, progress)
        rounds = manifest.rounds()
        report = running.round(rounds[-1]) if rounds else None
        if report is None or incremental:
            ends = {key: end for past in rounds for key, end in past.ends().items()}
            plan = plan_round((log_dir.partition(*name) for name in partitions), options, locate, ends)
            if report is not None and not plan.units:
                new = [finding for finding in plan.findings if finding not in report.findings]
                return report._replace(findings=report.findings + new)
            following = Round(manifest, len(rounds))
            following.begin(plan)
            report = running.round(following)
        return report


class LocalEngine:
    """Stages units in this process, ``threads`` at a time."""

    def __init__(self, files: DataFiles, threads: int = 1) -> None:
        self._files = files
        self._threads = threads

    def __call__(self, tasks: Iterable[UnitTask]) -> Iterator[StagedUnit]:
        if self._threads == 1:
            yield from (stage_unit(self._files, task) for task in tasks)
            return
        with ThreadPoolExecutor(self._threads) as pool:
            waiting: deque[Future[StagedUnit]] = deque()
            try:
                for task in tasks:
                    waiting.append(pool.submit(stage_unit, self._files, task))
                    if len(waiting) > self._threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                pool.shutdown(cancel_futures=True)


class _Run:
    """One run of an export: the state that its rounds share."""

    def __init__(
        self,
        manifest: Manifest,
        log_dir: LogDir,
        options: ExportOptions,
        engine: Engine,
        progress: Progress | None,
    ) -> None:
        self._manifest = manifest
        self._log_dir = log_dir
        self._options = options
        self._engine = engine
        self._progress = progress

    def round(self, round: Round) -> ExportReport:
        """Finish a round; do nothing if it is already finished."""
        plan = round.plan()
        new_rows = 0
        if not round.is_finished:
            new_rows = self._stage(round, plan)
            commit_table(self._manifest, round, self._options)
            round.finish(plan)
        return self._report(round, plan, new_rows)

    def _stage(self, round: Round, plan: RoundPlan) -> int:
        """Stage and count all remaining units; return the number of their rows."""
        order = _Order(round, plan, self._progress)
        before = order.rows
        for unit in round.area.staged():
            order.take(unit)
        for unit in self._engine(self._tasks(round, plan, order)):
            order.take(unit)
        return order.rows - before

    def _tasks(self, round: Round, plan: RoundPlan, order: _Order) -> Iterator[UnitTask]:
        for unit in plan.units:
            if order.lacks(unit.number):
                source = self._log_dir.partition(*unit.topic_partition).source
                yield UnitTask(unit, self._options, round.area.staging, source.mapped, source.file_system)

    def _report(self, round: Round, plan: RoundPlan, new_rows: int) -> ExportReport:
        rows = files = size = 0
        stopped, left_out = [], []
        for unit in round.area.counted():
            rows += unit.rows
            files += len(unit.files)
            size += sum(file.size for file in unit.files)
            left_out += unit.left_out
            stopped += [unit.stopped_by] if unit.stopped_by else []
        partitions = len(plan.ranges)
        totals = (self._manifest.export_id, round.number, partitions, rows, files, size, new_rows)
        return ExportReport(*totals, plan.findings, stopped, left_out)


class _Order:
    """Counts staged units, each partition's units in offset order."""

    def __init__(self, round: Round, plan: RoundPlan, progress: Progress | None) -> None:
        self.rows = 0
        self._round = round
        self._progress = progress
        self._waiting: dict[int, StagedUnit] = {}
        self._queues: dict[TopicPartition, deque[int]] = {}
        for unit in plan.units:
            self._queues.setdefault(unit.topic_partition, deque()).append(unit.number)
        self._owners = [unit.topic_partition for unit in plan.units]
        self._sizes = [unit.size for unit in plan.units]
        self._done = 0
        for staged in round.area.counted():
            round.publish(staged)
            self._pass(staged)

    def lacks(self, number: int) -> bool:
        """Return True if a unit still has to be staged."""
        queue = self._queues[self._owners[number]]
        return bool(queue) and number >= queue[0] and number not in self._waiting

    def take(self, unit: StagedUnit) -> None:
        """Accept a staged unit, and count all units that are next in offset order."""
        if not self.lacks(unit.number):
            return  # a second attempt at the same unit
        self._waiting[unit.number] = unit
        queue = self._queues[self._owners[unit.number]]
        while queue and (following := self._waiting.pop(queue[0], None)) is not None:
            self._round.count(following)
            self._pass(following)

    def _pass(self, unit: StagedUnit) -> None:
        """Advance the partition past a counted unit, or end the partition if the unit was stopped."""
        queue = self._queues[self._owners[unit.number]]
        queue.popleft()
        if unit.stopped_by is not None:
            queue.clear()
        self.rows += unit.rows
        self._done += self._sizes[unit.number]
        if self._progress is not None:
            self._progress(self._done, sum(self._sizes))

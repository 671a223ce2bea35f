"""Plans which bytes each Spark task reads, once before anything is read.

A task is a few units of the partitions' own plans (``logdir.plan``): segment, byte range on batch boundaries,
offset range, transactions to hide. A task has no open file and no clock: run a second time, or on another
machine, it reads the same bytes and gives the same rows. Consecutive small units share a task, since a broker
has many small partitions and a Spark task costs tens of milliseconds.

Planning a partition scans all of its batch headers. On the driver that is fast while the files are in its
page cache; the partitions of a large directory are planned in executors (``Spread``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from txnkafka.env import without_password
from txnkafka.errors import KafkaError, LogDirError
from txnkafka.logdir import Finding, LogDir, PartitionSource, PartitionView, ReadUnit
from txnkafka.logdir.requested import units_of
from txnkafka.spark.options import ReadOptions
from txnkafka.spark.progress import shown
from txnkafka.spark.selection import chosen_partitions, partition_request

MIN_TASK_BYTES = 4 << 20  # as for Spark's own file sources, smaller tasks do not pay
LOG = logging.getLogger("txnkafka.spark")


class ReadTask(NamedTuple):
    """The input of one Spark task. ``mapped``: its files may be mapped into memory."""

    units: tuple[ReadUnit, ...]
    mapped: bool


class PartitionPlan(NamedTuple):
    """The units of one partition and findings about it, or the error that prevented a plan."""

    units: tuple[ReadUnit, ...]
    mapped: bool
    findings: tuple[Finding, ...] = ()
    error: Exception | None = None


class PartitionPlanner:
    """Plans one partition; small when pickled, so that it can run in executors."""

    def __init__(self, options: ReadOptions, task_bytes: int) -> None:
        self.options = options
        self.task_bytes = task_bytes

    def __call__(self, source: PartitionSource) -> PartitionPlan:
        """Return the plan of a partition. An error of this package is returned in it, for the caller to
        raise."""
        view = PartitionView(source)
        try:
            return self._plan(view)
        except (KafkaError, ValueError) as error:
            return PartitionPlan((), False, error=error)
        finally:
            view.close()

    def _plan(self, view: PartitionView) -> PartitionPlan:
        options = self.options
        request = partition_request(view, options)
        findings = list(view.findings)
        units = units_of(view, request, unit_bytes=self._unit_bytes(view), findings=findings)
        units = divided_units(units, options)
        mapped = options.io == "mmap" and not view.source.being_written
        return PartitionPlan(tuple(units), mapped, tuple(findings))

    def _unit_bytes(self, view: PartitionView) -> int:
        """Return the size of units; with a limit of records, the bytes of a unit should not be many more."""
        if self.options.max_records_per_partition is None:
            return self.task_bytes
        offsets = max(1, view.log_end_offset - view.log_start_offset)
        size = sum(segment.size for segment in view.segments)
        return max(1, min(self.task_bytes, size * self.options.max_records_per_partition // offsets))


Spread = Callable[[PartitionPlanner, Sequence[PartitionSource], int], Iterable[PartitionPlan]]


def in_this_process(
    planner: PartitionPlanner, sources: Sequence[PartitionSource], log_bytes: int
) -> Iterable[PartitionPlan]:
    """Plan all partitions in this process. ``log_bytes`` is the size of all logs."""
    return map(planner, sources)


def plan_tasks(
    paths: Iterable[str], options: ReadOptions, parallelism: int = 1, spread: Spread = in_this_process
) -> list[ReadTask]:
    """Return the tasks that read the records of ``options``, partition after partition, in offset order.

    ``parallelism`` is the number of tasks that can run at once; the plan has as many, unless they become too
    small. Raises LogDirError, UnknownTopicOrPartitionError, OffsetOutOfRangeError and ValueError."""
    log_dir = open_log_dir(paths, options)
    views = [log_dir.partition(*topic_partition) for topic_partition in chosen_partitions(log_dir, options)]
    log_bytes = sum(segment.size for view in views for segment in view.files.segments)
    limit = task_bytes(log_bytes, options, parallelism)
    plans = spread(PartitionPlanner(options, limit), [view.source for view in views], log_bytes)
    plans = shown(plans, len(views), "partitions planned")
    return joined_tasks(plans, limit, options.max_records_per_partition)


def open_log_dir(
    paths: Iterable[str], options: ReadOptions, tell: Callable[[Iterable[Finding]], None] | None = None
) -> LogDir:
    """Open the directories ``paths``; findings about their checkpoints are logged, or given to ``tell``.
    Raises LogDirError, also for a password in an address: paths are sent to the executors, and appear in
    Spark's plans and event logs."""
    paths = [paths] if isinstance(paths, str) else list(paths)
    for path in paths:
        if without_password(path) != path:
            raise LogDirError(
                f"{without_password(path)}: Spark's plans would show the password in the address; "
                "leave it out, and pass it in storageOptions"
            )
    log_dir = LogDir(paths, io=options.io, storage_options=options.storage_options)
    (tell or report)(log_dir.findings)
    return log_dir


def task_bytes(total: int, options: ReadOptions, parallelism: int) -> int:
    """Return the approximate number of bytes, of ``total``, that a task should read."""
    if options.min_partitions is not None:
        wanted = total // options.min_partitions
    else:
        wanted = max(total // parallelism, MIN_TASK_BYTES)
    return max(1, min(wanted, options.max_bytes_per_partition))


def divided_units(units: Sequence[ReadUnit], options: ReadOptions) -> list[ReadUnit]:
    """Divide units with more offsets than the options allow in a task."""
    limit = options.max_records_per_partition
    if limit is None:
        return list(units)
    return list(chain.from_iterable(_by_records(unit, limit) for unit in units))


def _by_records(unit: ReadUnit, max_records: int) -> Iterator[ReadUnit]:
    """Divide a unit into pieces of at most ``max_records`` offsets. They share its bytes; each decodes its
    own batches. The piece in which the offsets of a damaged batch begin, or the nearest one, reports it."""
    first, end = unit.start_offset, unit.end_offset
    if unit.start_position == unit.end_position or end - first <= max_records:
        yield unit
        return
    for start in range(first, end, max_records):
        stop = min(start + max_records, end)
        damage = tuple(
            damaged._replace(
                wanted=damaged.wanted and start <= max(first, min(damaged.offset, end - 1)) < stop
            )
            for damaged in unit.damage
        )
        yield unit._replace(start_offset=start, end_offset=stop, damage=damage)


def _units(plans: Iterable[PartitionPlan]) -> Iterator[ReadTask]:
    """Yield a task for each unit."""
    for plan in plans:
        if plan.error is not None:
            raise plan.error
        report(plan.findings)
        yield from (ReadTask((unit,), plan.mapped) for unit in plan.units)


def joined_tasks(plans: Iterable[PartitionPlan], limit: int, max_records: int | None) -> list[ReadTask]:
    """Return the tasks of these plans, which join consecutive units within ``limit`` bytes and
    ``max_records``. Raises the error of a plan."""
    return list(_joined(_units(plans), limit, max_records))


def _joined(tasks: Iterable[ReadTask], limit: int, max_records: int | None) -> Iterator[ReadTask]:
    """Join consecutive tasks, within ``limit`` bytes and ``max_records``."""
    units: list[ReadUnit] = []
    mapped, used, records = False, 0, 0
    for task in tasks:
        (unit,) = task.units
        length, count = unit.end_position - unit.start_position, unit.end_offset - unit.start_offset
        full = max_records is not None and records + count > max_records
        if units and (task.mapped != mapped or used + length > limit or full):
            yield ReadTask(tuple(units), mapped)
            units, used, records = [], 0, 0
        units.append(unit)
        mapped, used, records = task.mapped, used + length, records + count
    if units:
        yield ReadTask(tuple(units), mapped)


def report(findings: Iterable[Finding]) -> None:
    """Log findings."""
    for finding in findings:
        level = logging.INFO if finding.severity == "note" else logging.WARNING
        LOG.log(level, "%s: %s; %s", finding.file, finding.message, finding.remedy)

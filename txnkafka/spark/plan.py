"""The plan: which bytes each Spark task reads. Made once, on the driver.

A task is a few units of the partitions' own plans (``logdir.plan``): segment, byte range on batch
boundaries, offset range, transactions to hide. It holds no open file and no clock: run a second time, or on
another machine, it reads the same bytes and gives the same rows.
Small units that follow one another share a task, for a broker has many small partitions and a Spark task
costs tens of milliseconds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from txnkafka.logdir import Finding, LogDir, ReadUnit
from txnkafka.spark.options import ReadOptions
from txnkafka.spark.selection import PartitionRange, chosen_partitions, local_path, partition_ranges

__all__ = ["ReadTask", "open_log_dir", "plan_tasks", "report", "task_bytes"]

MIN_TASK_BYTES = 4 << 20  # for Spark's own file sources, too, less does not pay
LOG = logging.getLogger("txnkafka.spark")


class ReadTask(NamedTuple):
    """What one Spark task reads. ``mapped``: its files may be mapped into memory."""

    units: tuple[ReadUnit, ...]
    mapped: bool


def plan_tasks(paths: Iterable[str], options: ReadOptions, parallelism: int = 1) -> list[ReadTask]:
    """The tasks that read what ``options`` say, partition after partition, in offset order.

    ``parallelism`` is how many tasks may run at once: as many are made as long as they are not too small.
    Raises LogDirError, UnknownTopicOrPartitionError, OffsetOutOfRangeError and ValueError.
    """
    log_dir = open_log_dir(paths, options)
    views = [log_dir.partition(*each) for each in chosen_partitions(log_dir, options)]
    try:
        ranges = partition_ranges(views, options)
        limit = task_bytes(sum(each.log_bytes() for each in ranges), options, parallelism)
        return list(_joined(_units(ranges, options, limit), limit))
    finally:
        for view in views:
            view.close()


def open_log_dir(paths: Iterable[str], options: ReadOptions) -> LogDir:
    """The directory that ``paths`` are; what its checkpoints make one find is logged. Raises LogDirError."""
    log_dir = LogDir([local_path(path) for path in paths], io=options.io)
    report(log_dir.findings, log_dir)
    return log_dir


def task_bytes(total: int, options: ReadOptions, parallelism: int) -> int:
    """About how many of ``total`` bytes a task should read."""
    if options.min_partitions is not None:
        wanted = total // options.min_partitions
    else:
        wanted = max(total // parallelism, MIN_TASK_BYTES)
    return max(1, min(wanted, options.max_bytes_per_partition))


def _units(ranges: list[PartitionRange], options: ReadOptions, unit_bytes: int) -> Iterator[ReadTask]:
    """A task for each unit of the partitions' plans."""
    for view, start, end in ranges:
        findings = list(view.tail_findings)
        units = view.plan(
            isolation_level=options.isolation_level,
            start_offset=start,
            end_offset=end,
            unit_bytes=unit_bytes,
            findings=findings,
        )
        view.close()  # a header index of every partition at once would be a lot of memory
        report(findings, view.topic_partition)
        mapped = options.io == "mmap" and not view.source.being_written
        yield from (ReadTask((unit,), mapped) for unit in units)


def _joined(tasks: Iterable[ReadTask], limit: int) -> Iterator[ReadTask]:
    """Neighbours together, as long as they stay within ``limit`` bytes."""
    units: list[ReadUnit] = []
    mapped, used = False, 0
    for task in tasks:
        (unit,) = task.units
        length = unit.end_position - unit.start_position
        if units and (task.mapped != mapped or used + length > limit):
            yield ReadTask(tuple(units), mapped)
            units, used = [], 0
        units.append(unit)
        mapped, used = task.mapped, used + length
    if units:
        yield ReadTask(tuple(units), mapped)


def report(findings: Iterable[Finding], where: object) -> None:
    """Log findings; ``where`` for those that name no file."""
    for finding in findings:
        level = logging.INFO if finding.severity == "note" else logging.WARNING
        LOG.log(level, "%s: %s; %s", finding.file or where, finding.message, finding.remedy)

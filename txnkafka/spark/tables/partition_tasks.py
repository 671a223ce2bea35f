"""Tasks that read whole partitions, for tables that need all of a partition's headers or bytes.

A partition is not divided, since the outcome of a transaction follows its data. Small partitions share a
task. The driver lists directories and opens no log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from txnkafka.logdir import LogDir, PartitionSource, PartitionView
from txnkafka.model import TopicPartition
from txnkafka.spark.options import ReadOptions
from txnkafka.spark.plan import open_log_dir, task_bytes
from txnkafka.spark.selection import chosen_partitions
from txnkafka.spark.worker import settled

Sources = tuple[PartitionSource, ...]
T = TypeVar("T")


def plan_partitions(paths: Iterable[str], options: ReadOptions, parallelism: int) -> list[Sources]:
    """Return the partitions that ``options`` select, grouped by task. Raises LogDirError,
    UnknownTopicOrPartitionError and ValueError."""
    log_dir = open_log_dir(paths, options)
    return source_tasks(log_dir, chosen_partitions(log_dir, options), options, parallelism)


def chosen_or_all(log_dir: LogDir, options: ReadOptions) -> list[TopicPartition]:
    """Return the partitions that ``options`` select; without a selection all, including Kafka's internal
    topics."""
    if options.topics is None and options.topic_pattern is None and options.assigned is None:
        return log_dir.topic_partitions
    return chosen_partitions(log_dir, options)


def source_tasks(
    log_dir: LogDir, partitions: Iterable[TopicPartition], options: ReadOptions, parallelism: int
) -> list[Sources]:
    """Group consecutive partitions into tasks of limited size."""
    views = [log_dir.partition(*topic_partition) for topic_partition in partitions]
    sizes = [sum(segment.size for segment in view.files.segments) for view in views]
    limit = task_bytes(sum(sizes), options, parallelism)
    tasks: list[Sources] = []
    used = 0
    for view, size in zip(views, sizes, strict=True):
        if not tasks or used + size > limit:
            tasks.append(())
            used = 0
        tasks[-1] = (*tasks[-1], view.source)
        used += size
    return tasks


def each_partition(
    sources: Iterable[PartitionSource], read: Callable[[PartitionView], Iterable[T]]
) -> Iterator[T]:
    """Yield the rows of ``read`` for each partition, and close its files afterwards."""
    with settled():
        for source in sources:
            view = PartitionView(source)
            try:
                yield from read(view)
            finally:
                view.close()

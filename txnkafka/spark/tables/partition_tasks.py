"""Tasks that read whole partitions, for what follows from a partition's headers or from all of its bytes.

A partition is not divided: the outcome of a transaction stands behind its data. Small ones share a task.
The driver lists directories and opens no log.
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

__all__ = ["Sources", "chosen_or_all", "each_partition", "plan_partitions", "source_tasks"]

Sources = tuple[PartitionSource, ...]
T = TypeVar("T")


def plan_partitions(paths: Iterable[str], options: ReadOptions, parallelism: int) -> list[Sources]:
    """The partitions that ``options`` choose, those of a task together. Raises LogDirError,
    UnknownTopicOrPartitionError and ValueError."""
    log_dir = open_log_dir(paths, options)
    return source_tasks(log_dir, chosen_partitions(log_dir, options), options, parallelism)


def chosen_or_all(log_dir: LogDir, options: ReadOptions) -> list[TopicPartition]:
    """The partitions that ``options`` choose; where they choose none, Kafka's own topics too."""
    if options.topics is None and options.topic_pattern is None and options.assigned is None:
        return log_dir.topic_partitions
    return chosen_partitions(log_dir, options)


def source_tasks(
    log_dir: LogDir, partitions: Iterable[TopicPartition], options: ReadOptions, parallelism: int
) -> list[Sources]:
    """Neighbours together, as long as a task does not read too much."""
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
    """What ``read`` makes of one partition after the other; their files are given back."""
    with settled():
        for source in sources:
            view = PartitionView(source)
            try:
                yield from read(view)
            finally:
                view.close()

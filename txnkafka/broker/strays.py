"""Sets files aside that are in the way of new partitions: those of a topic that the registry never had, or
could not delete.

That is durable before the registry has the new partitions: otherwise they would begin with the records of
another topic, and the next start would find a directory with another topic id.

Source: ``LogManager.isStrayReplica``; Apache Kafka sets all strays aside when it starts.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from txnkafka.storage.partition_work import DirectorySync

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from txnkafka.broker.broker import Broker
    from txnkafka.model import TopicPartition
    from txnkafka.storage.work import Work

__all__ = ["has_files", "set_aside"]

LOG = logging.getLogger("txnkafka.broker")


def has_files(broker: Broker, partition: TopicPartition) -> bool:
    """Whether there is a directory of the partition: open, refused, one that is to be deleted, or one that
    ``MissingLogs`` is making for a topic that was deleted meanwhile. The next topic of the name must not be
    served with that: it is deleted, with all that was appended to it."""
    data = broker.data
    return any(partition in known for known in (data.logs, data.retired, data.refused, data.in_creation))


def set_aside(
    broker: Broker, partitions: Iterable[TopicPartition], then: Callable[[Exception | None], None]
) -> None:
    """Rename the directories of partitions that are to be created to ``…-stray``; call ``then`` when nothing
    is in the way, or with the first error."""
    left = [partition for partition in partitions if has_files(broker, partition)]
    if not left:
        then(None)
    errors: list[Exception] = []

    def done(partition: TopicPartition, error: Exception | None) -> None:
        if error is not None:
            errors.append(error)
        if partition == left[-1]:
            then(errors[0] if errors else None)

    for partition in left:  # behind the deletions that are on their way
        broker.jobs.add(partial(_setting_aside, broker, partition), partial(done, partition))


def _setting_aside(broker: Broker, partition: TopicPartition) -> Work:
    """There is work in any case: after it the host looks for what it has to flush."""
    if not has_files(broker, partition):
        return DirectorySync(broker.data.files, broker.data.path)
    LOG.warning("%s is in the way of a new partition, and is renamed to …-stray", partition)
    return broker.manager.setting_aside(partition)

"""Sets aside files that block new partitions: files of a topic that the registry never had, or could not
delete.

The rename is durable before the registry has the new partitions. Otherwise they would begin with the records
of another topic, and the next start would find a directory with another topic id.

Source: ``LogManager.isStrayReplica``; Apache Kafka sets all strays aside when it starts.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from txnkafka.storage.partition_work import DirectorySync

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from txnkafka.broker.services import Services
    from txnkafka.model import TopicPartition
    from txnkafka.storage.work import Work

LOG = logging.getLogger("txnkafka.broker")


def has_files(services: Services, partition: TopicPartition) -> bool:
    """Return whether the partition has a directory: open, refused, to be deleted, or in creation by
    ``MissingLogs`` for a topic that was since deleted.

    The next topic of the name must not be served from this directory, which is deleted with all records in
    it."""
    data = services.data
    return any(partition in known for known in (data.logs, data.retired, data.refused, data.in_creation))


def set_aside(
    services: Services, partitions: Iterable[TopicPartition], then: Callable[[Exception | None], None]
) -> None:
    """Rename blocking directories of partitions to ``…-stray``; call ``then`` when the names are free, or
    with the first error."""
    left = [partition for partition in partitions if has_files(services, partition)]
    if not left:
        then(None)
    errors: list[Exception] = []

    def done(partition: TopicPartition, error: Exception | None) -> None:
        if error is not None:
            errors.append(error)
        if partition == left[-1]:
            then(errors[0] if errors else None)

    for partition in left:  # after the deletions in progress
        services.jobs.add(partial(_setting_aside, services, partition), partial(done, partition))


def _setting_aside(services: Services, partition: TopicPartition) -> Work:
    """Return work in any case: after it the host checks for flushes."""
    if not has_files(services, partition):
        return DirectorySync(services.data.files, services.data.path)
    LOG.warning("%s blocks a new partition, and is renamed to …-stray", partition)
    return services.manager.setting_aside(partition)

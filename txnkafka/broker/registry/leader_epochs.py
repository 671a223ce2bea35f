"""Leader epochs of partitions: raised at each start, and compared with the epochs of clients (KIP-320).

After a power cut, a repair, or a restore from an older copy, a log may be shorter than a consumer has read
it, and grow again. The consumer notices only if the new records have a later leader epoch. A directory cannot
prove that it is not an older copy, so each start raises the epoch of every partition, as in Apache Kafka.

Kafka adds one for each election. Two runs that start from the same copy then have equal epochs, and a
consumer of the first run skips records of the second. Here the new epoch is also at least the number of
seconds since 2025, so it differs between runs unless the clock was set back.

Source: ``ReplicationControlManager``, ``PartitionRegistration``, ``Partition.getLocalLog``.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from txnkafka.coordinator.registry import metadata_records
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import LogDirError
from txnkafka.model import NO_PARTITION_LEADER_EPOCH, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnkafka.broker.services import Services
    from txnkafka.coordinator.registry.metadata_records import LogRecord

_CLOCK_BEGINS_MS: Final = 1_735_689_600_000  # 2025-01-01T00:00:00Z
_LARGEST_OF_CLOCK: Final = 1 << 30  # in 2059, or by a wrong clock: as many epochs are left above it
_LARGEST_EPOCH: Final = (1 << 31) - 1
_RECORDS_OF_A_BATCH: Final = 10_000  # QuorumController.MAX_RECORDS_PER_USER_OP


def next_epoch(*known: int, now_ms: int) -> int:
    """Return the leader epoch after the ``known`` epochs of a partition. ``now_ms`` is the wall clock in
    milliseconds since 1970. The result exceeds 2147483647, the largest epoch, only if that is known."""
    of_clock = min((now_ms - _CLOCK_BEGINS_MS) // 1000, _LARGEST_OF_CLOCK)
    return max(*known, of_clock - 1) + 1


def begin_epochs(services: Services, now_ms: int) -> None:
    """Make this node the leader of all partitions of the registry, each in a new epoch.

    The epochs are durable before any batch has one, so that a power cut cannot take them back. Raises
    LogDirError for a partition that has used the largest epoch, KafkaStorageError."""
    records = _epoch_records(services, now_ms)
    while batch := list(islice(records, _RECORDS_OF_A_BATCH)):
        services.metadata.append(batch, now_ms)
        services.metadata.apply(batch)
    services.metadata.log.flush()


def _epoch_records(services: Services, now_ms: int) -> Iterator[LogRecord]:
    """Yield the partitions with their new epochs. A log may have later epochs than the registry, if it was
    copied without the registry, or from a newer copy."""
    for topic in list(services.image.topics.values()):
        for number, partition in list(topic.partitions.items()):
            name = TopicPartition(topic.name, number)
            latest = services.logs[name].epochs.latest if name in services.logs else None
            of_log = NO_PARTITION_LEADER_EPOCH if latest is None else latest
            epoch = next_epoch(partition.leader_epoch, of_log, now_ms=now_ms)
            if epoch > _LARGEST_EPOCH:
                raise LogDirError(
                    f"{name} has used the largest leader epoch, {_LARGEST_EPOCH}: remove the partition from "
                    f"{services.data.path}, or delete the topic with Apache Kafka"
                )
            started = replace(
                partition, leader=services.node_id, isr=[services.node_id], leader_epoch=epoch,
                partition_epoch=partition.partition_epoch + 1, eligible_leader_replicas=(), last_known_elr=(),
            )  # fmt: skip
            yield metadata_records.partition_image(topic.topic_id, number, started)


def leader_epoch_error(services: Services, partition: TopicPartition, current_leader_epoch: int) -> ErrorCode:
    """Return the error for a request with this leader epoch (-1 if the client knows none), or NONE."""
    if not services.serves(partition):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition not in services.logs:
        return ErrorCode.KAFKA_STORAGE_ERROR
    epoch = services.leader_epoch(partition)
    if current_leader_epoch < 0 or current_leader_epoch == epoch:
        return ErrorCode.NONE
    return ErrorCode.FENCED_LEADER_EPOCH if current_leader_epoch < epoch else ErrorCode.UNKNOWN_LEADER_EPOCH

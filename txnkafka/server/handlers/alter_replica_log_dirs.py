"""AlterReplicaLogDirs: moves replicas between log directories (KIP-113).

Versions 1 to 2. This broker has one directory, so the only valid target is the current one.
"""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING

from txnkafka.broker.records.log_directory import find_volume
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.env import Volume
    from txnkafka.server.peer import Peer, Reply


@serves("AlterReplicaLogDirs")
def handle(
    broker: Broker, request: AlterReplicaLogDirsRequest, version: int, peer: Peer, reply: Reply
) -> None:
    """Answer when the path of the directory is known."""
    wanted = {
        TopicPartition(topic.name, number): each.path
        for each in request.dirs
        for topic in each.topics
        for number in topic.partitions
    }

    def found(volume: Volume, error: Exception | None) -> None:
        results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
        for partition, path in wanted.items():
            code = ErrorCode.KAFKA_STORAGE_ERROR
            if error is None:
                code = _error(broker, partition, is_here=path == volume.path)
            result = AlterReplicaLogDirPartitionResult(partition_index=partition.partition, error_code=code)
            results.setdefault(partition.topic, []).append(result)
        reply(AlterReplicaLogDirsResponse(results=tuple(starmap(_topic, results.items()))))

    find_volume(broker, found)


def _topic(name: str, partitions: list[AlterReplicaLogDirPartitionResult]) -> AlterReplicaLogDirTopicResult:
    return AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(partitions))


def _error(broker: Broker, partition: TopicPartition, *, is_here: bool) -> ErrorCode:
    if not is_here:
        return ErrorCode.LOG_DIR_NOT_FOUND
    return ErrorCode.NONE if broker.serves(partition) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

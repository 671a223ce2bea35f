"""DescribeLogDirs: the data directory and the sizes of its logs (KIP-113).

Versions 1 to 5. From 4 on the response has the size and free space of the file system (KIP-827). Every offset
lag is 0 and no replica is a future one, because this node has one directory and leads all partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.records.log_directory import find_volume, log_sizes
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.env import Volume
    from txnkafka.server.peer import Peer, Reply


@serves("DescribeLogDirs")
def handle(broker: Broker, request: DescribeLogDirsRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when the free space of the file system is known."""
    wanted = None
    if request.topics is not None:
        wanted = {
            TopicPartition(topic.topic, number) for topic in request.topics for number in topic.partitions
        }

    def found(volume: Volume, error: Exception | None) -> None:
        failed = (
            None
            if error is None
            else DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=volume.path)
        )
        reply(DescribeLogDirsResponse(results=(failed or _result(broker, volume, wanted),)))

    find_volume(broker, found)


def _result(broker: Broker, volume: Volume, wanted: set[TopicPartition] | None) -> DescribeLogDirsResult:
    sizes = log_sizes(broker)
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition in sorted(sizes):
        if wanted is None or partition in wanted:
            topics.setdefault(partition.topic, []).append(
                DescribeLogDirsPartition(partition_index=partition.partition, partition_size=sizes[partition])
            )
    return DescribeLogDirsResult(
        log_dir=volume.path,
        topics=tuple(
            DescribeLogDirsTopic(name=name, partitions=tuple(rows)) for name, rows in topics.items()
        ),
        total_bytes=volume.total_bytes,
        usable_bytes=volume.usable_bytes,
    )

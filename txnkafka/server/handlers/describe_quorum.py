"""DescribeQuorum: the voters of the metadata log and their end offsets, here one voter (KIP-595).

Versions 0 to 2. From 1 on the response has the times of the last fetches, which are the current time for the
leader (KIP-836). From 2 on it has directories and controller addresses (KIP-853); this node has no controller
address, because brokers and tools reach it as a broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.registry.metadata_log import METADATA_PARTITION
from txnkafka.error_codes import ErrorCode
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Node,
    PartitionQuorum,
    ReplicaState,
    TopicData,
    TopicQuorum,
)
from txnkafka.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("DescribeQuorum")
def handle(broker: Broker, request: DescribeQuorumRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer at once."""
    if not _is_metadata_log(request):
        reply(DescribeQuorumResponse(topics=tuple(_refused(topic) for topic in request.topics)))
        return
    metadata = broker.metadata
    has_directories = metadata.kraft_version > 0  # else voters are configured, without directories
    directory_id = broker.data.identity.directory_id if has_directories else None
    voter = ReplicaState(
        replica_id=broker.node_id,
        replica_directory_id=(directory_id or ZERO_UUID) if version >= 2 else ZERO_UUID,
        log_end_offset=metadata.log.log_end_offset,
        last_fetch_timestamp=broker.now_ms,
        last_caught_up_timestamp=broker.now_ms,
    )
    partition = PartitionQuorum(
        leader_id=broker.node_id,
        leader_epoch=metadata.epoch,
        high_watermark=metadata.log.high_watermark,
        current_voters=(voter,),
    )
    reply(
        DescribeQuorumResponse(
            topics=(TopicQuorum(topic_name=METADATA_PARTITION.topic, partitions=(partition,)),),
            nodes=(Node(node_id=broker.node_id),) if version >= 2 else (),
        )
    )


def _is_metadata_log(request: DescribeQuorumRequest) -> bool:
    asked = [
        (topic.topic_name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    return asked == [tuple(METADATA_PARTITION)]


def _refused(topic: TopicData) -> TopicQuorum:
    partitions = tuple(
        PartitionQuorum(
            partition_index=partition.partition_index,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=f"{topic.topic_name}-{partition.partition_index} has no quorum",
        )
        for partition in topic.partitions
    )
    return TopicQuorum(topic_name=topic.topic_name, partitions=partitions)

"""AlterPartitionReassignments: moves replicas between brokers (KIP-455).

Versions 0 to 1. This node keeps all replicas: a request for exactly this succeeds, all others are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("AlterPartitionReassignments")
def handle(
    broker: Broker, request: AlterPartitionReassignmentsRequest, version: int, peer: Peer, reply: Reply
) -> None:
    """Answer at once."""
    reply(
        AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change,
            error_message=None if request.topics else "",
            responses=tuple(
                ReassignableTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        _response(broker, topic.name, partition) for partition in topic.partitions
                    ),
                )
                for topic in request.topics
            ),
        )
    )


def _response(broker: Broker, topic: str, wanted: ReassignablePartition) -> ReassignablePartitionResponse:
    partition = TopicPartition(topic, wanted.partition_index)
    error, message = ErrorCode.NONE, None
    if not broker.serves(partition):
        error, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {partition} does not exist"
    elif wanted.replicas is None:
        error, message = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "no replica is being moved"
    elif list(wanted.replicas) != [broker.node_id]:
        error, message = (
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"the only node, {broker.node_id}, has all replicas",
        )
    return ReassignablePartitionResponse(
        partition_index=wanted.partition_index, error_code=error, error_message=message
    )

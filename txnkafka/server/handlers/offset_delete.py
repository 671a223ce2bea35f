"""OffsetDelete: deletes committed offsets of a group (KIP-496). Version 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("OffsetDelete")
def handle(broker: Broker, request: OffsetDeleteRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when the deletion is durable."""
    there = [
        partition
        for topic in request.topics
        for each in topic.partitions
        if broker.serves(partition := TopicPartition(topic.name, each.partition_index))
    ]

    def answer(error: ErrorCode, errors: dict[TopicPartition, ErrorCode]) -> None:
        if error != ErrorCode.NONE:
            reply(OffsetDeleteResponse(error_code=error))
            return
        topics = tuple(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetDeleteResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=errors.get(
                            TopicPartition(topic.name, partition.partition_index),
                            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        ),
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
        reply(OffsetDeleteResponse(topics=topics))

    broker.groups.delete_offsets(request.group_id, there, answer)

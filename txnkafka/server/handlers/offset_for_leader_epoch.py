"""OffsetForLeaderEpoch: the end offset of a leader epoch, with which a consumer detects a truncated log.

Versions 2 to 4. All have the current leader epoch, which fences clients with old metadata (KIP-320).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.model import TopicPartition
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply


@serves("OffsetForLeaderEpoch")
def handle(
    broker: Broker, request: OffsetForLeaderEpochRequest, version: int, peer: Peer, reply: Reply
) -> None:
    """Answer at once."""

    def end_offset(topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
        partition = TopicPartition(topic, asked.partition)
        error, epoch, offset = broker.end_offset_for_epoch(
            partition, asked.leader_epoch, asked.current_leader_epoch
        )
        return EpochEndOffset(
            error_code=error, partition=asked.partition, leader_epoch=epoch, end_offset=offset
        )

    reply(
        OffsetForLeaderEpochResponse(
            topics=tuple(
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=tuple(end_offset(topic.topic, asked) for asked in topic.partitions),
                )
                for topic in request.topics
            )
        )
    )

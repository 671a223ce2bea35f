"""TxnOffsetCommit: offsets of a group that count when the transaction commits (KIP-98).

Versions 0 to 5. 3 names the member, so that one of an earlier generation is fenced (KIP-447); 4 knows
TRANSACTION_ABORTABLE; 5 adds the group to the transaction by itself (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.groups import Identity, OffsetToCommit
from txnkafka.error_codes import ErrorCode
from txnkafka.model import ProducerIdAndEpoch, TopicPartition
from txnkafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.context import Context, Reply

__all__ = ["handle"]


def handle(
    broker: Broker, request: TxnOffsetCommitRequest, version: int, context: Context, reply: Reply
) -> None:
    """Answer when they are durable, and so is the group's part in the transaction."""
    wanted = {
        partition: OffsetToCommit(
            each.committed_offset,
            each.committed_leader_epoch,
            each.committed_metadata or "",
            topic_id=broker.image.topics[topic.name].topic_id,
        )
        for topic in request.topics
        for each in topic.partitions
        if broker.serves(partition := TopicPartition(topic.name, each.partition_index))
    }

    def answer(errors: dict[TopicPartition, ErrorCode]) -> None:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topics = tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index,
                        error_code=errors.get(TopicPartition(topic.name, each.partition_index), unknown),
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
        reply(TxnOffsetCommitResponse(topics=topics))

    if not wanted:
        answer({})
        return
    broker.groups.commit_in_transaction(
        Identity(request.group_id, request.generation_id, request.member_id, request.group_instance_id),
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        wanted,
        answer,
        version=version,
        now_ms=context.now_ms,
    )

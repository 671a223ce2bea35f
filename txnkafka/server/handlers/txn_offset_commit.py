"""TxnOffsetCommit: offsets of a group that count when the transaction commits (KIP-98).

Versions 0 to 6. 3 names the member, so that one of an earlier generation is fenced (KIP-447); 4 knows
TRANSACTION_ABORTABLE; 5 adds the group to the transaction by itself (KIP-890); from 6
on topics have ids, which are stored with the offsets (KIP-1319).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
    from txnkafka.wire.messages.txn_offset_commit import TxnOffsetCommitRequestTopic

__all__ = ["handle"]

TOPIC_IDS: Final = 6  # the first version that names topics by their ids


def handle(
    broker: Broker, request: TxnOffsetCommitRequest, version: int, context: Context, reply: Reply
) -> None:
    """Answer when they are durable, and so is the group's part in the transaction."""
    by_id, image = version >= TOPIC_IDS, broker.image
    names = [image.topic_names.get(topic.topic_id) if by_id else topic.name for topic in request.topics]
    wanted = {}
    for name, topic in zip(names, request.topics, strict=True):
        for each in topic.partitions:
            if name is not None and broker.serves(partition := TopicPartition(name, each.partition_index)):
                wanted[partition] = OffsetToCommit(
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.committed_metadata or "",
                    topic_id=image.topics[name].topic_id,
                    stores_topic_id=by_id,
                )

    def answer(errors: dict[TopicPartition, ErrorCode]) -> None:
        topics = (_topic(name, topic, errors) for name, topic in zip(names, request.topics, strict=True))
        reply(TxnOffsetCommitResponse(topics=tuple(topics)))

    if not wanted:
        answer({})
        return
    broker.groups.commit_in_transaction(
        Identity(
            request.group_id,
            request.generation_id_or_member_epoch,
            request.member_id,
            request.group_instance_id,
        ),
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        wanted,
        answer,
        version=version,
        now_ms=context.now_ms,
    )


def _topic(
    name: str | None, topic: TxnOffsetCommitRequestTopic, errors: dict[TopicPartition, ErrorCode]
) -> TxnOffsetCommitResponseTopic:
    missing = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return TxnOffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            TxnOffsetCommitResponsePartition(
                partition_index=each.partition_index,
                error_code=errors.get(TopicPartition(name or "", each.partition_index), missing),
            )
            for each in topic.partitions
        ),
    )

"""OffsetCommit: offsets of a group.

Versions 2 to 10. 2 to 4 may ask for a retention; 7 has static members; 9 tells GROUP_ID_NOT_FOUND; from 10 on
topics have ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.groups import Identity, OffsetToCommit
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.context import Context, Reply
    from txnkafka.wire.messages.offset_commit import OffsetCommitRequestTopic

__all__ = ["handle"]

_LAST_MS = 2**63 - 1  # of a timestamp


def handle(
    broker: Broker, request: OffsetCommitRequest, version: int, context: Context, reply: Reply
) -> None:
    """Answer when they are durable."""
    by_id, image = version >= 10, broker.image
    names = [image.topic_names.get(topic.topic_id) if by_id else topic.name for topic in request.topics]
    retention_ms = request.retention_time_ms
    expire_timestamp = -1 if retention_ms < 0 else min(context.now_ms + retention_ms, _LAST_MS)
    wanted = {}
    for name, topic in zip(names, request.topics, strict=True):
        for each in topic.partitions:
            if name is not None and broker.serves(TopicPartition(name, each.partition_index)):
                wanted[TopicPartition(name, each.partition_index)] = OffsetToCommit(
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.committed_metadata or "",
                    expire_timestamp,
                    image.topics[name].topic_id,
                )

    def answer(errors: dict[TopicPartition, ErrorCode]) -> None:
        reply(
            OffsetCommitResponse(
                topics=tuple(
                    _topic(name, topic, errors) for name, topic in zip(names, request.topics, strict=True)
                )
            )
        )

    if not wanted:
        answer({})
        return
    identity = Identity(
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
    )
    broker.groups.commit(identity, wanted, answer, version=version, now_ms=context.now_ms)


def _topic(
    name: str | None, topic: OffsetCommitRequestTopic, errors: dict[TopicPartition, ErrorCode]
) -> OffsetCommitResponseTopic:
    missing = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return OffsetCommitResponseTopic(
        topic_id=topic.topic_id,
        name=topic.name,
        partitions=tuple(
            OffsetCommitResponsePartition(
                partition_index=each.partition_index,
                error_code=errors.get(TopicPartition(name or "", each.partition_index), missing),
            )
            for each in topic.partitions
        ),
    )

"""Topics of OffsetCommit and TxnOffsetCommit, whose requests and responses have the same fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from txnkafka.coordinator.group.group_requests import Identity, OffsetToCommit
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
    from txnkafka.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitRequestTopic

Topics = Sequence["OffsetCommitRequestTopic | TxnOffsetCommitRequestTopic"]
Names = Sequence[str | None]
T = TypeVar("T")


def identity_of(request: OffsetCommitRequest | TxnOffsetCommitRequest) -> Identity:
    """Return the identity of the member that commits."""
    return Identity(
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
    )


def names_of(broker: Broker, topics: Topics, *, by_id: bool) -> Names:
    """Return the names of the topics; None for an unknown topic id."""
    known = broker.image.topic_names
    return [known.get(topic.topic_id) if by_id else topic.name for topic in topics]


def offsets_to_commit(
    broker: Broker, names: Names, topics: Topics, *, expire_timestamp: int = -1, stores_topic_id: bool = True
) -> dict[TopicPartition, OffsetToCommit]:
    """Return the offsets of the partitions that the broker serves."""
    wanted = {}
    for name, topic in zip(names, topics, strict=True):
        for each in topic.partitions:
            if name is not None and broker.serves(partition := TopicPartition(name, each.partition_index)):
                wanted[partition] = OffsetToCommit(
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.committed_metadata or "",
                    expire_timestamp,
                    broker.image.topics[name].topic_id,
                    stores_topic_id=stores_topic_id,
                )
    return wanted


def answered_topics(
    names: Names,
    topics: Topics,
    errors: Mapping[TopicPartition, ErrorCode],
    new_topic: Callable[..., T],
    new_partition: Callable[..., object],
) -> tuple[T, ...]:
    """Return the topics of the response. A partition that is missing in ``errors`` is unknown to the
    broker."""
    return tuple(
        new_topic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                new_partition(
                    partition_index=partition.partition_index,
                    error_code=errors.get(
                        TopicPartition(name or "", partition.partition_index),
                        ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    ),
                )
                for partition in topic.partitions
            ),
        )
        for name, topic in zip(names, topics, strict=True)
    )

"""Messages of OffsetCommit and OffsetFetch in all their versions: written, and read as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.client.offsets import OffsetAndMetadata
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import error_for
from txnkafka.model import TopicPartition
from txnkafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from txnkafka.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from txnkafka.client.consumer.consumer_config import ConsumerConfig
    from txnkafka.client.group_metadata import ConsumerGroupMetadata
    from txnkafka.wire.messages.offset_commit import OffsetCommitResponse
    from txnkafka.wire.messages.offset_fetch import OffsetFetchResponse

FIRST_WITH_IDS: Final = 10
"""The first version of both with topic ids instead of names."""
_WITH_GROUPS: Final = 8


def write_commit(
    config: ConsumerConfig,
    identity: ConsumerGroupMetadata | None,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    ids: Mapping[str, str] | None,
) -> OffsetCommitRequest:
    """Return an OffsetCommit; ``ids`` of topics from the version on that has them."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for partition, each in offsets.items():
        row = OffsetCommitRequestPartition(
            partition_index=partition.partition,
            committed_offset=each.offset,
            committed_leader_epoch=-1 if each.leader_epoch is None else each.leader_epoch,
            committed_metadata=each.metadata,
        )
        topics.setdefault(partition.topic, []).append(row)
    rows = tuple(
        OffsetCommitRequestTopic(name=name, partitions=tuple(some))
        if ids is None
        else OffsetCommitRequestTopic(topic_id=ids[name], partitions=tuple(some))
        for name, some in topics.items()
    )
    if identity is None:
        return OffsetCommitRequest(group_id=config.group_id, topics=rows)
    return OffsetCommitRequest(
        group_id=config.group_id,
        generation_id_or_member_epoch=identity.generation_id,
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        topics=rows,
    )


def read_commit(
    response: OffsetCommitResponse, names: Mapping[str, str], version: int
) -> Iterator[tuple[TopicPartition, ErrorCode]]:
    """Yield the error code of each partition."""
    for topic in response.topics:
        name = names.get(topic.topic_id, topic.topic_id) if version >= FIRST_WITH_IDS else topic.name
        for row in topic.partitions:
            yield TopicPartition(name, row.partition_index), ErrorCode.of(row.error_code)


def write_fetch(
    config: ConsumerConfig,
    identity: ConsumerGroupMetadata | None,
    partitions: Collection[TopicPartition],
    ids: Mapping[str, str] | None,
    version: int,
) -> OffsetFetchRequest:
    """Return an OffsetFetch in ``version``. A read_committed consumer waits for offsets in open transactions
    (KIP-447)."""
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    is_stable = config.isolation_level == "read_committed" and version >= 7
    if version < _WITH_GROUPS:
        old = tuple(
            OffsetFetchRequestTopic(name=name, partition_indexes=tuple(some)) for name, some in topics.items()
        )
        return OffsetFetchRequest(group_id=config.group_id, topics=old, require_stable=is_stable)
    rows = tuple(
        OffsetFetchRequestTopics(name=name, partition_indexes=tuple(some))
        if ids is None
        else OffsetFetchRequestTopics(topic_id=ids[name], partition_indexes=tuple(some))
        for name, some in topics.items()
    )
    group = OffsetFetchRequestGroup(
        group_id=config.group_id,
        member_id=None if identity is None else identity.member_id,
        member_epoch=-1 if identity is None else identity.generation_id,
        topics=rows,
    )
    return OffsetFetchRequest(groups=(group,), require_stable=is_stable)


def read_committed_offsets(
    response: OffsetFetchResponse, group_id: str, names: Mapping[str, str], version: int
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets of partitions that have one. Raises the first error."""
    found = response.groups[0] if version >= _WITH_GROUPS else response
    if found.error_code:
        code = ErrorCode.of(found.error_code)
        raise error_for(code, f"group {group_id!r}: committed offsets: {code.name}")
    offsets = {}
    for topic in found.topics:
        name = topic.name
        if isinstance(topic, OffsetFetchResponseTopics) and version >= FIRST_WITH_IDS:
            name = names.get(topic.topic_id, topic.topic_id)
        for row in topic.partitions:
            partition = TopicPartition(name, row.partition_index)
            if row.error_code:
                code = ErrorCode.of(row.error_code)
                raise error_for(code, f"group {group_id!r}: the committed offset of {partition}: {code.name}")
            if row.committed_offset >= 0:
                epoch = None if row.committed_leader_epoch < 0 else row.committed_leader_epoch
                offsets[partition] = OffsetAndMetadata(row.committed_offset, row.metadata or "", epoch)
    return offsets

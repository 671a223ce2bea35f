"""OffsetFetch: committed offsets of groups.

Versions 1 to 10. From 2 on a missing list of topics means all topics, and the response has a top-level error.
7 may ask for stable offsets (KIP-447). From 8 on a request has several groups (KIP-709). From 10 on topics
have ids: an offset is then returned only if it was committed for the topic with this id. An earlier topic of
the same name may have left offsets if a crash interrupted its deletion.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from txnkafka.coordinator.group.group_requests import CommittedOffset
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from txnkafka.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply

Fetched = dict[TopicPartition, CommittedOffset]


class _Topic(NamedTuple):
    """A topic of the request; its name is None for an unknown topic id."""

    topic_id: str
    name: str | None
    partitions: Sequence[int]


class _Group(NamedTuple):
    """A group of the request; ``topics`` is None for all topics. ``member`` is the id and epoch of the
    requesting member."""

    group_id: str
    topics: Sequence[_Topic] | None
    member: tuple[str | None, int] = (None, -1)


@serves("OffsetFetch")
def handle(broker: Broker, request: OffsetFetchRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when all commits before this request are durable."""
    groups = _groups(broker, request, version)
    found: dict[int, tuple[ErrorCode, Fetched]] = {}

    def fetched(number: int, error: ErrorCode, offsets: Fetched) -> None:
        found[number] = error, offsets
        if len(found) == len(groups):
            reply(_response(broker, groups, [found[i] for i in range(len(groups))], version))

    if not groups:
        reply(OffsetFetchResponse())
    for number, group in enumerate(groups):
        wanted = None
        if group.topics is not None:
            wanted = [
                TopicPartition(topic.name, partition)
                for topic in group.topics
                if topic.name is not None
                for partition in topic.partitions
            ]
        broker.groups.fetch(
            group.group_id,
            wanted,
            partial(fetched, number),
            require_stable=request.require_stable,
            member=group.member,
        )


def _groups(broker: Broker, request: OffsetFetchRequest, version: int) -> list[_Group]:
    if version < 8:
        topics = [_Topic(ZERO_UUID, topic.name, topic.partition_indexes) for topic in request.topics or ()]
        return [_Group(request.group_id, None if request.topics is None else topics)]
    names = broker.image.topic_names
    with_all: set[str] = set()  # groups that ask for all offsets: each is answered once
    return [
        _Group(
            group.group_id,
            None
            if group.topics is None
            else [
                _Topic(
                    topic.topic_id,
                    names.get(topic.topic_id) if version >= 10 else topic.name,
                    topic.partition_indexes,
                )
                for topic in group.topics
            ],
            (group.member_id, group.member_epoch),
        )
        for group in request.groups
        if group.topics is not None or _is_first(group.group_id, with_all)
    ]


def _is_first(group_id: str, seen: set[str]) -> bool:
    is_first = group_id not in seen
    seen.add(group_id)
    return is_first


def _response(
    broker: Broker, groups: Sequence[_Group], found: Sequence[tuple[ErrorCode, Fetched]], version: int
) -> OffsetFetchResponse:
    if version >= 8:
        pairs = zip(groups, found, strict=True)
        return OffsetFetchResponse(
            groups=tuple(_group(broker, group, error, offsets, version) for group, (error, offsets) in pairs)
        )
    ((group,), ((error, offsets),)) = groups, found
    missing = error if version < 2 else ErrorCode.NONE
    topics = tuple(
        OffsetFetchResponseTopic(
            name=topic.name or "",
            partitions=tuple(
                OffsetFetchResponsePartition(**_shown(topic, partition, missing, offsets))
                for partition in topic.partitions
            ),
        )
        for topic in _topics(broker, group, offsets)
    )
    return OffsetFetchResponse(topics=topics if version < 2 or not error else (), error_code=error)


def _group(
    broker: Broker, group: _Group, error: ErrorCode, offsets: Fetched, version: int
) -> OffsetFetchResponseGroup:
    if error != ErrorCode.NONE:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error)
    if version >= 10 and group.topics is not None:
        offsets = _of_these_ids(group.topics, offsets)
    topics = tuple(
        OffsetFetchResponseTopics(
            topic_id=topic.topic_id,
            name="" if version >= 10 else topic.name or "",
            partitions=tuple(
                OffsetFetchResponsePartitions(**_shown(topic, partition, ErrorCode.NONE, offsets))
                for partition in topic.partitions
            ),
        )
        for topic in _topics(broker, group, offsets)
        if version < 10 or topic.topic_id != ZERO_UUID or group.topics is not None
    )
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def _of_these_ids(topics: Sequence[_Topic], offsets: Fetched) -> Fetched:
    """Return the offsets without those committed for another topic id; offsets without an id are kept."""
    ids = {topic.name: topic.topic_id for topic in topics}
    return {
        partition: found if found.topic_id in (None, ids[partition.topic]) else CommittedOffset()
        for partition, found in offsets.items()
    }


def _topics(broker: Broker, group: _Group, offsets: Fetched) -> Sequence[_Topic]:
    """Return the topics of the request, or all topics that have offsets."""
    if group.topics is not None:
        return group.topics
    found: dict[str, list[int]] = {}
    for partition in offsets:
        found.setdefault(partition.topic, []).append(partition.partition)
    topics = broker.image.topics
    return [
        _Topic(topics[name].topic_id if name in topics else ZERO_UUID, name, numbers)
        for name, numbers in found.items()
    ]


def _shown(topic: _Topic, partition: int, missing: ErrorCode, offsets: Fetched) -> dict[str, Any]:
    """Return the fields of a partition, for all versions; ``missing`` is the error of a partition without
    an offset."""
    if topic.name is None:
        found = CommittedOffset(error=ErrorCode.UNKNOWN_TOPIC_ID)
    else:
        found = offsets.get(TopicPartition(topic.name, partition), CommittedOffset(error=missing))
    return {
        "partition_index": partition,
        "committed_offset": found.offset,
        "committed_leader_epoch": found.leader_epoch,
        "metadata": found.metadata,
        "error_code": found.error,
    }

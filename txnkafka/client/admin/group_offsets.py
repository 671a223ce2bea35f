"""Committed offsets of groups: list, change, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.client.admin.call import Call, Calls
from txnkafka.client.admin.names import by_partition, by_topic, partitions_of
from txnkafka.client.admin.refusals import checked, refusal
from txnkafka.client.admin.route import GROUP
from txnkafka.client.offsets import OffsetAndMetadata
from txnkafka.model import TopicPartition
from txnkafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from txnkafka.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from txnkafka.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from txnkafka.errors import KafkaError

    Outcomes = dict[TopicPartition, KafkaError | None]

_NAMES: Final = 9  # the last version of OffsetFetch and OffsetCommit with topics by name
_SEVERAL: Final = 8  # the first version of OffsetFetch with several groups
_STABLE: Final = 7  # the first version of OffsetFetch that can wait for open transactions


class GroupOffsetCalls(Calls):
    """A part of ``AdminCore``."""

    async def list_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that a group has committed, of all its partitions or of ``partitions``; one
        without an offset is left out.

        ``require_stable`` waits for transactions that are about to commit offsets of these partitions
        (KIP-447)."""
        asked = None if partitions is None else by_topic(partitions_of(partitions))

        def request(keys: Sequence[str], version: int) -> OffsetFetchRequest:
            return _fetch(group_id, asked, version, require_stable=require_stable)

        at_least = _STABLE if require_stable else 2
        call = Call(
            "OffsetFetch", GROUP, "group", request, _fetched,
            is_single=True, at_least=at_least, at_most=_NAMES,
        )  # fmt: skip
        return await self.result(call, group_id)

    async def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
    ) -> None:
        """Commit offsets for a group without members; a group that does not exist is created (KIP-396).

        Raises UnknownMemberIdError for a group with members, UnknownTopicOrPartitionError; offsets of other
        partitions are committed."""
        wanted = {
            partition: OffsetAndMetadata(offset) if isinstance(offset, int) else offset
            for partition, offset in by_partition(offsets).items()
        }

        def request(keys: Sequence[str], version: int) -> OffsetCommitRequest:
            return _commit(group_id, wanted)

        call = Call(
            "OffsetCommit", GROUP, "group", request, _altered, is_single=True, at_most=_NAMES
        )  # fmt: skip
        if wanted:
            outcomes = await self.result(call, group_id)
            checked(outcomes)

    async def delete_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete committed offsets of a group (KIP-496).

        Raises GroupSubscribedToTopicError while a member subscribes to the topic, GroupIdNotFoundError,
        UnknownTopicOrPartitionError; the other offsets are deleted."""
        topics = tuple(
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=tuple(OffsetDeleteRequestPartition(partition_index=number) for number in numbers),
            )
            for topic, numbers in by_topic(partitions_of(partitions)).items()
        )

        def request(keys: Sequence[str], version: int) -> OffsetDeleteRequest:
            return OffsetDeleteRequest(group_id=group_id, topics=topics)

        call = Call("OffsetDelete", GROUP, "group", request, _deleted, is_single=True)
        if topics:
            outcomes = await self.result(call, group_id)
            checked(outcomes)


def _fetch(
    group_id: str, asked: Mapping[str, list[int]] | None, version: int, *, require_stable: bool
) -> OffsetFetchRequest:
    if version < _SEVERAL:
        rows = None
        if asked is not None:
            rows = tuple(
                OffsetFetchRequestTopic(name=topic, partition_indexes=tuple(numbers))
                for topic, numbers in asked.items()
            )
        return OffsetFetchRequest(group_id=group_id, topics=rows, require_stable=require_stable)
    topics = None
    if asked is not None:
        topics = tuple(
            OffsetFetchRequestTopics(name=topic, partition_indexes=tuple(numbers))
            for topic, numbers in asked.items()
        )
    group = OffsetFetchRequestGroup(group_id=group_id, topics=topics)
    return OffsetFetchRequest(groups=(group,), require_stable=require_stable)


def _fetched(
    response: Any, keys: Sequence[str]
) -> Iterator[tuple[str, dict[TopicPartition, OffsetAndMetadata] | KafkaError]]:
    (group_id,) = keys
    group = response.groups[0] if response.groups else response
    error = refusal(group.error_code, f"group {group_id}")
    offsets = {}
    for topic in group.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            error = error or refusal(each.error_code, f"group {group_id}, {partition}")
            if each.committed_offset >= 0:
                epoch = each.committed_leader_epoch if each.committed_leader_epoch >= 0 else None
                offsets[partition] = OffsetAndMetadata(each.committed_offset, each.metadata or "", epoch)
    yield group_id, error or offsets


def _commit(group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> OffsetCommitRequest:
    topics = []
    for topic, numbers in by_topic(offsets).items():
        rows = [(number, offsets[TopicPartition(topic, number)]) for number in numbers]
        partitions = tuple(
            OffsetCommitRequestPartition(
                partition_index=number,
                committed_offset=each.offset,
                committed_leader_epoch=-1 if each.leader_epoch is None else each.leader_epoch,
                committed_metadata=each.metadata,
            )
            for number, each in rows
        )
        topics.append(OffsetCommitRequestTopic(name=topic, partitions=partitions))
    return OffsetCommitRequest(group_id=group_id, topics=tuple(topics))


def _altered(response: Any, keys: Sequence[str]) -> Iterator[tuple[str, Outcomes | KafkaError]]:
    yield _of_partitions(response, *keys)


def _deleted(response: Any, keys: Sequence[str]) -> Iterator[tuple[str, Outcomes | KafkaError]]:
    (group_id,) = keys
    error = refusal(response.error_code, f"group {group_id}")
    yield (group_id, error) if error is not None else _of_partitions(response, group_id)


def _of_partitions(response: Any, group_id: str) -> tuple[str, Outcomes | KafkaError]:
    """Return the outcome of each partition; one that may pass is the outcome of the group."""
    found: Outcomes = {}
    for topic in response.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            error = refusal(each.error_code, f"group {group_id}, {partition}")
            found[partition] = error
    passing = [each for each in found.values() if each is not None and each.retriable]
    return (group_id, passing[0]) if passing else (group_id, found)

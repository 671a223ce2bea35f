"""The input of an assignor: the subscriptions of the members, and the partitions of their topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from txnkafka.model import TopicPartition

Assignment = dict[str, list[TopicPartition]]
"""The partitions of each member, by member id."""


class MemberSubscription(NamedTuple):
    """The subscription of a member: its topics, the partitions that it owns, in which generation, its
    ``group.instance.id``, the previous partitions and generation of ``sticky``, and its rack."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation_id: int = -1
    instance_id: str | None = None
    previous: tuple[tuple[TopicPartition, ...], int] | None = None
    rack: str | None = None


class GroupSubscription(NamedTuple):
    """``partitions`` are the numbers of partitions of existing topics, ``members`` are by member id."""

    partitions: Mapping[str, int]
    members: Mapping[str, MemberSubscription]

    def subscribers(self, topic: str) -> list[str]:
        """Return the members that are subscribed to a topic, in order."""
        return [member_id for member_id in self.ordered() if topic in self.members[member_id].topics]

    def ordered(self) -> list[str]:
        """Return the members in order: static ones by instance id, then the others by member id
        (``MemberInfo``)."""
        members = self.members
        return sorted(
            members,
            key=lambda member_id: (
                members[member_id].instance_id is None,
                members[member_id].instance_id or member_id,
            ),
        )

    def all_partitions(self) -> Iterator[TopicPartition]:
        """Yield all partitions of subscribed topics, in order."""
        topics = {topic for member in self.members.values() for topic in member.topics}
        for topic in sorted(topics & self.partitions.keys()):
            for number in range(self.partitions[topic]):
                yield TopicPartition(topic, number)


Assignor = Callable[[GroupSubscription], Assignment]

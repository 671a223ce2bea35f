"""The uniform assignor for members that are subscribed to different topics.

A member keeps its previous partitions of subscribed topics. Then partitions without an owner go to the
members with the fewest partitions, topic by topic, starting with the topics that have the most partitions for
each subscriber. Last, partitions move from the most to the least loaded subscribers of a topic, until no
topic gains by it or enough rounds have passed.

Source: UniformHeterogeneousAssignmentBuilder of the group coordinator (KIP-848).
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from struct import Struct
from typing import Final

from txnkafka.coordinator.group.assignors.assignor import GroupSpec, Targets

MOST_ROUNDS: Final = 16
_NOBODY: Final = -1
_HALVES: Final = Struct(">qq")  # the two halves of a topic id, each a signed number


def assign_heterogeneous(group: GroupSpec) -> Targets:
    """Assign the partitions of all subscribed topics."""
    return _Assignment(group).made()


class _Assignment:
    """An assignment in progress. Members are numbers, in the order of the group. ``_owners`` by topic id
    and partition, ``_sizes`` by member."""

    def __init__(self, group: GroupSpec) -> None:
        self._group = group
        self._subscribers: dict[str, list[int]] = {}
        for index, member in enumerate(group.members.values()):
            for topic_id in member.topics:
                self._subscribers.setdefault(topic_id, []).append(index)
        self._owners = {topic_id: [_NOBODY] * group.partitions[topic_id] for topic_id in self._subscribers}
        self._sizes = [0] * len(group.members)
        for index, member in enumerate(group.members.values()):
            subscribed = frozenset(member.topics)
            for topic_id, numbers in member.target.items():
                if topic_id in subscribed:
                    for number in numbers:
                        self._give(topic_id, number, index)

    def made(self) -> Targets:
        """Return the targets of all members."""
        topics = sorted(self._subscribers, key=self._order)
        for topic_id in topics:
            self._assign_rest(topic_id)
        self._balance([topic_id for topic_id in topics if len(self._subscribers[topic_id]) > 1])
        found: list[dict[str, list[int]]] = [{} for _ in self._sizes]
        for topic_id, owners in self._owners.items():
            for number, owner in enumerate(owners):
                found[owner].setdefault(topic_id, []).append(number)
        return {
            member_id: {topic_id: tuple(numbers) for topic_id, numbers in target.items()}
            for member_id, target in zip(self._group.members, found, strict=True)
        }

    def _order(self, topic_id: str) -> tuple[float, int, tuple[int, int]]:
        """Order topics by partitions for each subscriber (descending), number of subscribers, and id as
        Java compares ids."""
        subscribers = len(self._subscribers[topic_id])
        halves = _HALVES.unpack(urlsafe_b64decode(topic_id + "=="))
        return -self._group.partitions[topic_id] / subscribers, subscribers, halves

    def _give(self, topic_id: str, number: int, member: int) -> None:
        owners = self._owners[topic_id]
        if owners[number] != _NOBODY:
            self._sizes[owners[number]] -= 1
        owners[number] = member
        self._sizes[member] += 1

    def _assign_rest(self, topic_id: str) -> None:
        """Assign the partitions without an owner."""
        balancer = _Balancer(self._sizes, self._subscribers[topic_id])
        for number, owner in enumerate(self._owners[topic_id]):
            if owner == _NOBODY:
                self._give(topic_id, number, balancer.least())

    def _balance(self, topics: list[str]) -> None:
        """Balance the topics in rounds, until a whole round changes nothing."""
        last: str | None = None  # the topic that was last changed
        for _ in range(MOST_ROUNDS):
            for topic_id in topics:
                if topic_id == last:
                    return
                is_changed = self._balance_topic(topic_id)
                if is_changed or last is None:
                    last = topic_id

    def _balance_topic(self, topic_id: str) -> bool:
        subscribers, owners = self._subscribers[topic_id], self._owners[topic_id]
        sizes = [self._sizes[member] for member in subscribers]
        if max(sizes) - min(sizes) <= 1:
            return False
        balancer = _Balancer(self._sizes, subscribers)
        given: dict[int, list[int]] = {}
        for number, owner in enumerate(owners):
            given.setdefault(owner, []).append(number)
        is_changed = False
        while True:
            most = balancer.most()
            while most is not None and not given.get(most):
                balancer.exclude()
                most = balancer.most()
            if most is None:
                return is_changed
            number, least = given[most].pop(), balancer.least()
            if balancer.is_balanced:
                return is_changed
            self._give(topic_id, number, least)
            is_changed = True


class _Balancer:
    """Picks the least and the most loaded of some members in turn, as if each picked member got or lost a
    partition. A range of members is used up before it grows by the members on its next level."""

    def __init__(self, sizes: list[int], members: list[int]) -> None:
        self._sizes = sizes
        self._members = sorted(members, key=lambda member: (sizes[member], member))
        self._least_end = self._next_least = 0
        self._least_level = sizes[self._members[0]] - 1
        self._most_begin = self._most_end = len(members)
        self._next_most = len(members) - 1
        self._most_level = sizes[self._members[-1]] + 1

    @property
    def is_balanced(self) -> bool:
        """Return whether the levels of the two ranges differ by at most one."""
        return self._most_level - self._least_level <= 1

    def least(self) -> int:
        """Return the member that gets the next partition."""
        if self._next_least >= self._least_end:
            self._least_level += 1
            while self._least_end < len(self._members) and self._size(self._least_end) == self._least_level:
                self._least_end += 1
            self._next_least = 0
        self._next_least += 1
        return self._members[self._next_least - 1]

    def most(self) -> int | None:
        """Return the member that loses the next partition; None when none is left."""
        if self._next_most < self._most_begin:
            if self._most_end <= self._most_begin and self._most_begin > 0:
                self._most_level = self._size(self._most_begin - 1)  # all members of the range were excluded
            else:
                self._most_level -= 1
            while self._most_begin > 0 and self._size(self._most_begin - 1) == self._most_level:
                self._most_begin -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return None
        self._next_most -= 1
        return self._members[self._next_most + 1]

    def exclude(self) -> None:
        """Exclude the last member from ``most``, because it has no partition to lose."""
        at, last = self._next_most + 1, self._most_end - 1
        self._members[at], self._members[last] = self._members[last], self._members[at]
        self._most_end = last

    def _size(self, at: int) -> int:
        return self._sizes[self._members[at]]

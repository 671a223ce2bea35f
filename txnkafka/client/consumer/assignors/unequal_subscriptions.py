"""The sticky assignment of members with different topics: as balanced as their topics allow.

Owned partitions stay, new ones go to the member with the fewest; then partitions move while that improves the
balance. Source: ``AbstractStickyAssignor.GeneralAssignmentBuilder``.
"""

from __future__ import annotations

from itertools import combinations

from txnkafka.client.consumer.assignors.assignor import Assignment, GroupSubscription
from txnkafka.client.consumer.assignors.owned_partitions import OwnedPartitions
from txnkafka.client.consumer.assignors.partition_movements import PartitionMovements
from txnkafka.model import TopicPartition


def assign_unequal(group: GroupSubscription, owned: OwnedPartitions) -> Assignment:
    """Return the assignment."""
    return _Balancing(group, owned).assign()


class _Balancing:
    """``_assigned`` is changed until it is balanced; ``_owners`` has its partitions."""

    def __init__(self, group: GroupSubscription, owned: OwnedPartitions) -> None:
        self._counts = {
            topic: group.partitions[topic] for topic in group.partitions if group.subscribers(topic)
        }
        self._subscribers = {topic: sorted(group.subscribers(topic)) for topic in self._counts}
        self._topics = {
            member_id: [topic for topic in dict.fromkeys(member.topics) if topic in self._counts]
            for member_id, member in group.members.items()
        }
        self._assigned: Assignment = {
            member_id: list(owned.by_member[member_id]) for member_id in sorted(group.members)
        }
        self._owners = {each: member_id for member_id, some in self._assigned.items() for each in some}
        self._older = owned.older
        ordered = sorted(self._counts, key=lambda topic: (len(self._subscribers[topic]), topic))
        self._all = [
            TopicPartition(topic, number) for topic in ordered for number in range(self._counts[topic])
        ]
        self._movable: set[str] = set(self._assigned)  # members whose partitions may move
        self._movements = PartitionMovements()

    def assign(self) -> Assignment:
        """Keep, give out, and balance."""
        has_revoked = self._keep_subscribed()
        kept = {partition for partitions in self._assigned.values() for partition in partitions}
        free = [partition for partition in self._all if partition not in kept]
        is_first = not self._assigned[self._most()]
        for partition in free:
            self._give(partition)
        self._balance(free, is_first=is_first, has_revoked=has_revoked)
        return self._assigned

    def _keep_subscribed(self) -> bool:
        """Remove partitions of topics that their owner does not read any more; return whether there were
        some."""
        has_revoked = False
        for member_id, partitions in self._assigned.items():
            kept = []
            for partition in partitions:
                if partition.topic in self._topics[member_id]:
                    kept.append(partition)
                elif partition.topic in self._counts:
                    has_revoked = True
                else:
                    del self._owners[partition]
            self._assigned[member_id] = kept
        return has_revoked

    def _give(self, partition: TopicPartition) -> None:
        member_id = min(self._subscribers[partition.topic], key=self._order)
        self._assigned[member_id].append(partition)
        self._owners[partition] = member_id

    def _balance(self, free: list[TopicPartition], *, is_first: bool, has_revoked: bool) -> None:
        movable = [each for each in self._all if len(self._subscribers[each.topic]) > 1]
        fixed = [member_id for member_id in self._assigned if not self._can_take_part(member_id)]
        self._movable -= set(fixed)
        before = {member_id: list(self._assigned[member_id]) for member_id in self._movable}
        owners = dict(self._owners)
        if self._movable:
            if not has_revoked:
                self._move([each for each in free if len(self._subscribers[each.topic]) > 1])
            has_moved = self._move(movable)
            now = {member_id: self._assigned[member_id] for member_id in self._movable}
            if not is_first and has_moved and _unevenness(now) >= _unevenness(before):
                self._assigned |= before
                self._owners = owners

    def _can_take_part(self, member_id: str) -> bool:
        """Return whether a member can get more partitions, or lose one."""
        mine = self._assigned[member_id]
        is_full = len(mine) >= sum(self._counts[topic] for topic in self._topics[member_id])
        return not is_full or any(len(self._subscribers[each.topic]) > 1 for each in mine)

    def _move(self, partitions: list[TopicPartition]) -> bool:
        """Move partitions until nothing improves; return whether one has moved."""
        has_moved = False
        is_modified = True
        while is_modified:
            is_modified = False
            for partition in partitions:
                if self._is_balanced():
                    break
                is_modified |= self._move_one(partition)
            has_moved |= is_modified
        return has_moved

    def _move_one(self, partition: TopicPartition) -> bool:
        size = len(self._assigned[self._owners[partition]])
        previous = self._older.get(partition)
        if (
            previous is not None
            and previous[0] in self._assigned
            and size > len(self._assigned[previous[0]]) + 1
        ):
            self._reassign(partition, previous[0])
            return True
        others = self._subscribers[partition.topic]
        if any(size > len(self._assigned[member_id]) + 1 for member_id in others):
            able = [member_id for member_id in others if member_id in self._movable]
            self._reassign(partition, min(able, key=self._order))
            return True
        return False

    def _reassign(self, partition: TopicPartition, member_id: str) -> None:
        moved = self._movements.instead_of(partition, self._owners[partition], member_id)
        owner = self._owners[moved]
        self._movements.add(moved, owner, member_id)
        self._assigned[owner].remove(moved)
        self._assigned[member_id].append(moved)
        self._owners[moved] = member_id

    def _is_balanced(self) -> bool:
        """Return whether no member could get a partition of one that has two more."""
        sizes = {member_id: len(self._assigned[member_id]) for member_id in self._movable}
        if min(sizes.values()) >= max(sizes.values()) - 1:
            return True
        for member_id, size in sizes.items():
            mine = set(self._assigned[member_id])
            for topic in self._topics[member_id]:
                for number in range(self._counts[topic]):
                    partition = TopicPartition(topic, number)
                    if partition not in mine and size + 1 < len(self._assigned[self._owners[partition]]):
                        return False
        return True

    def _order(self, member_id: str) -> tuple[int, str]:
        return len(self._assigned[member_id]), member_id

    def _most(self) -> str:
        return max(self._assigned, key=self._order)


def _unevenness(assigned: Assignment) -> int:
    """Return the sum of the differences of all pairs of members."""
    sizes = [len(partitions) for partitions in assigned.values()]
    return sum(abs(one - other) for one, other in combinations(sizes, 2))

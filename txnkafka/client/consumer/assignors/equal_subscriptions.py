"""The sticky assignment of members that are all subscribed to the same topics.

Each member keeps its partitions up to its share; the others are given out in turn. Source:
``AbstractStickyAssignor.ConstrainedAssignmentBuilder``.
"""

from __future__ import annotations

from txnkafka.client.consumer.assignors.assignor import Assignment, GroupSubscription
from txnkafka.client.consumer.assignors.owned_partitions import OwnedPartitions
from txnkafka.model import TopicPartition


def assign_equal(
    group: GroupSubscription, owned: OwnedPartitions
) -> tuple[Assignment, dict[TopicPartition, str]]:
    """Return the assignment, and the partitions that move from one member to another."""
    return _Shares(group, owned).assign()


class _Shares:
    """Each member gets ``least`` partitions, and ``extra`` members one more. ``under`` are members below
    their share, ``exact`` those that may get one more."""

    def __init__(self, group: GroupSubscription, owned: OwnedPartitions) -> None:
        self._all = list(group.all_partitions())
        self._owned = owned
        self._least, self._extra = divmod(len(self._all), len(group.members))
        self._over = 0  # members that have one more
        self._under: list[str] = []
        self._exact: list[str] = []
        self._assigned: Assignment = {member_id: [] for member_id in group.members}
        self._given_up: dict[TopicPartition, str] = {}
        self._moving: dict[TopicPartition, str] = {}

    def assign(self) -> tuple[Assignment, dict[TopicPartition, str]]:
        """Let members keep their partitions, and give out the others."""
        for member_id, partitions in self._owned.by_member.items():
            self._keep(member_id, partitions)
        kept = {partition for partitions in self._assigned.values() for partition in partitions}
        self._give_out([partition for partition in self._all if partition not in kept])
        return self._assigned, self._moving

    def _keep(self, member_id: str, partitions: list[TopicPartition]) -> None:
        mine = sorted(set(partitions) - self._owned.disputed, key=lambda each: (each.partition, each.topic))
        most = self._least + (self._extra > 0)
        count = len(mine)
        if count < self._least:
            self._under.append(member_id)
        elif count >= most and self._over < self._extra:
            count = most
            self._over += 1
            if self._over == self._extra:
                self._exact.clear()
        else:
            count = self._least
            if self._over < self._extra:
                self._exact.append(member_id)
        self._assigned[member_id] += mine[:count]
        self._given_up |= dict.fromkeys(mine[count:], member_id)

    def _give_out(self, partitions: list[TopicPartition]) -> None:
        under, exact = sorted(self._under), sorted(self._exact)
        place = 0
        for partition in partitions:
            if under:
                place %= len(under)
                member_id = under[place]
            else:
                member_id = exact.pop(0)
            self._assigned[member_id].append(partition)
            if self._given_up.get(partition, member_id) != member_id or partition in self._owned.disputed:
                self._moving[partition] = member_id
            if under:
                if len(self._assigned[member_id]) == self._least:
                    del under[place]
                    exact.append(member_id)
                else:
                    place += 1

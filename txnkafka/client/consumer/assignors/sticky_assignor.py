"""Sticky: balanced, and members keep as many of their partitions as possible (KIP-54, KIP-429).

``sticky`` is eager: members send the partitions that they had before. ``cooperative-sticky`` withholds a
partition that moves until its owner has given it up, which takes another rebalance. Source:
``AbstractStickyAssignor``, ``StickyAssignor``, ``CooperativeStickyAssignor``, without their awareness of
racks.
"""

from __future__ import annotations

from txnkafka.client.consumer.assignors.assignor import Assignment, GroupSubscription
from txnkafka.client.consumer.assignors.equal_subscriptions import assign_equal
from txnkafka.client.consumer.assignors.owned_partitions import OwnedPartitions
from txnkafka.client.consumer.assignors.unequal_subscriptions import assign_unequal
from txnkafka.model import TopicPartition


def assign_sticky(group: GroupSubscription) -> Assignment:
    """Assign all partitions of the members' topics."""
    previous = {
        member_id: ((), -1) if member.previous is None else member.previous
        for member_id, member in group.members.items()
    }
    return _assign(group, OwnedPartitions.of(group, previous))[0]


def assign_cooperatively(group: GroupSubscription) -> Assignment:
    """Assign partitions, without those that another member still has to give up."""
    previous = {
        member_id: (member.owned, member.generation_id) for member_id, member in group.members.items()
    }
    assigned, moving = _assign(group, OwnedPartitions.of(group, previous))
    for partition, member_id in (_moving(group, assigned) if moving is None else moving).items():
        assigned[member_id].remove(partition)
    return assigned


def _assign(
    group: GroupSubscription, owned: OwnedPartitions
) -> tuple[Assignment, dict[TopicPartition, str] | None]:
    """Return the assignment, and the partitions that move to another member, if they are known."""
    if not group.members:
        return {}, {}
    subscriptions = {frozenset(member.topics) for member in group.members.values()}
    if len(subscriptions) == 1:
        return assign_equal(group, owned)
    return assign_unequal(group, owned), None


def _moving(group: GroupSubscription, assigned: Assignment) -> dict[TopicPartition, str]:
    """Return the partitions that one member gets and another one loses."""
    added: dict[TopicPartition, str] = {}
    lost: set[TopicPartition] = set()
    for member_id, partitions in assigned.items():
        owned = set(group.members[member_id].owned)
        added |= {partition: member_id for partition in partitions if partition not in owned}
        lost |= owned - set(partitions)
    return {partition: member_id for partition, member_id in added.items() if partition in lost}

"""The uniform assignor: equally many partitions for each member, while moving as few as possible.

If all members are subscribed to the same topics, their numbers of partitions differ by at most one. Otherwise
``heterogeneous_assignor`` balances each topic among its subscribers.

Source: UniformAssignor, UniformHomogeneousAssignmentBuilder of the group coordinator (KIP-848).
"""

from __future__ import annotations

from collections.abc import Iterator

from txnkafka.coordinator.group.assignors.assignor import GroupSpec, MemberSpec, Targets
from txnkafka.coordinator.group.assignors.heterogeneous_assignor import assign_heterogeneous

Place = tuple[str, int]  # topic id and partition


def assign_uniformly(group: GroupSpec) -> Targets:
    """Assign the partitions of the members' topics."""
    if not group.members:
        return {}
    return _homogeneous(group) if group.is_homogeneous else assign_heterogeneous(group)


def _homogeneous(group: GroupSpec) -> Targets:
    topics = next(iter(group.members.values())).topics
    if not topics:
        return {}
    there = {place for member in group.members.values() for place in _places(member)}
    total = sum(group.partitions[topic_id] for topic_id in topics)
    unassigned = [
        (topic_id, number)
        for topic_id in topics
        for number in range(group.partitions[topic_id])
        if (topic_id, number) not in there
    ]
    least, extra = divmod(total, len(group.members))
    subscribed = frozenset(topics)
    kept: dict[str, list[Place]] = {}
    room: dict[str, int] = {}
    taken: set[Place] = set()  # the first of two members with the same partition keeps it
    for index, (member_id, member) in enumerate(group.members.items()):
        quota = least + (extra > 0)
        wanted = [place for place in _places(member) if place[0] in subscribed and place not in taken]
        taken.update(wanted)
        kept[member_id], given_up = wanted[:quota], wanted[quota:]
        unassigned += given_up
        left, has_extra = quota - len(kept[member_id]), extra > 0
        if left and has_extra and len(group.members) - index > extra:
            left, has_extra = left - 1, False  # others may take the extra one
        room[member_id] = left
        extra -= has_extra
    free = iter(unassigned)
    for member_id, left in room.items():
        kept[member_id] += [place for _, place in zip(range(left), free, strict=False)]
    return {member_id: _target(places) for member_id, places in kept.items()}


def _places(member: MemberSpec) -> Iterator[Place]:
    for topic_id, numbers in member.target.items():
        for number in numbers:
            yield topic_id, number


def _target(places: list[Place]) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for topic_id, number in sorted(places):
        found.setdefault(topic_id, []).append(number)
    return {topic_id: tuple(numbers) for topic_id, numbers in found.items()}

"""The range assignor: contiguous partitions of each topic, in the order of the members.

Members subscribed to the same topics get the same partitions of all topics with equally many partitions.
Static members come first, so that their order stays when they return with other member ids.

Source: RangeAssignor of the group coordinator (KIP-848).
"""

from __future__ import annotations

from collections import Counter

from txnkafka.coordinator.group.assignors.assignor import GroupSpec, MemberSpec, Targets


def assign_ranges(group: GroupSpec) -> Targets:
    """Divide each topic among its subscribers; the first ones get one partition more."""
    members = sorted(group.members.items(), key=_order)
    subscribers = Counter(topic_id for _, member in members for topic_id in member.topics)
    if group.is_homogeneous:
        subscribers = Counter(dict.fromkeys(subscribers, len(members)))
        members = [(member_id, MemberSpec(members[0][1].topics, {})) for member_id, _ in members]
    following = dict.fromkeys(subscribers, 0)
    extra = {topic_id: group.partitions[topic_id] % count for topic_id, count in subscribers.items()}
    targets: Targets = {}
    for member_id, member in members:
        target = {}
        for topic_id in member.topics:
            begin = following[topic_id]
            end = begin + group.partitions[topic_id] // subscribers[topic_id] + (extra[topic_id] > 0)
            extra[topic_id] -= 1
            following[topic_id] = end
            if begin < end:
                target[topic_id] = tuple(range(begin, end))
        targets[member_id] = target
    return targets


def _order(item: tuple[str, MemberSpec]) -> tuple[bool, str]:
    member_id, member = item
    return member.instance_id is None, member.instance_id or member_id

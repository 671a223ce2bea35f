"""Round robin: the partitions of all topics, one after another, to the members in turn.

Source: ``RoundRobinAssignor``.
"""

from __future__ import annotations

from itertools import cycle

from txnkafka.client.consumer.assignors.assignor import Assignment, GroupSubscription


def assign_in_turn(group: GroupSubscription) -> Assignment:
    """Assign all partitions of the members' topics; a member without the topic is passed over."""
    assigned: Assignment = {member_id: [] for member_id in group.members}
    turns = cycle(group.ordered())
    for partition in group.all_partitions():
        member_id = next(turns)
        while partition.topic not in group.members[member_id].topics:
            member_id = next(turns)
        assigned[member_id].append(partition)
    return assigned

"""Range: of each topic, every member gets a range of partitions.

Members of equal subscriptions get the same numbers of all topics with equally many partitions. Source:
``RangeAssignor``, without its awareness of racks.
"""

from __future__ import annotations

from txnkafka.client.consumer.assignors.assignor import Assignment, GroupSubscription
from txnkafka.model import TopicPartition


def assign_ranges(group: GroupSubscription) -> Assignment:
    """Assign all partitions of the members' topics."""
    assigned: Assignment = {member_id: [] for member_id in group.members}
    for topic in sorted(group.partitions):
        subscribers = group.subscribers(topic)
        if not subscribers:
            continue
        least, extra = divmod(group.partitions[topic], len(subscribers))
        begin = 0
        for place, member_id in enumerate(subscribers):
            end = begin + least + (place < extra)
            assigned[member_id] += [TopicPartition(topic, number) for number in range(begin, end)]
            begin = end
    return assigned

"""``GroupPartitions``: the loaded partitions of ``__consumer_offsets``, and in which of them a group is."""

from __future__ import annotations

from txnkafka.coordinator.group_partition import AnyGroup, GroupPartition
from txnkafka.coordinator.partitions import partition_for
from txnkafka.error_codes import ErrorCode

__all__ = ["GroupPartitions"]


class GroupPartitions:
    """``loaded`` by number, out of ``count``."""

    def __init__(self, count: int) -> None:
        self.loaded: dict[int, GroupPartition] = {}
        self.count = count

    def number_of(self, group_id: str) -> int:
        """The partition that a group belongs to."""
        return partition_for(group_id, self.count)

    def of(self, group_id: str, *, may_be_empty: bool = False) -> GroupPartition | ErrorCode:
        """The partition of a group, or why this node cannot answer for the group. The group with the empty
        name has no members, but old clients may have committed offsets for it."""
        if not group_id and not may_be_empty:
            return ErrorCode.INVALID_GROUP_ID
        return self.loaded.get(self.number_of(group_id), ErrorCode.NOT_COORDINATOR)

    def find(self, group_id: str, *, may_be_empty: bool = False) -> AnyGroup | ErrorCode:
        """A group; GROUP_ID_NOT_FOUND, or why this node cannot answer for it."""
        here = self.of(group_id, may_be_empty=may_be_empty)
        if isinstance(here, ErrorCode):
            return here
        return here.groups.get(group_id, ErrorCode.GROUP_ID_NOT_FOUND)

"""``GroupPartitions``: the loaded partitions of ``__consumer_offsets``, and the lookup of a group in them."""

from __future__ import annotations

from txnkafka.coordinator.group_partition import AnyGroup, GroupPartition
from txnkafka.coordinator.partitions import partition_for
from txnkafka.error_codes import ErrorCode

__all__ = ["GroupPartitions"]


class GroupPartitions:
    """The ``loaded`` partitions by number, out of ``count``."""

    def __init__(self, count: int) -> None:
        self.loaded: dict[int, GroupPartition] = {}
        self.count = count

    def number_of(self, group_id: str) -> int:
        """Return the partition number of a group."""
        return partition_for(group_id, self.count)

    def of(self, group_id: str, *, may_be_empty: bool = False) -> GroupPartition | ErrorCode:
        """Return the partition of a group, or the error with which this node must answer.

        A group with an empty name has no members, but old clients may have committed offsets for it.
        """
        if not group_id and not may_be_empty:
            return ErrorCode.INVALID_GROUP_ID
        return self.loaded.get(self.number_of(group_id), ErrorCode.NOT_COORDINATOR)

    def find(self, group_id: str, *, may_be_empty: bool = False) -> AnyGroup | ErrorCode:
        """Return a group, GROUP_ID_NOT_FOUND, or the error with which this node must answer."""
        here = self.of(group_id, may_be_empty=may_be_empty)
        if isinstance(here, ErrorCode):
            return here
        return here.groups.get(group_id, ErrorCode.GROUP_ID_NOT_FOUND)

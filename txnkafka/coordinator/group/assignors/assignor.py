"""The input and output of an assignor of the coordinator.

Source: PartitionAssignor, GroupSpec, MemberSubscription (KIP-848).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from txnkafka.coordinator.group.consumer.consumer_member import Target

Targets = dict[str, Target]
"""The target assignment of each member."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member to assign: ``topics`` are the ids of its subscribed topics, ``target`` is its previous
    target."""

    topics: tuple[str, ...]
    target: Target
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group to assign: ``members`` by id, in the order of assignment; ``partitions`` are the partition
    counts of all subscribed topics."""

    members: Mapping[str, MemberSpec]
    partitions: Mapping[str, int]
    is_homogeneous: bool


Assign = Callable[[GroupSpec], Targets]
"""An assignor: gives each partition of a subscribed topic to exactly one member."""

"""What an assignor of the coordinator is asked, and how a group is assigned.

Source: PartitionAssignor, GroupSpec, MemberSubscription (KIP-848).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from txnkafka.coordinator.consumer_member import Target

__all__ = ["Assign", "GroupSpec", "MemberSpec", "Targets"]

Targets = dict[str, Target]
"""What each member is to have."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """``topics`` are the ids of the topics that the member is subscribed to, ``target`` is what it was to
    have before."""

    topics: tuple[str, ...]
    target: Target
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """``members`` by id, in the order in which they are looked at; ``partitions`` are the numbers of
    partitions of all topics that somebody is subscribed to."""

    members: Mapping[str, MemberSpec]
    partitions: Mapping[str, int]
    is_homogeneous: bool


Assign = Callable[[GroupSpec], Targets]
"""An assignor: each partition goes to exactly one member, if anybody is subscribed to its topic."""

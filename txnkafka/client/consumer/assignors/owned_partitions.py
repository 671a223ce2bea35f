"""``OwnedPartitions``: which member has which partitions, from what the members claim.

A partition that two members claim belongs to the one of the higher generation, and to none in the same
generation. Source: ``AbstractStickyAssignor.allSubscriptionsEqual``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from txnkafka.client.consumer.assignors.assignor import GroupSubscription
from txnkafka.model import TopicPartition

Claims = Mapping[str, tuple[tuple[TopicPartition, ...], int]]
"""Partitions and generation of each member."""


class OwnedPartitions(NamedTuple):
    """``by_member`` are the partitions of subscribed topics that exist; ``disputed`` were claimed twice in a
    generation; ``older`` has the member and the generation of claims from generations before the highest."""

    by_member: dict[str, list[TopicPartition]]
    disputed: set[TopicPartition]
    older: dict[TopicPartition, tuple[str, int]]

    @classmethod
    def of(cls, group: GroupSubscription, claims: Claims) -> OwnedPartitions:
        """Decide about the claims, in the order of the members."""
        by_member: dict[str, list[TopicPartition]] = {member_id: [] for member_id in sorted(group.members)}
        existing = set(group.all_partitions())
        owners: dict[TopicPartition, str] = {}
        disputed: set[TopicPartition] = set()
        for member_id in by_member:
            partitions, generation_id = claims[member_id]
            for partition in partitions:
                if partition not in existing:
                    continue
                other = owners.get(partition)
                if other is None:
                    by_member[member_id].append(partition)
                    owners[partition] = member_id
                    continue
                other_id = group.members[other].generation_id  # as in Java, also for ``sticky``
                if generation_id < other_id:
                    continue
                if generation_id == other_id:
                    disputed.add(partition)
                else:
                    by_member[member_id].append(partition)
                if partition in by_member[other]:
                    by_member[other].remove(partition)
                owners[partition] = member_id
        return cls(by_member, disputed, _older(claims))


def _older(claims: Claims) -> dict[TopicPartition, tuple[str, int]]:
    highest = max((generation_id for _, generation_id in claims.values()), default=-1)
    older: dict[TopicPartition, tuple[str, int]] = {}
    for member_id in sorted(claims):
        partitions, generation_id = claims[member_id]
        if generation_id < highest:
            for partition in partitions:
                if partition not in older or generation_id > older[partition][1]:
                    older[partition] = member_id, generation_id
    return older

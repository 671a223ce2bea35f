"""Reconciliation of a consumer group member: the steps from its current partitions to its target assignment.

A member first revokes partitions outside its target, and confirms this with its owned partitions. Then it
enters its next epoch with the partitions of its target that no other member owns any more. It waits for the
others.

    Stable -> UnrevokedPartitions -> UnreleasedPartitions -> Stable

Source: CurrentAssignmentBuilder (KIP-848).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from txnkafka.coordinator.group.consumer.consumer_member import ConsumerMember, MemberState, Owned, Target
from txnkafka.coordinator.group.group_error import GroupError
from txnkafka.error_codes import ErrorCode

Claimed = Mapping[str, Sequence[int]] | None


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Input of a step. ``subscribed`` are the ids of the member's topics; ``claimed`` the partitions that
    it claims to own, None if the request has none. ``owner_epoch`` returns the epoch of a partition's
    owner, -1 without one."""

    target_epoch: int
    target: Target
    subscribed: Collection[str]
    claimed: Claimed
    owner_epoch: Callable[[str, int], int]
    is_subscription_new: bool

    def of(self, member: ConsumerMember) -> ConsumerMember:
        """Return the member after its next step.

        Raises GroupError with FENCED_MEMBER_EPOCH for a state that a newer Kafka has written, unless the
        member claims no partitions."""
        if member.state is MemberState.STABLE and member.epoch == self.target_epoch:
            return self._without_other_topics(member) if self.is_subscription_new else member
        if member.state is MemberState.UNREVOKED_PARTITIONS and self._owns(member.revoking):
            return self._without_other_topics(member) if self.is_subscription_new else member
        if member.state is not MemberState.UNKNOWN:
            return self._next(member, member.epoch)
        if self.claimed is None or self.claimed:
            raise GroupError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. The member must abandon all its partitions "
                "and rejoin.",
            )
        return self._next(member, self.target_epoch)

    def _owns(self, partitions: Owned) -> bool:
        """Return whether the member still owns any given partition; true if it has claimed nothing."""
        if self.claimed is None:
            return True
        return any(
            number in partitions.get(topic_id, {})
            for topic_id, numbers in self.claimed.items()
            for number in numbers
        )

    def _without_other_topics(self, member: ConsumerMember) -> ConsumerMember:
        """Revoke the partitions of topics that the member is no longer subscribed to, in the same epoch."""
        kept = {topic_id: each for topic_id, each in member.assigned.items() if topic_id in self.subscribed}
        if len(kept) == len(member.assigned):
            return member
        revoking = dict(member.revoking)
        for topic_id, each in member.assigned.items():
            if topic_id not in kept:
                revoking[topic_id] = {**revoking.get(topic_id, {}), **each}
        if not self._owns(revoking):
            return replace(member, previous_epoch=member.epoch, assigned=kept)
        return replace(
            member, state=MemberState.UNREVOKED_PARTITIONS, previous_epoch=member.epoch,
            assigned=kept, revoking=revoking,
        )  # fmt: skip

    def _next(self, member: ConsumerMember, epoch: int) -> ConsumerMember:
        assigned: dict[str, dict[int, int]] = {}
        revoking: dict[str, dict[int, int]] = {}
        is_waiting = False
        for topic_id in sorted({*self.target, *member.assigned}):
            current = member.assigned.get(topic_id, {})
            target = self.target.get(topic_id, ()) if topic_id in self.subscribed else ()
            to_have = frozenset(target)
            kept = {number: given for number, given in current.items() if number in to_have}
            lost = {number: given for number, given in current.items() if number not in to_have}
            wanted = [number for number in target if number not in current]
            free = [number for number in wanted if self._is_free(member, topic_id, number)]
            is_waiting = is_waiting or len(free) < len(wanted)
            if lost:
                revoking[topic_id] = lost
            if kept or free:
                assigned[topic_id] = {**kept, **dict.fromkeys(free, self.target_epoch)}
        if revoking and self._owns(revoking):
            return self._revoking(member, epoch, assigned, revoking)
        state = MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE
        return replace(
            member, state=state, epoch=self.target_epoch, previous_epoch=member.epoch,
            assigned=assigned, revoking={},
        )  # fmt: skip

    def _revoking(
        self, member: ConsumerMember, epoch: int, assigned: dict[str, dict[int, int]], revoking: Owned
    ) -> ConsumerMember:
        """Return the member with the partitions that it keeps; new ones follow with the next epoch."""
        kept: dict[str, dict[int, int]] = {}
        for topic_id, each in assigned.items():
            there = member.assigned.get(topic_id, {})
            old = {number: given for number, given in each.items() if number in there}
            if old:
                kept[topic_id] = old
        return replace(
            member, state=MemberState.UNREVOKED_PARTITIONS, epoch=epoch, previous_epoch=member.epoch,
            assigned=kept, revoking=revoking,
        )  # fmt: skip

    def _is_free(self, member: ConsumerMember, topic_id: str, partition: int) -> bool:
        """Return whether a partition has no owner, or only the member itself, which was revoking it."""
        is_owned = self.owner_epoch(topic_id, partition) != -1
        return not is_owned or partition in member.revoking.get(topic_id, {})

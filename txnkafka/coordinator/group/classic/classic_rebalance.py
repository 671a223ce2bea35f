"""``ClassicRebalance``: the rebalance of a classic group, from one generation to the next, with its timeouts.

A group in memory changes at once. Its log has the last stable generation: the answers to the leader's
SyncGroup and to all others wait until this record is durable.

Source: GroupMetadataManager.prepareRebalance, completeClassicGroupJoin, classicGroupSync.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from txnkafka.coordinator.group.classic.classic_group import ClassicGroup, GroupState, Member
from txnkafka.coordinator.group.consumer.consumer_config import ConsumerGroupConfig
from txnkafka.coordinator.group.group_requests import Identity, Joined, Synced, SyncGroup
from txnkafka.coordinator.timers import Timers
from txnkafka.error_codes import ErrorCode

E = ErrorCode


class GroupConfig(NamedTuple):
    """The settings ``group.*`` and ``offset*`` of the broker."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = (1 << 31) - 1
    initial_rebalance_delay_ms: int = 3_000
    metadata_max_bytes: int = 4_096
    retention_ms: int = 604_800_000
    retention_check_interval_ms: int = 600_000
    consumer: ConsumerGroupConfig = ConsumerGroupConfig()


class Persist(Protocol):
    """Function that appends the record of a group."""

    def __call__(self, group: ClassicGroup, call: Callable[[ErrorCode], None]) -> None:
        """Append the record; ``call`` gets NONE when it is durable, or the error."""


@dataclass
class ClassicRebalance:
    """The rebalances of all classic groups. ``now_ms`` and ``ticks`` are the time of the current call."""

    timers: Timers
    config: GroupConfig
    persist: Persist
    now_ms: int = 0
    ticks: int = 0

    # SyncGroup

    def sync(self, group: ClassicGroup, request: SyncGroup, reply: Callable[[Synced], None]) -> None:
        """Answer a member with its assignment; the leader's request brings the assignments."""
        if (refused := self._refusal(group, request)) is not None:
            reply(Synced(refused))
            return
        member = group.members[request.identity.member_id]
        if group.state is GroupState.PREPARING_REBALANCE:
            reply(Synced(E.REBALANCE_IN_PROGRESS))
            return
        self._synced(group, member)
        if group.state is GroupState.STABLE:
            reply(self._assignment(group, member))
            return
        earlier, member.syncing = member.syncing, reply
        if earlier is not None:  # only the newest request gets the assignment
            earlier(Synced(E.REBALANCE_IN_PROGRESS))
        if member.member_id == group.leader:
            self._assign(group, request)

    def _refusal(self, group: ClassicGroup, request: SyncGroup) -> ErrorCode | None:
        refused = self.refused(group, request.identity)
        if refused is not None:
            return refused
        if request.protocol_type is not None and request.protocol_type != group.protocol_type:
            return E.INCONSISTENT_GROUP_PROTOCOL
        if request.protocol is not None and request.protocol != group.protocol:
            return E.INCONSISTENT_GROUP_PROTOCOL
        return E.UNKNOWN_MEMBER_ID if group.state is GroupState.EMPTY else None

    def _synced(self, group: ClassicGroup, member: Member) -> None:
        group.unsynced.pop(member.member_id, None)
        if not group.unsynced:
            self.timers.cancel(("sync", group.group_id))

    def _assign(self, group: ClassicGroup, request: SyncGroup) -> None:
        generation = group.generation
        before = {member_id: member.assignment for member_id, member in group.members.items()}
        for member_id, member in group.members.items():
            member.assignment = request.assignments.get(member_id, b"")

        def persisted(error: ErrorCode) -> None:
            if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != generation:
                return
            if error != E.NONE:
                for member_id, assignment in before.items():
                    if member_id in group.members:
                        group.members[member_id].assignment = assignment
                self._answer_syncs(group, error)
                self.prepare(group)
                return
            group.become(GroupState.STABLE, self.now_ms)
            self._answer_syncs(group, E.NONE)

        self.persist(group, persisted)

    def _answer_syncs(self, group: ClassicGroup, error: ErrorCode) -> None:
        for member in list(group.members.values()):
            if error != E.NONE:
                member.assignment = b""
            syncing, member.syncing = member.syncing, None
            if syncing is not None:
                self.expect(group, member)
                syncing(Synced(error) if error != E.NONE else self._assignment(group, member))

    def _assignment(self, group: ClassicGroup, member: Member) -> Synced:
        return Synced(E.NONE, member.assignment, group.protocol_type, group.protocol)

    # The rebalance

    def begin(self, group: ClassicGroup) -> None:
        """Begin a rebalance, or complete the current one when all members have joined.

        A rebalance of a group that was empty is not completed before its initial delay is over."""
        if group.state is not GroupState.PREPARING_REBALANCE:
            self.prepare(group)
        elif group.all_have_joined and not group.was_empty:
            self._complete(group)

    def prepare(self, group: ClassicGroup) -> None:
        """Begin a rebalance."""
        if group.state is GroupState.COMPLETING_REBALANCE:
            self._answer_syncs(group, E.REBALANCE_IN_PROGRESS)
        self.timers.cancel(("sync", group.group_id))
        is_initial = group.state is GroupState.EMPTY
        group.become(GroupState.PREPARING_REBALANCE, self.now_ms)
        if is_initial:
            delay = self.config.initial_rebalance_delay_ms
            self._wait_for_more(group, delay, max(0, group.rebalance_timeout_ms - delay))
        elif group.all_have_joined:
            self._complete(group)
        else:
            self._complete_later(group)

    def _wait_for_more(self, group: ClassicGroup, delay: int, left: int) -> None:
        """Delay the end of the initial rebalance while new members join (KIP-134)."""

        def over() -> None:
            if group.has_new_member and left:
                group.has_new_member = False
                most = min(self.config.initial_rebalance_delay_ms, left)
                self._wait_for_more(group, most, max(0, left - delay))
            else:
                self._complete(group)

        self.later(("join", group.group_id), delay, over)

    def _complete(self, group: ClassicGroup) -> None:
        """Make the next generation from the members that have joined, when all have or the time is over.
        Static members stay even if they have not joined."""
        for member in list(group.members.values()):
            if member.joining is None and member.group_instance_id is None:
                self.remove(group, member)
        # set until the next generation: the group must not wait for ever, whatever fails below
        self._complete_later(group)
        if group.members and not group.elect_leader():
            return
        group.next_generation(self.now_ms)
        self.timers.cancel(("join", group.group_id))
        if not group.members:
            self.persist(group, lambda _: None)
            return
        group.unsynced = dict.fromkeys(group.members)
        key, generation = ("sync", group.group_id), group.generation
        self.later(key, group.rebalance_timeout_ms, lambda: self._drop_unsynced(group, generation))
        for member in list(group.members.values()):
            self._answer_join(group, member)

    def _complete_later(self, group: ClassicGroup) -> None:
        self.later(("join", group.group_id), group.rebalance_timeout_ms, lambda: self._complete(group))

    def _answer_join(self, group: ClassicGroup, member: Member) -> None:
        joining, member.joining = member.joining, None
        member.is_new = False
        self.expect(group, member)
        if joining is not None:
            joining(group.joined(member))

    def _drop_unsynced(self, group: ClassicGroup, generation: int) -> None:
        is_this = group.generation == generation
        if not is_this or group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return
        for member_id in list(group.unsynced):
            self.remove(group, group.members[member_id])
        self.prepare(group)

    def refused(self, group: ClassicGroup, identity: Identity) -> ErrorCode | None:
        """Return the error for a request that is not from a member of this generation, else None."""
        refused = group.refusal(identity)
        if refused is None and identity.generation != group.generation:
            return E.ILLEGAL_GENERATION
        return refused

    def remove(self, group: ClassicGroup, member: Member) -> None:
        """Remove a member, and answer its waiting requests with UNKNOWN_MEMBER_ID."""
        self.timers.cancel(("session", group.group_id, member.member_id))
        group.remove(member.member_id)
        joining, syncing = member.joining, member.syncing
        member.joining = member.syncing = None
        if joining is not None:
            joining(Joined(E.UNKNOWN_MEMBER_ID))
        if syncing is not None:
            syncing(Synced(E.UNKNOWN_MEMBER_ID))

    def drop_pending(self, group: ClassicGroup, member_id: str) -> None:
        """Withdraw the id of a client that did not join with it in time."""
        self.forget_pending(group, member_id)
        self._complete_without(group)

    def forget_pending(self, group: ClassicGroup, member_id: str) -> None:
        """Withdraw an assigned member id."""
        self.timers.cancel(("pending", group.group_id, member_id))
        group.pending.pop(member_id, None)

    def _complete_without(self, group: ClassicGroup) -> None:
        """Complete the current rebalance if it waited only for a removed member."""
        if group.state is GroupState.PREPARING_REBALANCE and group.all_have_joined:
            self._complete(group)

    # Time

    def load(self, group: ClassicGroup) -> None:
        """Start the session timeouts of a group that was loaded from the log."""
        for member in group.members.values():
            self.expect(group, member)

    def forget(self, group: ClassicGroup, error: ErrorCode = E.NOT_COORDINATOR) -> None:
        """Stop all timers of a group that this node no longer has, and answer its waiting requests with an
        error."""
        for name in ("join", "sync"):
            self.timers.cancel((name, group.group_id))
        for member_id in group.pending:
            self.timers.cancel(("pending", group.group_id, member_id))
        for member in list(group.members.values()):
            self.timers.cancel(("session", group.group_id, member.member_id))
            joining, syncing = member.joining, member.syncing
            member.joining = member.syncing = None
            if joining is not None:
                joining(Joined(error, member.member_id))
            if syncing is not None:
                syncing(Synced(error))

    def expect(self, group: ClassicGroup, member: Member, within_ms: int | None = None) -> None:
        """Restart a member's session timeout: the configured one, or ``within_ms``."""
        within_ms = member.session_timeout_ms if within_ms is None else within_ms
        key = ("session", group.group_id, member.member_id)
        self.later(key, within_ms, lambda: self._expired(group, member))

    def _expired(self, group: ClassicGroup, member: Member) -> None:
        """Remove a member whose session has expired; a member that waits for an answer need not send
        anything."""
        if group.members.get(member.member_id) is not member:
            return
        if member.waits:
            self.expect(group, member)
            return
        self.remove(group, member)
        if group.state is GroupState.PREPARING_REBALANCE:
            self._complete_without(group)
        else:
            self.prepare(group)

    def later(self, key: tuple[str, ...], after_ms: int, call: Callable[[], None]) -> None:
        """Call after this many ms, unless the timer is cancelled or set again."""
        self.timers.set(key, self.ticks + after_ms, call)

"""``MemberTimers``: session and rebalance timeouts of consumer group members.

Source: GroupMetadataManager.scheduleConsumerGroupSessionTimeout and related methods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from txnkafka.coordinator.group.classic.classic_rebalance import ClassicRebalance
from txnkafka.coordinator.group.consumer.consumer_group import ConsumerGroup
from txnkafka.coordinator.group.consumer.consumer_member import ConsumerMember, MemberState

_SESSION, _REVOKE, _JOIN, _SYNC = "member session", "member revoke", "member join", "member sync"
_ALL: Final = (_SESSION, _REVOKE, _JOIN, _SYNC)
_RETRY_MS: Final = 500  # as in ``CoordinatorRuntime``


@dataclass
class MemberTimers:
    """The timers of all members. ``fence`` removes a member, and returns False if the records could not be
    appended; then it is retried. Its third argument is the epoch in which the member had to act, None for
    any."""

    clock: ClassicRebalance
    fence: Callable[[str, str, int | None], bool]

    def expect(self, group_id: str, member_id: str, within_ms: int) -> None:
        """Restart the session timeout of a member."""
        self._later(_SESSION, group_id, member_id, within_ms)

    def expect_revocation(self, group_id: str, member: ConsumerMember) -> None:
        """Start or stop the timeout for revoking partitions. Only members of the consumer protocol revoke
        between two heartbeats."""
        if member.classic is not None:
            return
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self._later(_REVOKE, group_id, member.member_id, member.rebalance_timeout_ms, member.epoch)
        else:
            self.clock.timers.cancel((_REVOKE, group_id, member.member_id))

    def expect_join(self, group_id: str, member: ConsumerMember) -> None:
        """Start the timeout for joining again, unless it is running."""
        if not self.clock.timers.is_set((_JOIN, group_id, member.member_id)):
            self._later(_JOIN, group_id, member.member_id, member.rebalance_timeout_ms)

    def expect_sync(self, group_id: str, member_id: str, within_ms: int) -> None:
        """Start the timeout for SyncGroup, after a member has joined."""
        self.clock.timers.cancel((_JOIN, group_id, member_id))
        self._later(_SYNC, group_id, member_id, within_ms)

    def synced(self, group_id: str, member_id: str) -> None:
        """Stop the timeout for SyncGroup."""
        self.clock.timers.cancel((_SYNC, group_id, member_id))

    def cancel(self, group_id: str, member_id: str) -> None:
        """Stop all timeouts of a member."""
        for name in _ALL:
            self.clock.timers.cancel((name, group_id, member_id))

    def load(self, group: ConsumerGroup, session_timeout_ms: int) -> None:
        """Start the session timeouts of a group that was loaded from the log."""
        for member in group.members.values():
            self.expect(group.group_id, member.member_id, session_timeout_ms)
            self.expect_revocation(group.group_id, member)

    def forget(self, group: ConsumerGroup) -> None:
        """Stop the timers of a group that this node no longer has."""
        self.clock.timers.cancel(("regex", group.group_id))
        for member_id in group.members:
            self.cancel(group.group_id, member_id)

    def _later(
        self, name: str, group_id: str, member_id: str, after_ms: int, epoch: int | None = None
    ) -> None:
        def over() -> None:
            if not self.fence(group_id, member_id, epoch):
                self._later(name, group_id, member_id, _RETRY_MS, epoch)

        self.clock.later((name, group_id, member_id), after_ms, over)

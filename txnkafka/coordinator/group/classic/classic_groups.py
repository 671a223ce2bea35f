"""``ClassicGroups``: JoinGroup, Heartbeat and LeaveGroup for groups of the classic protocol.

Source: GroupMetadataManager.classicGroupJoin and related methods (KIP-345 static members, KIP-394 known
member ids, KIP-814 skipped assignments).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from txnkafka.coordinator.group.classic.classic_group import ClassicGroup, GroupState, Member
from txnkafka.coordinator.group.classic.classic_rebalance import ClassicRebalance
from txnkafka.coordinator.group.group_requests import Identity, Joined, JoinGroup, Synced
from txnkafka.error_codes import ErrorCode

E = ErrorCode
LONGEST_TEXT: Final = (1 << 15) - 1  # bytes
NEW_MEMBER_TIMEOUT_MS: Final = 300_000  # for a member that waits for its first generation


@dataclass
class ClassicGroups:
    """Handler of classic members; ``new_id`` returns the unique part of a member id."""

    rebalance: ClassicRebalance
    new_id: Callable[[], str]

    # JoinGroup

    def join(self, group: ClassicGroup, request: JoinGroup, reply: Callable[[Joined], None]) -> None:
        """Add a member to the group, or let it join again."""
        member_id = request.identity.member_id
        if not self._has_room(group, member_id):
            if member_id in group.members:
                self.rebalance.remove(group, group.members[member_id])
            group.pending.pop(member_id, None)
            reply(Joined(E.GROUP_MAX_SIZE_REACHED))
        elif not group.supports(request.protocol_type, request.protocols):
            reply(Joined(E.INCONSISTENT_GROUP_PROTOCOL, member_id))
        elif not member_id:
            self._join_new(group, request, reply)
        elif member_id in group.pending and request.identity.group_instance_id is None:
            self._add(group, member_id, request, reply)
        elif (refused := group.refusal(request.identity)) is not None:
            reply(Joined(refused, member_id))
        else:
            self._join_again(group, group.members[member_id], request, reply)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        members, most = group.members, self.rebalance.config.max_size
        if group.state is GroupState.EMPTY:
            return True
        if group.state is GroupState.PREPARING_REBALANCE:
            there = members.get(member_id)
            is_waiting = there is not None and there.joining is not None
            if is_waiting or len(members) < most:  # most groups are far from full: no count
                return True
            return sum(member.joining is not None for member in members.values()) < most
        return member_id in members or len(members) < most

    def _join_new(self, group: ClassicGroup, request: JoinGroup, reply: Callable[[Joined], None]) -> None:
        instance = request.identity.group_instance_id
        member_id = _member_id(request.client_id if instance is None else instance, self.new_id())
        if instance is not None and instance in group.static:
            self._replace(group, group.members[group.static[instance]], member_id, request, reply)
        elif instance is None and request.needs_known_id:
            group.pending[member_id] = None
            self.rebalance.later(
                ("pending", group.group_id, member_id), request.session_timeout_ms,
                lambda: self.rebalance.drop_pending(group, member_id),
            )  # fmt: skip
            reply(Joined(E.MEMBER_ID_REQUIRED, member_id))
        else:
            self._add(group, member_id, request, reply)

    def _add(
        self, group: ClassicGroup, member_id: str, request: JoinGroup, reply: Callable[[Joined], None]
    ) -> None:
        member = Member(
            member_id, request.identity.group_instance_id, request.client_id, request.client_host,
            request.rebalance_timeout_ms, request.session_timeout_ms, request.protocols, joining=reply,
        )  # fmt: skip
        if group.state is GroupState.PREPARING_REBALANCE and group.was_empty:
            group.has_new_member = True
        self.rebalance.timers.cancel(("pending", group.group_id, member_id))
        group.add(member, request.protocol_type)
        self.rebalance.expect(group, member, NEW_MEMBER_TIMEOUT_MS)
        self.rebalance.begin(group)

    def _join_again(
        self, group: ClassicGroup, member: Member, request: JoinGroup, reply: Callable[[Joined], None]
    ) -> None:
        is_same = member.protocols == request.protocols
        if group.state is GroupState.EMPTY:
            reply(Joined(E.UNKNOWN_MEMBER_ID))
        elif group.state is GroupState.COMPLETING_REBALANCE and is_same:
            reply(group.joined(member))  # the previous answer was lost
        elif group.state is GroupState.STABLE and is_same and member.member_id != group.leader:
            reply(group.joined(member))
        else:
            self._update(group, member, request, reply)
            self.rebalance.begin(group)

    def _update(
        self, group: ClassicGroup, member: Member, request: JoinGroup, reply: Callable[[Joined], None]
    ) -> None:
        group.set_protocols(member, request.protocols)
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms
        earlier, member.joining = member.joining, reply
        if earlier is not None:  # only the newest request gets the generation
            earlier(Joined(E.REBALANCE_IN_PROGRESS, member.member_id))

    def _replace(
        self,
        group: ClassicGroup,
        member: Member,
        member_id: str,
        request: JoinGroup,
        reply: Callable[[Joined], None],
    ) -> None:
        """Replace a static member by its new instance, usually without a rebalance."""
        old_leader, old = group.leader, member.member_id
        before = member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms
        joining, syncing = member.joining, member.syncing
        member.joining = member.syncing = None
        if joining is not None:
            joining(Joined(E.FENCED_INSTANCE_ID, old))
        if syncing is not None:
            syncing(Synced(E.FENCED_INSTANCE_ID))
        self._rename(group, member, member_id)
        self._update(group, member, request, reply)
        self.rebalance.expect(group, member)
        if group.state is not GroupState.STABLE or group.voted() != group.protocol:
            self.rebalance.begin(group)
            return
        member.joining = None
        answer = group.joined(member)
        if not request.may_skip_assignment:
            answer = answer._replace(leader=old_leader or "", members=())
        elif group.leader == member_id:
            answer = answer._replace(skip_assignment=True)
        refused = answer._replace(member_id="", leader=old_leader or "", members=(), skip_assignment=False)

        def persisted(error: ErrorCode) -> None:
            if error != E.NONE and group.members.get(member_id) is member and not member.waits:
                protocols, member.rebalance_timeout_ms, member.session_timeout_ms = before
                if group.state is GroupState.STABLE:  # newer members may support only the new ones
                    group.set_protocols(member, protocols)
                self._rename(group, member, old)
                self.rebalance.expect(group, member)
            reply(answer if error == E.NONE else refused._replace(error=error))

        self.rebalance.persist(group, persisted)

    def _rename(self, group: ClassicGroup, member: Member, member_id: str) -> None:
        self.rebalance.timers.cancel(("session", group.group_id, member.member_id))
        group.replace(member, member_id)

    # Heartbeat and LeaveGroup

    def heartbeat(self, group: ClassicGroup, identity: Identity) -> ErrorCode:
        """Restart the session timeout of a member; return the error for the heartbeat."""
        refused = self.rebalance.refused(group, identity)
        if refused is not None:
            return refused
        if group.state is GroupState.EMPTY:
            return E.UNKNOWN_MEMBER_ID
        self.rebalance.expect(group, group.members[identity.member_id])
        is_preparing = group.state is GroupState.PREPARING_REBALANCE
        return E.REBALANCE_IN_PROGRESS if is_preparing else E.NONE

    def leave(self, group: ClassicGroup, leaving: Sequence[Identity]) -> list[ErrorCode]:
        """Remove members; return an error for each. An administrator names a static member by its instance
        id alone."""
        errors = [self._leave(group, identity) for identity in leaving]
        if E.NONE in errors and group.state is not GroupState.EMPTY:
            self.rebalance.begin(group)
        return errors

    def _leave(self, group: ClassicGroup, identity: Identity) -> ErrorCode:
        member_id = identity.member_id
        if not member_id:
            there = group.static.get(identity.group_instance_id or "")
            if there is None:
                return E.UNKNOWN_MEMBER_ID
            member_id = there
        elif member_id in group.pending:
            self.rebalance.forget_pending(group, member_id)
            return E.NONE
        elif (refused := group.refusal(identity)) is not None:
            return refused
        self.rebalance.remove(group, group.members[member_id])
        return E.NONE


def _member_id(name: str, random_id: str) -> str:
    """Return a new member id.

    A name close to the longest text of the protocol is cut: no response with a longer id could be written,
    and the leader of a group gets the ids of all members."""
    begin = name.encode()[: LONGEST_TEXT - len(random_id) - 1].decode(errors="ignore")
    return f"{begin}-{random_id}"

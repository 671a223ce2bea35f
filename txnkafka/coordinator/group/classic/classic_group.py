"""``ClassicGroup``: members and rebalance state of a group of the classic protocol.

This module has the data and the rules that need no other module; ``ClassicGroups`` decides when they apply.

    Empty -> PreparingRebalance -> CompletingRebalance -> Stable
      ^______________|   ^____________________|_____________|

Source: ClassicGroup, ClassicGroupMember.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from txnkafka.coordinator.group.group_requests import Identity, Joined, Protocol, Synced
from txnkafka.error_codes import ErrorCode

CONSUMER = "consumer"  # the protocol type of consumers


class GroupState(enum.Enum):
    """The states, by Kafka's names. A deleted group has no state, since its name is unknown."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


@dataclass(slots=True, eq=False)
class Member:
    """One member. ``joining`` and ``syncing`` answer its waiting JoinGroup and SyncGroup; ``is_new`` until
    its first generation is complete."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    joining: Callable[[Joined], None] | None = None
    syncing: Callable[[Synced], None] | None = None
    is_new: bool = True

    def metadata(self, protocol: str | None) -> bytes:
        """Return the member's metadata for a protocol, which only the leader reads."""
        return next((each.metadata for each in self.protocols if each.name == protocol), b"")

    @property
    def waits(self) -> bool:
        """Return whether the member waits for an answer; it counts as alive until it gets it."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)


class ClassicGroup:
    """One group. ``pending`` has member ids that were assigned to clients which have not joined with them
    yet, ``unsynced`` the members of a generation that have not sent SyncGroup. ``state_timestamp`` is -1
    in a group written before Kafka 2.1."""

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.state_timestamp = now_ms
        self.was_empty = False  # whether the previous state was Empty
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}  # member ids by instance id
        self.pending: dict[str, None] = {}
        self.unsynced: dict[str, None] = {}
        self.has_new_member = False  # since the initial rebalance was last delayed
        self._supporters: Counter[str] = Counter()  # members by the protocols that they support

    def become(self, state: GroupState, now_ms: int) -> None:
        """Change the state."""
        self.was_empty = self.state is GroupState.EMPTY
        self.state, self.state_timestamp = state, now_ms

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members, in ms."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def all_have_joined(self) -> bool:
        """Return whether PreparingRebalance waits for no member."""
        return not self.pending and all(member.joining for member in self.members.values())

    # Members

    def add(self, member: Member, protocol_type: str) -> None:
        """Add a member that has sent JoinGroup."""
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self.put(member)
        self.pending.pop(member.member_id, None)

    def put(self, member: Member) -> None:
        """Add a member, or update it, without other changes to the group."""
        self.members[member.member_id] = member
        self._supporters.update(_names(member))
        if member.group_instance_id is not None:
            self.static[member.group_instance_id] = member.member_id

    def set_protocols(self, member: Member, protocols: tuple[Protocol, ...]) -> None:
        """Replace the protocols that a member supports."""
        self._forget_protocols(member)
        member.protocols = protocols
        self._supporters.update(_names(member))

    def _forget_protocols(self, member: Member) -> None:
        self._supporters.subtract(_names(member))
        self._supporters += Counter()  # drops protocols without a supporter

    def remove(self, member_id: str) -> Member:
        """Remove a member; the next member becomes the leader if it was the leader."""
        member = self.members.pop(member_id)
        self._forget_protocols(member)
        if member.group_instance_id is not None:
            self.static.pop(member.group_instance_id, None)
        self.unsynced.pop(member_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace(self, member: Member, member_id: str) -> None:
        """Give a static member the member id of its new instance."""
        old = member.member_id
        self.members = {member_id if key == old else key: each for key, each in self.members.items()}
        member.member_id = member_id
        if member.group_instance_id is not None:
            self.static[member.group_instance_id] = member_id
        if self.leader == old:
            self.leader = member_id
        self.unsynced.pop(old, None)

    def elect_leader(self) -> bool:
        """Make a member that has joined the leader; return False when none has."""
        leader = self.members.get(self.leader or "")
        if leader is not None and leader.joining is not None:
            return True
        joined = next((member for member in self.members.values() if member.joining is not None), None)
        if joined is not None:
            self.leader = joined.member_id
        return joined is not None

    def refusal(self, identity: Identity) -> ErrorCode | None:
        """Return the error for a request that is not from a member, else None."""
        instance = identity.group_instance_id
        if instance is not None:
            there = self.static.get(instance)
            if there is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            return None if there == identity.member_id else ErrorCode.FENCED_INSTANCE_ID
        return None if identity.member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    # Protocols

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Return whether a member with these protocols can join."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type and protocols)
        if not self.members:  # the last member has left while an assigned id is still pending
            return bool(protocols) and protocol_type == self.protocol_type
        common = self._common()
        return protocol_type == self.protocol_type and any(protocol.name in common for protocol in protocols)

    def _common(self) -> set[str]:
        """Return the protocols that all members support."""
        return {name for name, count in self._supporters.items() if count == len(self.members)}

    def voted(self) -> str:
        """Return the protocol with most votes, out of the protocols that all members support."""
        common = self._common()
        votes = Counter(
            next(name for name in _names(member) if name in common) for member in self.members.values()
        )
        return max(votes, key=lambda name: votes[name])

    def next_generation(self, now_ms: int) -> None:
        """Start the next generation with the current members; a group without members becomes Empty."""
        protocol = self.voted() if self.members else None
        self.generation += 1
        self.unsynced.clear()
        self.protocol = protocol
        if self.members:
            self.become(GroupState.COMPLETING_REBALANCE, now_ms)
        else:
            self.become(GroupState.EMPTY, now_ms)

    def joined(self, member: Member) -> Joined:
        """Return the JoinGroup answer for a member of the generation."""
        is_leader = member.member_id == self.leader
        return Joined(
            ErrorCode.NONE, member.member_id, self.generation, self.protocol_type, self.protocol,
            self.leader or "", self.for_leader() if is_leader else (),
        )  # fmt: skip

    def for_leader(self) -> list[tuple[str, str | None, bytes]]:
        """Return all members with their metadata, for the leader."""
        return [
            (member.member_id, member.group_instance_id, member.metadata(self.protocol))
            for member in self.members.values()
        ]


def _names(member: Member) -> Iterator[str]:
    yield from dict.fromkeys(protocol.name for protocol in member.protocols)

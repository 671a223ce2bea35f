"""What clients ask of the group coordinator, and its answers.

Source: the messages of the APIs of the same names, without what depends on their versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

__all__ = [
    "CommittedOffset",
    "ConsumerHeartbeat",
    "DescribedGroup",
    "DescribedMember",
    "HeartbeatAnswer",
    "Identity",
    "JoinGroup",
    "Joined",
    "Left",
    "ListedGroup",
    "OffsetToCommit",
    "Protocol",
    "SyncGroup",
    "Synced",
]

NONE = ErrorCode.NONE


class Protocol(NamedTuple):
    """A way to assign partitions that a member supports; ``metadata`` is for the leader only."""

    name: str
    metadata: bytes


class Identity(NamedTuple):
    """Who sends a request: the generation is -1 for a client that is no member, the member id then mostly
    empty; only static members (KIP-345) have an instance id."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class JoinGroup(NamedTuple):
    """``needs_known_id``: a dynamic member gets its id first and joins with it (KIP-394, version 4).
    ``may_skip_assignment``: the client knows that field of the answer (KIP-814, version 9)."""

    identity: Identity
    protocol_type: str
    protocols: tuple[Protocol, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    client_id: str = ""
    client_host: str = ""
    needs_known_id: bool = True
    may_skip_assignment: bool = True


class Joined(NamedTuple):
    """The answer to JoinGroup: ``members`` are ids, instance ids and metadata, for the leader."""

    error: ErrorCode
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: Sequence[tuple[str, str | None, bytes]] = ()
    skip_assignment: bool = False


class SyncGroup(NamedTuple):
    """``assignments`` by member id come from the leader."""

    identity: Identity
    assignments: Mapping[str, bytes]
    protocol_type: str | None = None
    protocol: str | None = None


class Synced(NamedTuple):
    """The answer to SyncGroup."""

    error: ErrorCode
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol: str | None = None


class ConsumerHeartbeat(NamedTuple):
    """A member of a consumer group is there (KIP-848): it says what has changed, and None or -1 for the rest.
    ``owned`` are partitions by topic id. ``has_own_id``: the client has made the member id (version 1)."""

    group_id: str
    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Mapping[str, Sequence[int]] | None = None
    client_id: str = ""
    client_host: str = ""
    has_own_id: bool = True


class HeartbeatAnswer(NamedTuple):
    """The answer: ``assignment`` are the partitions that the member may have, None when they are the same."""

    error: ErrorCode
    message: str | None = None
    member_id: str | None = None
    epoch: int = 0
    interval_ms: int = 0
    assignment: Mapping[str, Sequence[int]] | None = None


class OffsetToCommit(NamedTuple):
    """``expire_timestamp`` is set by clients of OffsetCommit 2 to 4 that ask for a retention. The log gets
    the ``topic_id`` if it ``stores_topic_id``: TxnOffsetCommit 0 to 5 has no ids in Kafka."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    expire_timestamp: int = -1
    topic_id: str | None = None
    stores_topic_id: bool = True


class CommittedOffset(NamedTuple):
    """A committed offset; -1 where there is none. ``topic_id`` is that of the topic that it was committed
    for, as far as the log has it."""

    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = NONE
    topic_id: str | None = None


class DescribedMember(NamedTuple):
    """A member as DescribeGroups shows it: metadata while the group is stable only, and the last
    assignment."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(NamedTuple):
    """A group as DescribeGroups shows it; an unknown one has an error."""

    error: ErrorCode
    state: str = "Dead"
    protocol_type: str = ""
    protocol: str = ""
    members: Sequence[DescribedMember] = ()
    message: str | None = None


class ListedGroup(NamedTuple):
    """A group as ListGroups shows it."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str


Offsets = Mapping[TopicPartition, OffsetToCommit]
Left = Callable[[ErrorCode, list[ErrorCode]], None]
"""Takes the answer to LeaveGroup: the error of the request, and those of the members."""

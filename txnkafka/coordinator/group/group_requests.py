"""Requests to the group coordinator, and its answers.

Source: the messages of the APIs of the same names, without fields that depend on the version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

NONE = ErrorCode.NONE


class Protocol(NamedTuple):
    """An assignment protocol that a member supports; only the leader reads ``metadata``."""

    name: str
    metadata: bytes


class Identity(NamedTuple):
    """The sender of a request. A client that is no member has generation -1, usually with an empty member
    id; only static members (KIP-345) have an instance id."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class JoinGroup(NamedTuple):
    """JoinGroup. ``needs_known_id``: a dynamic member first gets its id, and joins with it (KIP-394,
    version 4). ``may_skip_assignment``: the client knows this field of the answer (KIP-814, version 9)."""

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
    """The answer to JoinGroup; ``members`` are ids, instance ids and metadata, for the leader."""

    error: ErrorCode
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: Sequence[tuple[str, str | None, bytes]] = ()
    skip_assignment: bool = False


class SyncGroup(NamedTuple):
    """SyncGroup; the leader sends ``assignments`` by member id."""

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
    """The heartbeat of a member of a consumer group (KIP-848): fields that have not changed are None or
    -1. ``owned`` are partitions by topic id. ``has_own_id``: the client has made the member id (version
    1)."""

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
    """The answer to a heartbeat; ``assignment`` are the member's partitions, None when they have not
    changed."""

    error: ErrorCode
    message: str | None = None
    member_id: str | None = None
    epoch: int = 0
    interval_ms: int = 0
    assignment: Mapping[str, Sequence[int]] | None = None


class OffsetToCommit(NamedTuple):
    """An offset to commit. Clients of OffsetCommit 2 to 4 set ``expire_timestamp`` if they ask for a
    retention time. ``topic_id`` is stored in the log if ``stores_topic_id``; TxnOffsetCommit 0 to 5 stores
    none in Kafka."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    expire_timestamp: int = -1
    topic_id: str | None = None
    stores_topic_id: bool = True


class CommittedOffset(NamedTuple):
    """A committed offset; -1 for a missing one. ``topic_id`` is the id of the topic that it was committed
    for, if the log has it."""

    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = NONE
    topic_id: str | None = None


class DescribedMember(NamedTuple):
    """A member in DescribeGroups: its last assignment, and its metadata while the group is stable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(NamedTuple):
    """A group in DescribeGroups; an unknown group has an error."""

    error: ErrorCode
    state: str = "Dead"
    protocol_type: str = ""
    protocol: str = ""
    members: Sequence[DescribedMember] = ()
    message: str | None = None


class ListedGroup(NamedTuple):
    """A group in ListGroups."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str


Offsets = Mapping[TopicPartition, OffsetToCommit]
Left = Callable[[ErrorCode, list[ErrorCode]], None]
"""Takes the answer to LeaveGroup: the error of the request, and the errors of the members."""

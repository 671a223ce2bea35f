"""JoinGroup (key 11): a member joins a group of the classic protocol.

By version:

1  rebalance timeout
2  throttle time
4  a new member has to join again with the id that it got
5  group instance id (KIP-345)
6  flexible
7  protocol type in the answer (KIP-559)
8  reason (KIP-800)
9  whether the leader has to assign partitions (KIP-814)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, data, int16, int32, message, string


@message
class JoinGroupRequestProtocol:
    """An element of ``protocols``."""

    name: str = string()
    metadata: bytes = data()


@message
class JoinGroupRequest:
    """``JoinGroupRequest.json``."""

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="0+", default=None)
    protocol_type: str = string()
    protocols: tuple[JoinGroupRequestProtocol, ...] = array(JoinGroupRequestProtocol)
    reason: str | None = string("8+", nullable="0+", default=None, ignorable=True)


@message
class JoinGroupResponseMember:
    """An element of ``members``."""

    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="0+", default=None, ignorable=True)
    metadata: bytes = data()


@message
class JoinGroupResponse:
    """``JoinGroupResponse.json``."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string("7+", nullable="0+", default=None, ignorable=True)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean("9+")
    member_id: str = string()
    members: tuple[JoinGroupResponseMember, ...] = array(JoinGroupResponseMember)

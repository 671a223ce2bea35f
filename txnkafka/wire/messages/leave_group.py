"""LeaveGroup (key 13): members leave a group of the classic protocol.

By version:

1  throttle time
3  several members, with group instance ids (KIP-345)
4  flexible
5  reason (KIP-800)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int16, int32, message, string


@message
class MemberIdentity:
    """An element of ``members``."""

    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="0+", default=None)
    reason: str | None = string("5+", nullable="0+", default=None, ignorable=True)


@message
class LeaveGroupRequest:
    """``LeaveGroupRequest.json``."""

    group_id: str = string()
    members: tuple[MemberIdentity, ...] = array(MemberIdentity, "3+")
    member_id: str = string("0-2")


@message
class MemberResponse:
    """An element of ``members``."""

    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="0+")
    error_code: int = int16("3+")


@message
class LeaveGroupResponse:
    """``LeaveGroupResponse.json``."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    members: tuple[MemberResponse, ...] = array(MemberResponse, "3+")

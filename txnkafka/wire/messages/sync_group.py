"""SyncGroup (key 14): assignments of a group of the classic protocol, from its leader and to its members.

By version:

1  throttle time
3  group instance id (KIP-345)
4  flexible
5  protocol type and name (KIP-559)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, data, int16, int32, message, string


@message
class SyncGroupRequestAssignment:
    """An element of ``assignments``."""

    member_id: str = string()
    assignment: bytes = data()


@message
class SyncGroupRequest:
    """``SyncGroupRequest.json``."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="0+", default=None)
    protocol_type: str | None = string("5+", nullable="0+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="0+", default=None, ignorable=True)
    assignments: tuple[SyncGroupRequestAssignment, ...] = array(SyncGroupRequestAssignment)


@message
class SyncGroupResponse:
    """``SyncGroupResponse.json``."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string("5+", nullable="0+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="0+", default=None, ignorable=True)
    assignment: bytes = data()

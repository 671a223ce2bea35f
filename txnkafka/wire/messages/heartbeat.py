"""Heartbeat (key 12): keeps a member of a classic group alive.

By version:

    1  throttle time
    3  group instance id (KIP-345)
    4  flexible
"""

from __future__ import annotations

from txnkafka.wire.fields import int16, int32, message, string


@message
class HeartbeatRequest:
    """``HeartbeatRequest.json``."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="0+", default=None)


@message
class HeartbeatResponse:
    """``HeartbeatResponse.json``."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()

"""DescribeGroups (key 15): state and members of groups of the classic protocol.

By version:

1  throttle time
3  authorized operations (KIP-430)
4  group instance ids (KIP-345)
5  flexible
6  GROUP_ID_NOT_FOUND and an error message (KIP-1043)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, data, int16, int32, message, string
from txnkafka.wire.schema import STRING


@message
class DescribeGroupsRequest:
    """``DescribeGroupsRequest.json``."""

    groups: tuple[str, ...] = array(STRING)
    include_authorized_operations: bool = boolean("3+")


@message
class DescribedGroupMember:
    """An element of ``members``."""

    member_id: str = string()
    group_instance_id: str | None = string("4+", nullable="0+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = data()
    member_assignment: bytes = data()


@message
class DescribedGroup:
    """An element of ``groups``."""

    error_code: int = int16()
    error_message: str | None = string("6+", nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: tuple[DescribedGroupMember, ...] = array(DescribedGroupMember)
    authorized_operations: int = int32("3+", default=-2147483648)


@message
class DescribeGroupsResponse:
    """``DescribeGroupsResponse.json``."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    groups: tuple[DescribedGroup, ...] = array(DescribedGroup)

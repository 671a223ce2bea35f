"""ListGroups (key 16): the groups that a broker coordinates.

By version:

1  throttle time
3  flexible
4  by state (KIP-518)
5  by type (KIP-848)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int16, int32, message, string
from txnkafka.wire.schema import STRING


@message
class ListGroupsRequest:
    """``ListGroupsRequest.json``."""

    states_filter: tuple[str, ...] = array(STRING, "4+")
    types_filter: tuple[str, ...] = array(STRING, "5+")


@message
class ListedGroup:
    """An element of ``groups``."""

    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string("4+", ignorable=True)
    group_type: str = string("5+", ignorable=True)


@message
class ListGroupsResponse:
    """``ListGroupsResponse.json``."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    groups: tuple[ListedGroup, ...] = array(ListedGroup)

"""DeleteGroups (key 42): groups without members (KIP-229).

By version:

2  flexible
3  messages of errors
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int16, int32, message, string
from txnkafka.wire.schema import STRING


@message
class DeleteGroupsRequest:
    """``DeleteGroupsRequest.json``."""

    groups_names: tuple[str, ...] = array(STRING)


@message
class DeletableGroupResult:
    """An element of ``results``."""

    group_id: str = string()
    error_code: int = int16()
    error_message: str | None = string("3+", nullable="0+", default=None, ignorable=True)


@message
class DeleteGroupsResponse:
    """``DeleteGroupsResponse.json``."""

    throttle_time_ms: int = int32()
    results: tuple[DeletableGroupResult, ...] = array(DeletableGroupResult)

"""DeleteAcls (key 31): removes the ACLs that match filters.

By version:

1  pattern types (KIP-290)
2  flexible
3  user resources (KIP-373)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int8, int16, int32, message, string


@message
class DeleteAclsFilter:
    """An element of ``filters``."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable="0+")
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    permission_type: int = int8()


@message
class DeleteAclsRequest:
    """``DeleteAclsRequest.json``."""

    filters: tuple[DeleteAclsFilter, ...] = array(DeleteAclsFilter)


@message
class DeleteAclsMatchingAcl:
    """An element of ``matching_acls``."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8("1+", default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@message
class DeleteAclsFilterResult:
    """An element of ``filter_results``."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    matching_acls: tuple[DeleteAclsMatchingAcl, ...] = array(DeleteAclsMatchingAcl)


@message
class DeleteAclsResponse:
    """``DeleteAclsResponse.json``."""

    throttle_time_ms: int = int32()
    filter_results: tuple[DeleteAclsFilterResult, ...] = array(DeleteAclsFilterResult)

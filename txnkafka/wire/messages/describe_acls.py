"""DescribeAcls (key 29): ACLs that match a filter.

By version:

1  pattern types (KIP-290)
2  flexible
3  user resources (KIP-373)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int8, int16, int32, message, string


@message
class DescribeAclsRequest:
    """``DescribeAclsRequest.json``."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable="0+")
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    permission_type: int = int8()


@message
class AclDescription:
    """An element of ``acls``."""

    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@message
class DescribeAclsResource:
    """An element of ``resources``."""

    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8("1+", default=3)
    acls: tuple[AclDescription, ...] = array(AclDescription)


@message
class DescribeAclsResponse:
    """``DescribeAclsResponse.json``."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resources: tuple[DescribeAclsResource, ...] = array(DescribeAclsResource)

"""CreateAcls (key 30): new ACLs.

By version:

1  pattern types (KIP-290)
2  flexible
3  user resources (KIP-373)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int8, int16, int32, message, string


@message
class AclCreation:
    """An element of ``creations``."""

    resource_type: int = int8()
    resource_name: str = string()
    resource_pattern_type: int = int8("1+", default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@message
class CreateAclsRequest:
    """``CreateAclsRequest.json``."""

    creations: tuple[AclCreation, ...] = array(AclCreation)


@message
class AclCreationResult:
    """An element of ``results``."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message
class CreateAclsResponse:
    """``CreateAclsResponse.json``."""

    throttle_time_ms: int = int32()
    results: tuple[AclCreationResult, ...] = array(AclCreationResult)

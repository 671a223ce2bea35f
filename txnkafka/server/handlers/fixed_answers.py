"""APIs whose response does not depend on the state of the broker, one row each.

The broker has no authorizer, does not authenticate connections, does not enforce quotas, and has all
replicas. These APIs answer as Apache Kafka 4.4 does in that configuration. A row takes the module of the
API's messages (imported with the first request), the request, and its version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from txnkafka.error_codes import ErrorCode

_NO_AUTHORIZER: Final[dict[str, Any]] = {
    "error_code": ErrorCode.SECURITY_DISABLED,
    "error_message": "No Authorizer is configured.",
}
_NO_TOKENS: Final = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED  # KIP-48: only authenticated connections
_ANONYMOUS: Final = ("User", "ANONYMOUS")


def _created_token(messages: Any, request: Any, version: int) -> Any:
    is_own = not request.owner_principal_name
    requester_type, requester = _ANONYMOUS if version >= 3 else ("", "")
    return messages.CreateDelegationTokenResponse(
        error_code=_NO_TOKENS,
        principal_type=_ANONYMOUS[0] if is_own else request.owner_principal_type or "",
        principal_name=_ANONYMOUS[1] if is_own else request.owner_principal_name or "",
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )


def _unaltered_quotas(messages: Any, request: Any, version: int) -> Any:
    refused = {
        "error_code": ErrorCode.INVALID_REQUEST,
        "error_message": "quotas are not enforced by this broker, and cannot be changed",
    }
    entries = (messages.EntryResult(entity=entry.entity, **refused) for entry in request.entries)
    return messages.AlterClientQuotasResponse(entries=tuple(entries))


FIXED_ANSWERS: Final[Mapping[str, Callable[[Any, Any, int], Any]]] = {
    "DescribeAcls": lambda messages, request, version: messages.DescribeAclsResponse(**_NO_AUTHORIZER),
    "CreateAcls": lambda messages, request, version: messages.CreateAclsResponse(
        results=(messages.AclCreationResult(**_NO_AUTHORIZER),) * len(request.creations)
    ),
    "DeleteAcls": lambda messages, request, version: messages.DeleteAclsResponse(
        filter_results=(messages.DeleteAclsFilterResult(**_NO_AUTHORIZER),) * len(request.filters)
    ),
    "CreateDelegationToken": _created_token,
    "RenewDelegationToken": lambda messages, request, version: messages.RenewDelegationTokenResponse(
        error_code=_NO_TOKENS, expiry_timestamp_ms=-1
    ),
    "ExpireDelegationToken": lambda messages, request, version: messages.ExpireDelegationTokenResponse(
        error_code=_NO_TOKENS, expiry_timestamp_ms=-1
    ),
    "DescribeDelegationToken": lambda messages, request, version: messages.DescribeDelegationTokenResponse(
        error_code=_NO_TOKENS
    ),
    "ListPartitionReassignments": lambda messages, request, version: (
        messages.ListPartitionReassignmentsResponse(error_message=None)
    ),
    "AlterClientQuotas": _unaltered_quotas,
}

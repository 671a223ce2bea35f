"""CreateDelegationToken: delegation tokens are for authenticated connections (KIP-48); no token is made.

Versions 1 to 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.error_codes import ErrorCode
from txnkafka.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.context import Context, Reply

__all__ = ["handle"]

NOBODY: Final = "User", "ANONYMOUS"  # KafkaPrincipal.ANONYMOUS


def handle(
    broker: Broker, request: CreateDelegationTokenRequest, version: int, context: Context, reply: Reply
) -> None:
    """Answer at once."""
    is_own = not request.owner_principal_name
    reply(
        CreateDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            principal_type=NOBODY[0] if is_own else request.owner_principal_type or "",
            principal_name=NOBODY[1] if is_own else request.owner_principal_name or "",
            token_requester_principal_type=NOBODY[0] if version >= 3 else "",
            token_requester_principal_name=NOBODY[1] if version >= 3 else "",
            issue_timestamp_ms=-1,
            expiry_timestamp_ms=-1,
            max_timestamp_ms=-1,
        )
    )

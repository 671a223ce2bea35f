"""ExpireDelegationToken: delegation tokens are for authenticated connections (KIP-48); there is none.

Versions 1 to 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.error_codes import ErrorCode
from txnkafka.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.context import Context, Reply

__all__ = ["handle"]


def handle(
    broker: Broker, request: ExpireDelegationTokenRequest, version: int, context: Context, reply: Reply
) -> None:
    """Answer at once."""
    error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    reply(ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=-1))

"""AlterClientQuotas: refused, because quotas are not enforced here (KIP-546).

Versions 0 to 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.error_codes import ErrorCode
from txnkafka.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntryResult,
)

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.context import Context, Reply

__all__ = ["handle"]


def handle(
    broker: Broker, request: AlterClientQuotasRequest, version: int, context: Context, reply: Reply
) -> None:
    """Answer at once."""
    entries = tuple(
        EntryResult(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="quotas are not enforced here, and cannot be changed",
            entity=entry.entity,
        )
        for entry in request.entries
    )
    reply(AlterClientQuotasResponse(entries=entries))

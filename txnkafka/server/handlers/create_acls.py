"""CreateAcls: there are none, as with an Apache Kafka without an authorizer.

Versions 1 to 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.error_codes import ErrorCode
from txnkafka.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.server.context import Context, Reply

__all__ = ["handle"]


def handle(broker: Broker, request: CreateAclsRequest, version: int, context: Context, reply: Reply) -> None:
    """Answer at once."""
    refused = AclCreationResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
    )
    reply(CreateAclsResponse(results=(refused,) * len(request.creations)))

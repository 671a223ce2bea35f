"""UnregisterBroker: removes a broker that no longer exists (KIP-500).

Version 0. This broker cannot remove itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.registry.unregistration import unregister_broker
from txnkafka.server.handlers import serves
from txnkafka.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.error_codes import ErrorCode
    from txnkafka.server.peer import Peer, Reply


@serves("UnregisterBroker")
def handle(broker: Broker, request: UnregisterBrokerRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when the removal is durable."""

    def done(error: ErrorCode, message: str | None) -> None:
        reply(UnregisterBrokerResponse(error_code=error, error_message=message))

    unregister_broker(broker, request.broker_id, done)

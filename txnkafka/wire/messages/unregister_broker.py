"""UnregisterBroker (key 64): removes a broker (KIP-500)."""

from __future__ import annotations

from txnkafka.wire.fields import int16, int32, message, string


@message
class UnregisterBrokerRequest:
    """``UnregisterBrokerRequest.json``."""

    broker_id: int = int32()


@message
class UnregisterBrokerResponse:
    """``UnregisterBrokerResponse.json``."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")

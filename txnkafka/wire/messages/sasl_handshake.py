"""SaslHandshake (key 17): the SASL mechanism that follows; never flexible (KAFKA-9577).

By version:

1  tokens follow in SaslAuthenticate requests (KIP-152)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int16, message, string
from txnkafka.wire.schema import STRING


@message
class SaslHandshakeRequest:
    """``SaslHandshakeRequest.json``."""

    mechanism: str = string()


@message
class SaslHandshakeResponse:
    """``SaslHandshakeResponse.json``."""

    error_code: int = int16()
    mechanisms: tuple[str, ...] = array(STRING)

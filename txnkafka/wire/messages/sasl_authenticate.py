"""SaslAuthenticate (key 36): a token of the SASL mechanism (KIP-152).

By version:

1  lifetime of the session (KIP-368)
2  flexible
"""

from __future__ import annotations

from txnkafka.wire.fields import data, int16, int64, message, string


@message
class SaslAuthenticateRequest:
    """``SaslAuthenticateRequest.json``."""

    auth_bytes: bytes = data(shown=False)


@message
class SaslAuthenticateResponse:
    """``SaslAuthenticateResponse.json``."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes = data(shown=False)
    session_lifetime_ms: int = int64("1+", ignorable=True)

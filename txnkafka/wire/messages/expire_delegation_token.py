"""ExpireDelegationToken (key 40): ends a delegation token (KIP-48).

By version:

2  flexible
"""

from __future__ import annotations

from txnkafka.wire.fields import data, int16, int32, int64, message


@message
class ExpireDelegationTokenRequest:
    """``ExpireDelegationTokenRequest.json``."""

    hmac: bytes = data()
    expiry_time_period_ms: int = int64()


@message
class ExpireDelegationTokenResponse:
    """``ExpireDelegationTokenResponse.json``."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()

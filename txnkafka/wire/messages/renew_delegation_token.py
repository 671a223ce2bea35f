"""RenewDelegationToken (key 39): prolongs a delegation token (KIP-48).

By version:

2  flexible
"""

from __future__ import annotations

from txnkafka.wire.fields import data, int16, int32, int64, message


@message
class RenewDelegationTokenRequest:
    """``RenewDelegationTokenRequest.json``."""

    hmac: bytes = data()
    renew_period_ms: int = int64()


@message
class RenewDelegationTokenResponse:
    """``RenewDelegationTokenResponse.json``."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()

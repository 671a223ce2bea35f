"""CreateDelegationToken (key 38): a new delegation token (KIP-48).

By version:

2  flexible
3  another owner than the requester (KIP-373)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, data, int16, int32, int64, message, string


@message
class CreatableRenewers:
    """An element of ``renewers``."""

    principal_type: str = string()
    principal_name: str = string()


@message
class CreateDelegationTokenRequest:
    """``CreateDelegationTokenRequest.json``."""

    owner_principal_type: str | None = string("3+", nullable="3+")
    owner_principal_name: str | None = string("3+", nullable="3+")
    renewers: tuple[CreatableRenewers, ...] = array(CreatableRenewers)
    max_lifetime_ms: int = int64()


@message
class CreateDelegationTokenResponse:
    """``CreateDelegationTokenResponse.json``."""

    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()
    token_id: str = string()
    hmac: bytes = data()
    throttle_time_ms: int = int32()

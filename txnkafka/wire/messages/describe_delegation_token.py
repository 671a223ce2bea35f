"""DescribeDelegationToken (key 41): delegation tokens (KIP-48).

By version:

2  flexible
3  requesters (KIP-373)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, data, int16, int32, int64, message, string


@message
class DescribeDelegationTokenOwner:
    """An element of ``owners``."""

    principal_type: str = string()
    principal_name: str = string()


@message
class DescribeDelegationTokenRequest:
    """``DescribeDelegationTokenRequest.json``."""

    owners: tuple[DescribeDelegationTokenOwner, ...] | None = array(
        DescribeDelegationTokenOwner, nullable="0+"
    )


@message
class DescribedDelegationTokenRenewer:
    """An element of ``renewers``."""

    principal_type: str = string()
    principal_name: str = string()


@message
class DescribedDelegationToken:
    """An element of ``tokens``."""

    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp: int = int64()
    expiry_timestamp: int = int64()
    max_timestamp: int = int64()
    token_id: str = string()
    hmac: bytes = data()
    renewers: tuple[DescribedDelegationTokenRenewer, ...] = array(DescribedDelegationTokenRenewer)


@message
class DescribeDelegationTokenResponse:
    """``DescribeDelegationTokenResponse.json``."""

    error_code: int = int16()
    tokens: tuple[DescribedDelegationToken, ...] = array(DescribedDelegationToken)
    throttle_time_ms: int = int32()

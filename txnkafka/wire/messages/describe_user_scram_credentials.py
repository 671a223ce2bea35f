"""DescribeUserScramCredentials (key 50): the SCRAM credentials of users (KIP-554)."""

from __future__ import annotations

from txnkafka.wire.fields import array, int8, int16, int32, message, string


@message
class UserName:
    """An element of ``users``."""

    name: str = string()


@message
class DescribeUserScramCredentialsRequest:
    """``DescribeUserScramCredentialsRequest.json``."""

    users: tuple[UserName, ...] | None = array(UserName, nullable="0+")


@message
class CredentialInfo:
    """An element of ``credential_infos``."""

    mechanism: int = int8()
    iterations: int = int32()


@message
class DescribeUserScramCredentialsResult:
    """An element of ``results``."""

    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    credential_infos: tuple[CredentialInfo, ...] = array(CredentialInfo)


@message
class DescribeUserScramCredentialsResponse:
    """``DescribeUserScramCredentialsResponse.json``."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: tuple[DescribeUserScramCredentialsResult, ...] = array(DescribeUserScramCredentialsResult)

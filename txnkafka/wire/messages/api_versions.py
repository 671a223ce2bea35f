"""ApiVersions (key 18): the APIs and versions that a broker accepts, and its features.

By version:

    1  throttle time
    3  flexible; name and version of the client (KIP-511), features, tagged (KIP-584)
    4  supported features whose lowest level is 0, which version 3 has to leave out (KAFKA-17011)
    5  cluster and node that the client expects (KIP-1242)

The response has header version 0 in all versions, so that a client can read it whatever the broker understood
of its request. A broker answers an unknown version with UNSUPPORTED_VERSION in version 0 (KIP-511).
"""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, int16, int32, int64, message, string


@message
class ApiVersionsRequest:
    """``ApiVersionsRequest.json``."""

    client_software_name: str = string("3+", ignorable=True)
    client_software_version: str = string("3+", ignorable=True)
    cluster_id: str | None = string("5+", nullable="0+", default=None, ignorable=True)
    node_id: int = int32("5+", default=-1, ignorable=True)


@message
class ApiVersion:
    """An element of ``api_keys``."""

    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


@message
class SupportedFeatureKey:
    """An element of ``supported_features``."""

    name: str = string("3+")
    min_version: int = int16("3+")
    max_version: int = int16("3+")


@message
class FinalizedFeatureKey:
    """An element of ``finalized_features``."""

    name: str = string("3+")
    max_version_level: int = int16("3+")
    min_version_level: int = int16("3+")


@message
class ApiVersionsResponse:
    """``ApiVersionsResponse.json``."""

    error_code: int = int16()
    api_keys: tuple[ApiVersion, ...] = array(ApiVersion)
    throttle_time_ms: int = int32("1+", ignorable=True)
    supported_features: tuple[SupportedFeatureKey, ...] = array(
        SupportedFeatureKey, "3+", tag=0, ignorable=True
    )
    finalized_features_epoch: int = int64("3+", tag=1, default=-1, ignorable=True)
    finalized_features: tuple[FinalizedFeatureKey, ...] = array(
        FinalizedFeatureKey, "3+", tag=2, ignorable=True
    )
    zk_migration_ready: bool = boolean("3+", tag=3, ignorable=True)

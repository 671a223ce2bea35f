"""ListConfigResources (key 74): resources that have configs; in version 0 client metrics only (KIP-1142).

By version:

    1  kinds of resources
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int8, int16, int32, message, string
from txnkafka.wire.schema import INT8


@message
class ListConfigResourcesRequest:
    """``ListConfigResourcesRequest.json``."""

    resource_types: tuple[int, ...] = array(INT8, "1+")


@message
class ConfigResource:
    """An element of ``config_resources``."""

    resource_name: str = string()
    resource_type: int = int8("1+", ignorable=True, default=16)


@message
class ListConfigResourcesResponse:
    """``ListConfigResourcesResponse.json``."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: tuple[ConfigResource, ...] = array(ConfigResource)

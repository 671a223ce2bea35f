"""IncrementalAlterConfigs (key 44): single configs of topics and brokers (KIP-339).

By version:

1  flexible
"""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, int8, int16, int32, message, string


@message
class AlterableConfig:
    """An element of ``configs``."""

    name: str = string()
    config_operation: int = int8()
    value: str | None = string(nullable="0+")


@message
class AlterConfigsResource:
    """An element of ``resources``."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[AlterableConfig, ...] = array(AlterableConfig)


@message
class IncrementalAlterConfigsRequest:
    """``IncrementalAlterConfigsRequest.json``."""

    resources: tuple[AlterConfigsResource, ...] = array(AlterConfigsResource)
    validate_only: bool = boolean()


@message
class AlterConfigsResourceResponse:
    """An element of ``responses``."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()


@message
class IncrementalAlterConfigsResponse:
    """``IncrementalAlterConfigsResponse.json``."""

    throttle_time_ms: int = int32()
    responses: tuple[AlterConfigsResourceResponse, ...] = array(AlterConfigsResourceResponse)

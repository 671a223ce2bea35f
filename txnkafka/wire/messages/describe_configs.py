"""DescribeConfigs (key 32): configs of topics and brokers.

By version:

1  synonyms; where a value comes from
3  type and documentation (KIP-569)
4  flexible
"""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, int8, int16, int32, message, string
from txnkafka.wire.schema import STRING


@message
class DescribeConfigsResource:
    """An element of ``resources``."""

    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: tuple[str, ...] | None = array(STRING, nullable="0+")


@message
class DescribeConfigsRequest:
    """``DescribeConfigsRequest.json``."""

    resources: tuple[DescribeConfigsResource, ...] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean()
    include_documentation: bool = boolean("3+")


@message
class DescribeConfigsSynonym:
    """An element of ``synonyms``."""

    name: str = string()
    value: str | None = string(nullable="0+")
    source: int = int8()


@message
class DescribeConfigsResourceResult:
    """An element of ``configs``."""

    name: str = string()
    value: str | None = string(nullable="0+")
    read_only: bool = boolean()
    config_source: int = int8(default=-1, ignorable=True)
    is_sensitive: bool = boolean()
    synonyms: tuple[DescribeConfigsSynonym, ...] = array(DescribeConfigsSynonym, ignorable=True)
    config_type: int = int8("3+", ignorable=True)
    documentation: str | None = string("3+", nullable="0+", ignorable=True)


@message
class DescribeConfigsResult:
    """An element of ``results``."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[DescribeConfigsResourceResult, ...] = array(DescribeConfigsResourceResult)


@message
class DescribeConfigsResponse:
    """``DescribeConfigsResponse.json``."""

    throttle_time_ms: int = int32()
    results: tuple[DescribeConfigsResult, ...] = array(DescribeConfigsResult)

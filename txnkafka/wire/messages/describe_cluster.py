"""DescribeCluster (key 60): the brokers of a cluster (KIP-700).

By version:

1  brokers or controllers (KIP-919)
2  fenced brokers (KIP-1073)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, int8, int16, int32, message, string


@message
class DescribeClusterRequest:
    """``DescribeClusterRequest.json``."""

    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8("1+", default=1)
    include_fenced_brokers: bool = boolean("2+")


@message
class DescribeClusterBroker:
    """An element of ``brokers``."""

    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)
    is_fenced: bool = boolean("2+")


@message
class DescribeClusterResponse:
    """``DescribeClusterResponse.json``."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    endpoint_type: int = int8("1+", default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: tuple[DescribeClusterBroker, ...] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=-2147483648)

"""Metadata (key 3): brokers, topics and leaders of partitions.

By version:

    0  an empty list asks for all topics; from 1 on null does, and an empty list for none
    1  racks, controller, internal topics
    2  cluster id
    3  throttle time
    4  whether topics may be created
    5  offline replicas
    7  leader epochs (KIP-320)
    8  authorized operations (KIP-430)
    9  flexible
    10 topic ids, not to be asked for before 12 (KIP-516)
    11 authorized operations of the cluster are left to DescribeCluster (KIP-700)
    12 topics by id
    13 an error code for the whole answer
"""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, int16, int32, message, string, uuid
from txnkafka.wire.schema import INT32


@message
class MetadataRequestTopic:
    """An element of ``topics``."""

    topic_id: str = uuid("10+", ignorable=True)
    name: str | None = string(nullable="10+")


@message
class MetadataRequest:
    """``MetadataRequest.json``."""

    topics: tuple[MetadataRequestTopic, ...] | None = array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = boolean("4+", default=True)
    include_cluster_authorized_operations: bool = boolean("8-10")
    include_topic_authorized_operations: bool = boolean("8+")


@message
class MetadataResponseBroker:
    """An element of ``brokers``."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string("1+", nullable="0+", default=None, ignorable=True)


@message
class MetadataResponsePartition:
    """An element of ``partitions``."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32("7+", default=-1, ignorable=True)
    replica_nodes: tuple[int, ...] = array(INT32)
    isr_nodes: tuple[int, ...] = array(INT32)
    offline_replicas: tuple[int, ...] = array(INT32, "5+", ignorable=True)


@message
class MetadataResponseTopic:
    """An element of ``topics``."""

    error_code: int = int16()
    name: str | None = string(nullable="12+")
    topic_id: str = uuid("10+", ignorable=True)
    is_internal: bool = boolean("1+", ignorable=True)
    partitions: tuple[MetadataResponsePartition, ...] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32("8+", default=-2147483648)


@message
class MetadataResponse:
    """``MetadataResponse.json``."""

    throttle_time_ms: int = int32("3+", ignorable=True)
    brokers: tuple[MetadataResponseBroker, ...] = array(MetadataResponseBroker)
    cluster_id: str | None = string("2+", nullable="0+", default=None, ignorable=True)
    controller_id: int = int32("1+", default=-1, ignorable=True)
    topics: tuple[MetadataResponseTopic, ...] = array(MetadataResponseTopic)
    error_code: int = int16("13+", ignorable=True)
    cluster_authorized_operations: int = int32("8-10", default=-2147483648)

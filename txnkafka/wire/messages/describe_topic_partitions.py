"""DescribeTopicPartitions (key 75): topics and partitions page by page (KIP-966)."""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, int16, int32, message, string, struct, uuid
from txnkafka.wire.schema import INT32


@message
class TopicRequest:
    """An element of ``topics``."""

    name: str = string()


@message
class Cursor:
    """The struct ``cursor``."""

    topic_name: str = string()
    partition_index: int = int32()


@message
class DescribeTopicPartitionsRequest:
    """``DescribeTopicPartitionsRequest.json``."""

    topics: tuple[TopicRequest, ...] = array(TopicRequest)
    response_partition_limit: int = int32(default=2000)
    cursor: Cursor | None = struct(Cursor, nullable="0+", default=None)


@message
class DescribeTopicPartitionsResponsePartition:
    """An element of ``partitions``."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(default=-1, ignorable=True)
    replica_nodes: tuple[int, ...] = array(INT32)
    isr_nodes: tuple[int, ...] = array(INT32)
    eligible_leader_replicas: tuple[int, ...] | None = array(INT32, nullable="0+", default=None)
    last_known_elr: tuple[int, ...] | None = array(INT32, nullable="0+", default=None)
    offline_replicas: tuple[int, ...] = array(INT32, ignorable=True)


@message
class DescribeTopicPartitionsResponseTopic:
    """An element of ``topics``."""

    error_code: int = int16()
    name: str | None = string(nullable="0+")
    topic_id: str = uuid(ignorable=True)
    is_internal: bool = boolean(ignorable=True)
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = array(
        DescribeTopicPartitionsResponsePartition
    )
    topic_authorized_operations: int = int32(default=-2147483648)


@message
class DescribeTopicPartitionsResponse:
    """``DescribeTopicPartitionsResponse.json``."""

    throttle_time_ms: int = int32(ignorable=True)
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: Cursor | None = struct(Cursor, nullable="0+", default=None)

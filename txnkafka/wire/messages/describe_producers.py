"""DescribeProducers (key 61): the producers that a partition knows (KIP-664)."""

from __future__ import annotations

from txnkafka.wire.fields import array, int16, int32, int64, message, string
from txnkafka.wire.schema import INT32


@message
class TopicRequest:
    """An element of ``topics``."""

    name: str = string()
    partition_indexes: tuple[int, ...] = array(INT32)


@message
class DescribeProducersRequest:
    """``DescribeProducersRequest.json``."""

    topics: tuple[TopicRequest, ...] = array(TopicRequest)


@message
class ProducerState:
    """An element of ``active_producers``."""

    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1)


@message
class PartitionResponse:
    """An element of ``partitions``."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    active_producers: tuple[ProducerState, ...] = array(ProducerState)


@message
class TopicResponse:
    """An element of ``topics``."""

    name: str = string()
    partitions: tuple[PartitionResponse, ...] = array(PartitionResponse)


@message
class DescribeProducersResponse:
    """``DescribeProducersResponse.json``."""

    throttle_time_ms: int = int32()
    topics: tuple[TopicResponse, ...] = array(TopicResponse)

"""Produce (key 0): record batches for partitions, one batch each.

By version:

    3  transactional id, batches of magic 2 (KIP-98)
    4  KAFKA_STORAGE_ERROR
    5  log start offset
    7  zstd (KIP-110)
    8  refused records, with the reasons (KIP-467)
    9  flexible
    10 current leader and its address, tagged (KIP-951)
    11 TRANSACTION_ABORTABLE (KIP-890)
    12 adds the partition to the transaction (KIP-890, ``transaction.version`` 2)
    13 topic ids instead of names (KIP-516)

Brokers of Apache Kafka 4 announce 0 and refuse 0 to 2, because librdkafka compresses only if version 0 is
announced (KAFKA-18659).
"""

from __future__ import annotations

from txnkafka.wire.fields import (
    Buffer,
    array,
    int16,
    int32,
    int64,
    message,
    records,
    string,
    struct,
    uuid,
)


@message
class PartitionProduceData:
    """An element of ``partition_data``."""

    index: int = int32()
    records: Buffer | None = records(nullable="0+")


@message
class TopicProduceData:
    """An element of ``topic_data``."""

    topic_id: str = uuid("13+", ignorable=True)
    name: str = string("3-12", ignorable=True)
    partition_data: tuple[PartitionProduceData, ...] = array(PartitionProduceData)


@message
class ProduceRequest:
    """``ProduceRequest.json``."""

    transactional_id: str | None = string(nullable="0+", default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: tuple[TopicProduceData, ...] = array(TopicProduceData)


@message
class BatchIndexAndErrorMessage:
    """An element of ``record_errors``."""

    batch_index: int = int32("8+")
    batch_index_error_message: str | None = string("8+", nullable="0+", default=None)


@message
class LeaderIdAndEpoch:
    """The struct ``current_leader``."""

    leader_id: int = int32("10+", default=-1)
    leader_epoch: int = int32("10+", default=-1)


@message
class PartitionProduceResponse:
    """An element of ``partition_responses``."""

    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64(default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = array(
        BatchIndexAndErrorMessage, "8+", ignorable=True
    )
    error_message: str | None = string("8+", nullable="0+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "10+", tag=0)


@message
class TopicProduceResponse:
    """An element of ``responses``."""

    topic_id: str = uuid("13+", ignorable=True)
    name: str = string("3-12", ignorable=True)
    partition_responses: tuple[PartitionProduceResponse, ...] = array(PartitionProduceResponse)


@message
class NodeEndpoint:
    """An element of ``node_endpoints``."""

    node_id: int = int32("10+")
    host: str = string("10+")
    port: int = int32("10+")
    rack: str | None = string("10+", nullable="0+", default=None)


@message
class ProduceResponse:
    """``ProduceResponse.json``."""

    responses: tuple[TopicProduceResponse, ...] = array(TopicProduceResponse)
    throttle_time_ms: int = int32(ignorable=True)
    node_endpoints: tuple[NodeEndpoint, ...] = array(NodeEndpoint, "10+", tag=0)

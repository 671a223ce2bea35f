"""DeleteRecords (key 21): records below an offset (KIP-107).

By version:

2  flexible
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int16, int32, int64, message, string


@message
class DeleteRecordsPartition:
    """An element of ``partitions``."""

    partition_index: int = int32()
    offset: int = int64()


@message
class DeleteRecordsTopic:
    """An element of ``topics``."""

    name: str = string()
    partitions: tuple[DeleteRecordsPartition, ...] = array(DeleteRecordsPartition)


@message
class DeleteRecordsRequest:
    """``DeleteRecordsRequest.json``."""

    topics: tuple[DeleteRecordsTopic, ...] = array(DeleteRecordsTopic)
    timeout_ms: int = int32()


@message
class DeleteRecordsPartitionResult:
    """An element of ``partitions``."""

    partition_index: int = int32()
    low_watermark: int = int64()
    error_code: int = int16()


@message
class DeleteRecordsTopicResult:
    """An element of ``topics``."""

    name: str = string()
    partitions: tuple[DeleteRecordsPartitionResult, ...] = array(DeleteRecordsPartitionResult)


@message
class DeleteRecordsResponse:
    """``DeleteRecordsResponse.json``."""

    throttle_time_ms: int = int32()
    topics: tuple[DeleteRecordsTopicResult, ...] = array(DeleteRecordsTopicResult)

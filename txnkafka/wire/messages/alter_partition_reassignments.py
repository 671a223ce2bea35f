"""AlterPartitionReassignments (key 45): begins and ends moves of replicas between brokers (KIP-455).

By version:

1  changes of the replication factor may be forbidden (KIP-860)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, int16, int32, message, string
from txnkafka.wire.schema import INT32


@message
class ReassignablePartition:
    """An element of ``partitions``."""

    partition_index: int = int32()
    replicas: tuple[int, ...] | None = array(INT32, nullable="0+", default=None)


@message
class ReassignableTopic:
    """An element of ``topics``."""

    name: str = string()
    partitions: tuple[ReassignablePartition, ...] = array(ReassignablePartition)


@message
class AlterPartitionReassignmentsRequest:
    """``AlterPartitionReassignmentsRequest.json``."""

    timeout_ms: int = int32(default=60000)
    allow_replication_factor_change: bool = boolean("1+", default=True)
    topics: tuple[ReassignableTopic, ...] = array(ReassignableTopic)


@message
class ReassignablePartitionResponse:
    """An element of ``partitions``."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message
class ReassignableTopicResponse:
    """An element of ``responses``."""

    name: str = string()
    partitions: tuple[ReassignablePartitionResponse, ...] = array(ReassignablePartitionResponse)


@message
class AlterPartitionReassignmentsResponse:
    """``AlterPartitionReassignmentsResponse.json``."""

    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = boolean("1+", ignorable=True, default=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    responses: tuple[ReassignableTopicResponse, ...] = array(ReassignableTopicResponse)

"""ElectLeaders (key 43): elects leaders of partitions (KIP-183, KIP-460).

By version:

1  unclean elections
2  flexible
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int8, int16, int32, message, string
from txnkafka.wire.schema import INT32


@message
class TopicPartitions:
    """An element of ``topic_partitions``."""

    topic: str = string()
    partitions: tuple[int, ...] = array(INT32)


@message
class ElectLeadersRequest:
    """``ElectLeadersRequest.json``."""

    election_type: int = int8("1+")
    topic_partitions: tuple[TopicPartitions, ...] | None = array(TopicPartitions, nullable="0+")
    timeout_ms: int = int32(default=60000)


@message
class PartitionResult:
    """An element of ``partition_result``."""

    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message
class ReplicaElectionResult:
    """An element of ``replica_election_results``."""

    topic: str = string()
    partition_result: tuple[PartitionResult, ...] = array(PartitionResult)


@message
class ElectLeadersResponse:
    """``ElectLeadersResponse.json``."""

    throttle_time_ms: int = int32()
    error_code: int = int16("1+")
    replica_election_results: tuple[ReplicaElectionResult, ...] = array(ReplicaElectionResult)

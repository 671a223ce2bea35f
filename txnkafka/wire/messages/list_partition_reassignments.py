"""ListPartitionReassignments (key 46): moves of replicas that are under way (KIP-455)."""

from __future__ import annotations

from txnkafka.wire.fields import array, int16, int32, message, string
from txnkafka.wire.schema import INT32


@message
class ListPartitionReassignmentsTopics:
    """An element of ``topics``."""

    name: str = string()
    partition_indexes: tuple[int, ...] = array(INT32)


@message
class ListPartitionReassignmentsRequest:
    """``ListPartitionReassignmentsRequest.json``."""

    timeout_ms: int = int32(default=60000)
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = array(
        ListPartitionReassignmentsTopics, nullable="0+", default=None
    )


@message
class OngoingPartitionReassignment:
    """An element of ``partitions``."""

    partition_index: int = int32()
    replicas: tuple[int, ...] = array(INT32)
    adding_replicas: tuple[int, ...] = array(INT32)
    removing_replicas: tuple[int, ...] = array(INT32)


@message
class OngoingTopicReassignment:
    """An element of ``topics``."""

    name: str = string()
    partitions: tuple[OngoingPartitionReassignment, ...] = array(OngoingPartitionReassignment)


@message
class ListPartitionReassignmentsResponse:
    """``ListPartitionReassignmentsResponse.json``."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    topics: tuple[OngoingTopicReassignment, ...] = array(OngoingTopicReassignment)

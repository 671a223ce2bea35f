"""CreatePartitions (key 37): more partitions for topics (KIP-195).

By version:

2  flexible
3  THROTTLING_QUOTA_EXCEEDED (KIP-599)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, int16, int32, message, string
from txnkafka.wire.schema import INT32


@message
class CreatePartitionsAssignment:
    """An element of ``assignments``."""

    broker_ids: tuple[int, ...] = array(INT32)


@message
class CreatePartitionsTopic:
    """An element of ``topics``."""

    name: str = string()
    count: int = int32()
    assignments: tuple[CreatePartitionsAssignment, ...] | None = array(
        CreatePartitionsAssignment, nullable="0+"
    )


@message
class CreatePartitionsRequest:
    """``CreatePartitionsRequest.json``."""

    topics: tuple[CreatePartitionsTopic, ...] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


@message
class CreatePartitionsTopicResult:
    """An element of ``results``."""

    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@message
class CreatePartitionsResponse:
    """``CreatePartitionsResponse.json``."""

    throttle_time_ms: int = int32()
    results: tuple[CreatePartitionsTopicResult, ...] = array(CreatePartitionsTopicResult)

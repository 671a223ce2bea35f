"""OffsetDelete (key 47): committed offsets of a group (KIP-496); never flexible."""

from __future__ import annotations

from txnkafka.wire.fields import array, int16, int32, message, string


@message
class OffsetDeleteRequestPartition:
    """An element of ``partitions``."""

    partition_index: int = int32()


@message
class OffsetDeleteRequestTopic:
    """An element of ``topics``."""

    name: str = string()
    partitions: tuple[OffsetDeleteRequestPartition, ...] = array(OffsetDeleteRequestPartition)


@message
class OffsetDeleteRequest:
    """``OffsetDeleteRequest.json``."""

    group_id: str = string()
    topics: tuple[OffsetDeleteRequestTopic, ...] = array(OffsetDeleteRequestTopic)


@message
class OffsetDeleteResponsePartition:
    """An element of ``partitions``."""

    partition_index: int = int32()
    error_code: int = int16()


@message
class OffsetDeleteResponseTopic:
    """An element of ``topics``."""

    name: str = string()
    partitions: tuple[OffsetDeleteResponsePartition, ...] = array(OffsetDeleteResponsePartition)


@message
class OffsetDeleteResponse:
    """``OffsetDeleteResponse.json``."""

    error_code: int = int16()
    throttle_time_ms: int = int32(ignorable=True)
    topics: tuple[OffsetDeleteResponseTopic, ...] = array(OffsetDeleteResponseTopic)

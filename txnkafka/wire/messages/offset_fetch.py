"""OffsetFetch (key 9): committed offsets of consumer groups.

By version:

2  null for all topics; an error code for the whole answer
3  throttle time
5  committed leader epoch (KIP-320)
6  flexible
7  whether offsets in open transactions make the answer wait (KIP-447)
8  several groups (KIP-709)
9  member id and epoch of the consumer protocol (KIP-848)
10 topic ids instead of names
"""

from __future__ import annotations

from txnkafka.wire.fields import array, boolean, int16, int32, int64, message, string, uuid
from txnkafka.wire.schema import INT32


@message
class OffsetFetchRequestTopics:
    """An element of ``topics``."""

    topic_id: str = uuid("10+", ignorable=True)
    name: str = string("8-9", ignorable=True)
    partition_indexes: tuple[int, ...] = array(INT32, "8+")


@message
class OffsetFetchRequestGroup:
    """An element of ``groups``."""

    group_id: str = string("8+")
    member_id: str | None = string("9+", nullable="0+", default=None, ignorable=True)
    member_epoch: int = int32("9+", default=-1, ignorable=True)
    topics: tuple[OffsetFetchRequestTopics, ...] | None = array(OffsetFetchRequestTopics, "8+", nullable="0+")


@message
class OffsetFetchRequestTopic:
    """An element of ``topics``."""

    name: str = string("1-7")
    partition_indexes: tuple[int, ...] = array(INT32, "1-7")


@message
class OffsetFetchRequest:
    """``OffsetFetchRequest.json``."""

    groups: tuple[OffsetFetchRequestGroup, ...] = array(OffsetFetchRequestGroup, "8+")
    group_id: str = string("1-7")
    topics: tuple[OffsetFetchRequestTopic, ...] | None = array(OffsetFetchRequestTopic, "1-7", nullable="2-7")
    require_stable: bool = boolean("7+")


@message
class OffsetFetchResponsePartitions:
    """An element of ``partitions``."""

    partition_index: int = int32("8+")
    committed_offset: int = int64("8+")
    committed_leader_epoch: int = int32("8+", default=-1, ignorable=True)
    metadata: str | None = string("8+", nullable="0+")
    error_code: int = int16("8+")


@message
class OffsetFetchResponseTopics:
    """An element of ``topics``."""

    topic_id: str = uuid("10+", ignorable=True)
    name: str = string("8-9", ignorable=True)
    partitions: tuple[OffsetFetchResponsePartitions, ...] = array(OffsetFetchResponsePartitions, "8+")


@message
class OffsetFetchResponseGroup:
    """An element of ``groups``."""

    group_id: str = string("8+")
    topics: tuple[OffsetFetchResponseTopics, ...] = array(OffsetFetchResponseTopics, "8+")
    error_code: int = int16("8+")


@message
class OffsetFetchResponsePartition:
    """An element of ``partitions``."""

    partition_index: int = int32("1-7")
    committed_offset: int = int64("1-7")
    committed_leader_epoch: int = int32("5-7", default=-1, ignorable=True)
    metadata: str | None = string("1-7", nullable="0+")
    error_code: int = int16("1-7")


@message
class OffsetFetchResponseTopic:
    """An element of ``topics``."""

    name: str = string("1-7")
    partitions: tuple[OffsetFetchResponsePartition, ...] = array(OffsetFetchResponsePartition, "1-7")


@message
class OffsetFetchResponse:
    """``OffsetFetchResponse.json``."""

    throttle_time_ms: int = int32("3+", ignorable=True)
    groups: tuple[OffsetFetchResponseGroup, ...] = array(OffsetFetchResponseGroup, "8+")
    topics: tuple[OffsetFetchResponseTopic, ...] = array(OffsetFetchResponseTopic, "1-7")
    error_code: int = int16("2-7", ignorable=True)

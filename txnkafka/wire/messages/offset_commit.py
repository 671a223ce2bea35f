"""OffsetCommit (key 8): offsets of a consumer group.

By version:

2  retention time, until 4
3  throttle time
6  committed leader epoch (KIP-320)
7  group instance id (KIP-345)
8  flexible
9  member epochs of the consumer protocol (KIP-848)
10 topic ids instead of names
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int16, int32, int64, message, string, uuid


@message
class OffsetCommitRequestPartition:
    """An element of ``partitions``."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("6+", default=-1, ignorable=True)
    committed_metadata: str | None = string(nullable="0+")


@message
class OffsetCommitRequestTopic:
    """An element of ``topics``."""

    topic_id: str = uuid("10+", ignorable=True)
    name: str = string("2-9", ignorable=True)
    partitions: tuple[OffsetCommitRequestPartition, ...] = array(OffsetCommitRequestPartition)


@message
class OffsetCommitRequest:
    """``OffsetCommitRequest.json``."""

    group_id: str = string()
    generation_id_or_member_epoch: int = int32(default=-1, ignorable=True)
    member_id: str = string(ignorable=True)
    group_instance_id: str | None = string("7+", nullable="0+", default=None)
    retention_time_ms: int = int64("2-4", default=-1, ignorable=True)
    topics: tuple[OffsetCommitRequestTopic, ...] = array(OffsetCommitRequestTopic)


@message
class OffsetCommitResponsePartition:
    """An element of ``partitions``."""

    partition_index: int = int32()
    error_code: int = int16()


@message
class OffsetCommitResponseTopic:
    """An element of ``topics``."""

    topic_id: str = uuid("10+", ignorable=True)
    name: str = string("2-9", ignorable=True)
    partitions: tuple[OffsetCommitResponsePartition, ...] = array(OffsetCommitResponsePartition)


@message
class OffsetCommitResponse:
    """``OffsetCommitResponse.json``."""

    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: tuple[OffsetCommitResponseTopic, ...] = array(OffsetCommitResponseTopic)

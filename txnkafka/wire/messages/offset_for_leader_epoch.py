"""OffsetForLeaderEpoch (key 23): the end offset of a leader epoch (KIP-101, KIP-320).

By version:

    2  throttle time, current leader epoch
    3  replica id; -2 is a consumer that sees offsets above the high watermark
    4  flexible
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int16, int32, int64, message, string


@message
class OffsetForLeaderPartition:
    """An element of ``partitions``."""

    partition: int = int32()
    current_leader_epoch: int = int32(default=-1, ignorable=True)
    leader_epoch: int = int32()


@message
class OffsetForLeaderTopic:
    """An element of ``topics``."""

    topic: str = string()
    partitions: tuple[OffsetForLeaderPartition, ...] = array(OffsetForLeaderPartition)


@message
class OffsetForLeaderEpochRequest:
    """``OffsetForLeaderEpochRequest.json``."""

    replica_id: int = int32("3+", default=-2, ignorable=True)
    topics: tuple[OffsetForLeaderTopic, ...] = array(OffsetForLeaderTopic)


@message
class EpochEndOffset:
    """An element of ``partitions``."""

    error_code: int = int16()
    partition: int = int32()
    leader_epoch: int = int32(default=-1, ignorable=True)
    end_offset: int = int64(default=-1)


@message
class OffsetForLeaderTopicResult:
    """An element of ``topics``."""

    topic: str = string()
    partitions: tuple[EpochEndOffset, ...] = array(EpochEndOffset)


@message
class OffsetForLeaderEpochResponse:
    """``OffsetForLeaderEpochResponse.json``."""

    throttle_time_ms: int = int32(ignorable=True)
    topics: tuple[OffsetForLeaderTopicResult, ...] = array(OffsetForLeaderTopicResult)

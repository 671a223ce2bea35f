"""ListOffsets (key 2): an offset by its timestamp, or the first or last one.

By version:

1  one offset instead of a list, with its timestamp
2  isolation level, throttle time
4  leader epochs (KIP-320)
5  OFFSET_NOT_AVAILABLE
6  flexible
7  timestamp -3: the largest timestamp (KIP-734)
8  timestamp -4: the local log start (KIP-405)
9  timestamp -5: the last tiered offset (KIP-1005)
10 timeout of a lookup in tiered storage (KIP-1075)
11 timestamp -6: the first offset that is not uploaded yet (KIP-1023)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int8, int16, int32, int64, message, string


@message
class ListOffsetsPartition:
    """An element of ``partitions``."""

    partition_index: int = int32()
    current_leader_epoch: int = int32("4+", default=-1, ignorable=True)
    timestamp: int = int64()


@message
class ListOffsetsTopic:
    """An element of ``topics``."""

    name: str = string()
    partitions: tuple[ListOffsetsPartition, ...] = array(ListOffsetsPartition)


@message
class ListOffsetsRequest:
    """``ListOffsetsRequest.json``."""

    replica_id: int = int32()
    isolation_level: int = int8("2+")
    topics: tuple[ListOffsetsTopic, ...] = array(ListOffsetsTopic)
    timeout_ms: int = int32("10+", ignorable=True)


@message
class ListOffsetsPartitionResponse:
    """An element of ``partitions``."""

    partition_index: int = int32()
    error_code: int = int16()
    timestamp: int = int64(default=-1)
    offset: int = int64(default=-1)
    leader_epoch: int = int32("4+", default=-1)


@message
class ListOffsetsTopicResponse:
    """An element of ``topics``."""

    name: str = string()
    partitions: tuple[ListOffsetsPartitionResponse, ...] = array(ListOffsetsPartitionResponse)


@message
class ListOffsetsResponse:
    """``ListOffsetsResponse.json``."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: tuple[ListOffsetsTopicResponse, ...] = array(ListOffsetsTopicResponse)

"""Fetch (key 1): record batches from partitions, to consumers and followers.

By version:

4  isolation level, last stable offset, aborted transactions (KIP-98)
5  log start offset
7  sessions (KIP-227)
9  current leader epoch (KIP-320)
10 zstd (KIP-110)
11 rack and preferred replica (KIP-392)
12 flexible; last fetched epoch, diverging epoch, current leader, snapshot id
13 topic ids instead of names (KIP-516)
14 OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405)
15 replica state, tagged, instead of the replica id (KIP-903)
16 addresses of current leaders, tagged (KIP-951)
17 replica directory id, tagged (KIP-853)
18 high watermark of the follower, tagged (KIP-1166)

Empty records are of length 0 rather than null in what Apache Kafka answers.
"""

from __future__ import annotations

from txnkafka.wire.fields import (
    Buffer,
    array,
    int8,
    int16,
    int32,
    int64,
    message,
    records,
    string,
    struct,
    uuid,
)
from txnkafka.wire.schema import INT32


@message
class FetchPartition:
    """An element of ``partitions``."""

    partition: int = int32()
    current_leader_epoch: int = int32("9+", default=-1, ignorable=True)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32("12+", default=-1)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    partition_max_bytes: int = int32()
    replica_directory_id: str = uuid("17+", tag=0, ignorable=True)
    high_watermark: int = int64("18+", tag=1, default=9223372036854775807, ignorable=True)


@message
class FetchTopic:
    """An element of ``topics``."""

    topic_id: str = uuid("13+", ignorable=True)
    topic: str = string("4-12", ignorable=True)
    partitions: tuple[FetchPartition, ...] = array(FetchPartition)


@message
class ForgottenTopic:
    """An element of ``forgotten_topics_data``."""

    topic_id: str = uuid("13+", ignorable=True)
    topic: str = string("7-12", ignorable=True)
    partitions: tuple[int, ...] = array(INT32, "7+")


@message
class ReplicaState:
    """The struct ``replica_state``."""

    replica_id: int = int32("15+", default=-1)
    replica_epoch: int = int64("15+", default=-1)


@message
class FetchRequest:
    """``FetchRequest.json``."""

    replica_id: int = int32("4-14", default=-1)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=2147483647, ignorable=True)
    isolation_level: int = int8(ignorable=True)
    session_id: int = int32("7+", ignorable=True)
    session_epoch: int = int32("7+", default=-1, ignorable=True)
    topics: tuple[FetchTopic, ...] = array(FetchTopic)
    forgotten_topics_data: tuple[ForgottenTopic, ...] = array(ForgottenTopic, "7+")
    rack_id: str = string("11+", ignorable=True)
    cluster_id: str | None = string("12+", nullable="0+", tag=0, default=None, ignorable=True)
    replica_state: ReplicaState = struct(ReplicaState, "15+", tag=1)


@message
class AbortedTransaction:
    """An element of ``aborted_transactions``."""

    producer_id: int = int64()
    first_offset: int = int64()


@message
class EpochEndOffset:
    """The struct ``diverging_epoch``."""

    epoch: int = int32("12+", default=-1)
    end_offset: int = int64("12+", default=-1)


@message
class LeaderIdAndEpoch:
    """The struct ``current_leader``."""

    leader_id: int = int32("12+", default=-1)
    leader_epoch: int = int32("12+", default=-1)


@message
class SnapshotId:
    """The struct ``snapshot_id``."""

    end_offset: int = int64("12+", default=-1)
    epoch: int = int32("12+", default=-1)


@message
class PartitionData:
    """An element of ``partitions``."""

    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64(default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    aborted_transactions: tuple[AbortedTransaction, ...] | None = array(
        AbortedTransaction, nullable="0+", ignorable=True
    )
    preferred_read_replica: int = int32("11+", default=-1)
    records: Buffer | None = records(nullable="0+")
    diverging_epoch: EpochEndOffset = struct(EpochEndOffset, "12+", tag=0)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: SnapshotId = struct(SnapshotId, "12+", tag=2)


@message
class FetchableTopicResponse:
    """An element of ``responses``."""

    topic_id: str = uuid("13+", ignorable=True)
    topic: str = string("4-12", ignorable=True)
    partitions: tuple[PartitionData, ...] = array(PartitionData)


@message
class NodeEndpoint:
    """An element of ``node_endpoints``."""

    node_id: int = int32("16+")
    host: str = string("16+")
    port: int = int32("16+")
    rack: str | None = string("16+", nullable="0+", default=None)


@message
class FetchResponse:
    """``FetchResponse.json``."""

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16("7+", ignorable=True)
    session_id: int = int32("7+")
    responses: tuple[FetchableTopicResponse, ...] = array(FetchableTopicResponse)
    node_endpoints: tuple[NodeEndpoint, ...] = array(NodeEndpoint, "16+", tag=0)

"""DescribeQuorum (key 55): the voters of the metadata log, and how far they are (KIP-595).

By version:

1  times of the last fetches (KIP-836)
2  directories of voters, addresses of nodes, error messages (KIP-853)
"""

from __future__ import annotations

from txnkafka.wire.fields import array, int16, int32, int64, message, string, uint16, uuid


@message
class PartitionData:
    """An element of ``partitions``."""

    partition_index: int = int32()


@message
class TopicData:
    """An element of ``topics``."""

    topic_name: str = string()
    partitions: tuple[PartitionData, ...] = array(PartitionData)


@message
class DescribeQuorumRequest:
    """``DescribeQuorumRequest.json``."""

    topics: tuple[TopicData, ...] = array(TopicData)


@message
class ReplicaState:
    """An element of ``current_voters``."""

    replica_id: int = int32()
    replica_directory_id: str = uuid("2+")
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64("1+", ignorable=True, default=-1)
    last_caught_up_timestamp: int = int64("1+", ignorable=True, default=-1)


@message
class PartitionQuorum:
    """An element of ``partitions``."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string("2+", nullable="2+", ignorable=True)
    leader_id: int = int32()
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: tuple[ReplicaState, ...] = array(ReplicaState)
    observers: tuple[ReplicaState, ...] = array(ReplicaState)


@message
class TopicQuorum:
    """An element of ``topics``."""

    topic_name: str = string()
    partitions: tuple[PartitionQuorum, ...] = array(PartitionQuorum)


@message
class Listener:
    """An element of ``listeners``."""

    name: str = string("2+")
    host: str = string("2+")
    port: int = uint16("2+")


@message
class Node:
    """An element of ``nodes``."""

    node_id: int = int32("2+")
    listeners: tuple[Listener, ...] = array(Listener, "2+")


@message
class DescribeQuorumResponse:
    """``DescribeQuorumResponse.json``."""

    error_code: int = int16()
    error_message: str | None = string("2+", nullable="2+", ignorable=True)
    topics: tuple[TopicQuorum, ...] = array(TopicQuorum)
    nodes: tuple[Node, ...] = array(Node, "2+")

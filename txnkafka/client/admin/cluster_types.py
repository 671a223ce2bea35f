"""Results of the calls of ``Admin`` about the cluster."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.client.transport import Node
    from txnkafka.errors import KafkaError
    from txnkafka.model import TopicPartition


class ClusterDescription(NamedTuple):
    """The brokers of a cluster. ``controller`` is a node id; with KRaft, a broker that forwards to it."""

    cluster_id: str
    controller: int | None
    nodes: tuple[Node, ...]


class ReplicaInfo(NamedTuple):
    """A replica in a log directory: its bytes, and the records that it still lacks."""

    size: int
    offset_lag: int
    is_future: bool


class LogDirDescription(NamedTuple):
    """A log directory of a broker. Bytes of its volume are None if the broker does not know them
    (KIP-827)."""

    error: KafkaError | None
    replicas: Mapping[TopicPartition, ReplicaInfo]
    total_bytes: int | None
    usable_bytes: int | None
    is_cordoned: bool


class VersionRange(NamedTuple):
    """The lowest and highest level of a feature."""

    min_version: int
    max_version: int


class FeatureMetadata(NamedTuple):
    """The features of a cluster: levels in effect, and levels that a broker supports (KIP-584).
    ``finalized_epoch`` grows with each change; None before the first."""

    finalized: Mapping[str, VersionRange]
    finalized_epoch: int | None
    supported: Mapping[str, VersionRange]


class UpgradeType(enum.IntEnum):
    """The allowed changes of a feature's level (KIP-778)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class ReplicaState(NamedTuple):
    """A voter or observer of the metadata log. Times in milliseconds, None if unknown."""

    replica_id: int
    directory_id: str
    log_end_offset: int
    last_fetch_timestamp: int | None
    last_caught_up_timestamp: int | None


class QuorumInfo(NamedTuple):
    """The controllers of a cluster (KIP-595)."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaState, ...]
    observers: tuple[ReplicaState, ...]

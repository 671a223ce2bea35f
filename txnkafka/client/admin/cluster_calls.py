"""The cluster: its brokers, log directories, features and controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.client.admin.call import Call, Calls
from txnkafka.client.admin.cluster_types import (
    ClusterDescription,
    FeatureMetadata,
    LogDirDescription,
    QuorumInfo,
    ReplicaInfo,
    ReplicaState,
    UpgradeType,
    VersionRange,
)
from txnkafka.client.admin.refusals import refusal
from txnkafka.client.admin.route import ANY, CONTROLLER, NODE
from txnkafka.client.transport import Node
from txnkafka.client.versions import api_versions_request
from txnkafka.model import TopicPartition
from txnkafka.wire.messages.describe_cluster import DescribeClusterRequest
from txnkafka.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from txnkafka.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from txnkafka.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from txnkafka.errors import KafkaError

    LogDirs = dict[str, LogDirDescription]

_CLUSTER: Final = "the cluster"  # the one key of calls about it
_METADATA: Final = TopicPartition("__cluster_metadata", 0)


class ClusterCalls(Calls):
    """A part of ``AdminCore``."""

    async def describe_cluster(self, *, include_fenced_brokers: bool = False) -> ClusterDescription:
        """Return the brokers of the cluster, by number; on request also those that are registered but not
        alive (KIP-1073)."""

        def request(keys: Sequence[str], version: int) -> DescribeClusterRequest:
            return DescribeClusterRequest(include_fenced_brokers=include_fenced_brokers)

        at_least = 2 if include_fenced_brokers else 0
        call = Call("DescribeCluster", ANY, _CLUSTER, request, _cluster, at_least=at_least)
        return await self.result(call, _CLUSTER)

    async def describe_log_dirs(self, brokers: Iterable[int] | None = None) -> dict[int, LogDirs]:
        """Return the log directories of brokers, by node id and path; by default of all brokers (KIP-113)."""
        nodes = await self.nodes()
        call = Call("DescribeLogDirs", NODE, "node", _ask_log_dirs, _log_dirs)
        return await self.results(call, nodes if brokers is None else brokers)

    async def describe_features(self) -> FeatureMetadata:
        """Return the features of the cluster and their levels, such as ``transaction.version`` (KIP-584)."""
        call = Call("ApiVersions", ANY, _CLUSTER, lambda keys, version: api_versions_request(), _features)
        return await self.result(call, _CLUSTER)

    async def update_features(
        self,
        levels: Mapping[str, int],
        *,
        upgrade_type: UpgradeType = UpgradeType.UPGRADE,
        validate_only: bool = False,
    ) -> None:
        """Change the levels of features, all or none; 0 disables a feature (KIP-584).

        Raises InvalidUpdateVersionError for a level that a broker does not support or that ``upgrade_type``
        does not allow, FeatureUpdateFailedError."""
        updates = tuple(
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type)
            for name, level in levels.items()
        )
        message = UpdateFeaturesRequest(
            timeout_ms=self.config.request_timeout_ms, feature_updates=updates, validate_only=validate_only
        )
        call = Call(
            "UpdateFeatures", CONTROLLER, _CLUSTER, lambda keys, version: message, _updated, at_least=1
        )  # fmt: skip
        await self.result(call, _CLUSTER)

    async def describe_quorum(self) -> QuorumInfo:
        """Return the controllers of the cluster, and how far each has replicated the metadata log
        (KIP-836)."""
        return await self.result(Call("DescribeQuorum", ANY, _CLUSTER, _ask_quorum, _quorum), _CLUSTER)


def _cluster(response: Any, keys: Sequence[str]) -> Iterator[tuple[str, ClusterDescription | KafkaError]]:
    error = refusal(response.error_code, _CLUSTER, response.error_message)
    nodes = [Node(each.broker_id, each.host, each.port, each.rack) for each in response.brokers]
    controller = response.controller_id if response.controller_id >= 0 else None
    description = ClusterDescription(response.cluster_id, controller, tuple(sorted(nodes, key=_number)))
    yield _CLUSTER, error or description


def _number(node: Node) -> int:
    return node.node_id


def _ask_log_dirs(keys: Sequence[int], version: int) -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest(topics=None)


def _log_dirs(response: Any, keys: Sequence[int]) -> Iterator[tuple[int, LogDirs | KafkaError]]:
    (node_id,) = keys
    error = refusal(response.error_code, f"the log directories of broker {node_id}")
    yield node_id, error or {each.log_dir: _log_dir(each) for each in response.results}


def _log_dir(row: Any) -> LogDirDescription:
    replicas = {
        TopicPartition(topic.name, each.partition_index): ReplicaInfo(
            each.partition_size, each.offset_lag, each.is_future_key
        )
        for topic in row.topics
        for each in topic.partitions
    }
    return LogDirDescription(
        refusal(row.error_code, row.log_dir),
        replicas,
        row.total_bytes if row.total_bytes >= 0 else None,
        row.usable_bytes if row.usable_bytes >= 0 else None,
        row.is_cordoned,
    )


def _features(response: Any, keys: Sequence[str]) -> Iterator[tuple[str, FeatureMetadata | KafkaError]]:
    finalized = {
        each.name: VersionRange(each.min_version_level, each.max_version_level)
        for each in response.finalized_features
    }
    supported = {
        each.name: VersionRange(each.min_version, each.max_version) for each in response.supported_features
    }
    epoch = response.finalized_features_epoch
    found = FeatureMetadata(finalized, epoch if epoch >= 0 else None, supported)
    yield _CLUSTER, refusal(response.error_code, "the features") or found


def _updated(response: Any, keys: Sequence[str]) -> Iterator[tuple[str, KafkaError | None]]:
    error = refusal(response.error_code, "the update of features", response.error_message)
    for each in response.results:
        error = error or refusal(each.error_code, f"feature {each.feature}", each.error_message)
    yield _CLUSTER, error


def _ask_quorum(keys: Sequence[str], version: int) -> DescribeQuorumRequest:
    partitions = (PartitionData(partition_index=_METADATA.partition),)
    return DescribeQuorumRequest(topics=(TopicData(topic_name=_METADATA.topic, partitions=partitions),))


def _quorum(response: Any, keys: Sequence[str]) -> Iterator[tuple[str, QuorumInfo | KafkaError]]:
    error = refusal(response.error_code, _CLUSTER, response.error_message)
    for topic in response.topics:
        for each in topic.partitions:
            error = error or refusal(each.error_code, str(_METADATA), each.error_message)
            yield (
                _CLUSTER,
                error
                or QuorumInfo(
                    each.leader_id,
                    each.leader_epoch,
                    each.high_watermark,
                    tuple(map(_replica, each.current_voters)),
                    tuple(map(_replica, each.observers)),
                ),
            )
    if not response.topics and error is not None:
        yield _CLUSTER, error


def _replica(row: Any) -> ReplicaState:
    fetched, caught_up = row.last_fetch_timestamp, row.last_caught_up_timestamp
    return ReplicaState(
        row.replica_id,
        row.replica_directory_id,
        row.log_end_offset,
        fetched if fetched >= 0 else None,
        caught_up if caught_up >= 0 else None,
    )

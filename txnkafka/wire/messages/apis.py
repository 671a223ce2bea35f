"""Kafka's APIs: keys, names, supported versions, and the classes of their messages.

The ranges are from Apache Kafka 4.4, the first flexible versions from KIP-482. Classes are imported on
demand, because importing all of them takes a tenth of a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, Final

API_VERSIONS: Final = 18
"""The key of the one API that a broker also answers in unknown versions."""


@dataclass(frozen=True)
class Api:
    """One API with the versions that can be read and written.

    ``flexible`` is the first flexible version, None without one. ``unstable`` is the first version that
    Apache Kafka 4.4 neither announces nor accepts by default. ``announced_from`` is the first announced
    version, if lower ones than the accepted are announced."""

    key: int
    name: str
    min_version: int
    max_version: int
    flexible: int | None
    module: str
    unstable: int | None = None
    announced_from: int | None = None

    @property
    def announced(self) -> tuple[int, int]:
        """First and last version that a broker of Apache Kafka 4.4 announces in ApiVersions."""
        return self.announced_range(unstable=False)

    def announced_range(self, *, unstable: bool) -> tuple[int, int]:
        """Return ``announced``; ``unstable``: with ``unstable.api.versions.enable``."""
        first = self.min_version if self.announced_from is None else self.announced_from
        return first, self.max_version if self.unstable is None or unstable else self.unstable - 1

    @cached_property
    def request(self) -> type[Any]:
        """The class of requests."""
        return self._class("Request")

    @cached_property
    def response(self) -> type[Any]:
        """The class of responses."""
        return self._class("Response")

    def has(self, version: int) -> bool:
        """Return whether messages of this version can be read and written."""
        return self.min_version <= version <= self.max_version

    def is_flexible(self, version: int) -> bool:
        """Return whether the version has compact lengths and tagged fields."""
        return self.flexible is not None and version >= self.flexible

    def request_header_version(self, version: int) -> int:
        """Return 2 (with tagged fields) for flexible versions, else 1."""
        return 2 if self.is_flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        """Return 1 (with tagged fields) for flexible versions, else 0. Always 0 for ApiVersions (KIP-511)."""
        return 1 if self.is_flexible(version) and self.key != API_VERSIONS else 0

    def _class(self, kind: str) -> type[Any]:
        module = import_module(f"txnkafka.wire.messages.{self.module}")
        found: type[Any] = getattr(module, self.name + kind)
        return found


APIS: Final = {
    api.key: api
    for api in (
        Api(0, "Produce", 3, 13, 9, "produce", announced_from=0),  # KAFKA-18659
        Api(1, "Fetch", 4, 18, 12, "fetch"),
        Api(2, "ListOffsets", 1, 11, 6, "list_offsets"),
        Api(3, "Metadata", 0, 13, 9, "metadata"),
        Api(8, "OffsetCommit", 2, 10, 8, "offset_commit"),
        Api(9, "OffsetFetch", 1, 10, 6, "offset_fetch"),
        Api(10, "FindCoordinator", 0, 6, 3, "find_coordinator"),
        Api(11, "JoinGroup", 0, 9, 6, "join_group"),
        Api(12, "Heartbeat", 0, 4, 4, "heartbeat"),
        Api(13, "LeaveGroup", 0, 5, 4, "leave_group"),
        Api(14, "SyncGroup", 0, 5, 4, "sync_group"),
        Api(15, "DescribeGroups", 0, 6, 5, "describe_groups"),
        Api(16, "ListGroups", 0, 5, 3, "list_groups"),
        Api(17, "SaslHandshake", 0, 1, None, "sasl_handshake"),
        Api(18, "ApiVersions", 0, 5, 3, "api_versions"),
        Api(19, "CreateTopics", 2, 7, 5, "create_topics"),
        Api(20, "DeleteTopics", 1, 6, 4, "delete_topics"),
        Api(21, "DeleteRecords", 0, 2, 2, "delete_records"),
        Api(22, "InitProducerId", 0, 6, 2, "init_producer_id", unstable=6),
        Api(23, "OffsetForLeaderEpoch", 2, 4, 4, "offset_for_leader_epoch"),
        Api(24, "AddPartitionsToTxn", 0, 5, 3, "add_partitions_to_txn"),
        Api(25, "AddOffsetsToTxn", 0, 4, 3, "add_offsets_to_txn"),
        Api(26, "EndTxn", 0, 5, 3, "end_txn"),
        Api(27, "WriteTxnMarkers", 1, 2, 1, "write_txn_markers"),
        Api(28, "TxnOffsetCommit", 0, 6, 3, "txn_offset_commit"),
        Api(29, "DescribeAcls", 1, 3, 2, "describe_acls"),
        Api(30, "CreateAcls", 1, 3, 2, "create_acls"),
        Api(31, "DeleteAcls", 1, 3, 2, "delete_acls"),
        Api(32, "DescribeConfigs", 1, 4, 4, "describe_configs"),
        Api(33, "AlterConfigs", 0, 2, 2, "alter_configs"),
        Api(34, "AlterReplicaLogDirs", 1, 2, 2, "alter_replica_log_dirs"),
        Api(35, "DescribeLogDirs", 1, 5, 2, "describe_log_dirs"),
        Api(36, "SaslAuthenticate", 0, 2, 2, "sasl_authenticate"),
        Api(37, "CreatePartitions", 0, 3, 2, "create_partitions"),
        Api(38, "CreateDelegationToken", 1, 3, 2, "create_delegation_token"),
        Api(39, "RenewDelegationToken", 1, 2, 2, "renew_delegation_token"),
        Api(40, "ExpireDelegationToken", 1, 2, 2, "expire_delegation_token"),
        Api(41, "DescribeDelegationToken", 1, 3, 2, "describe_delegation_token"),
        Api(42, "DeleteGroups", 0, 3, 2, "delete_groups"),
        Api(43, "ElectLeaders", 0, 2, 2, "elect_leaders"),
        Api(44, "IncrementalAlterConfigs", 0, 1, 1, "incremental_alter_configs"),
        Api(45, "AlterPartitionReassignments", 0, 1, 0, "alter_partition_reassignments"),
        Api(46, "ListPartitionReassignments", 0, 0, 0, "list_partition_reassignments"),
        Api(47, "OffsetDelete", 0, 0, None, "offset_delete"),
        Api(48, "DescribeClientQuotas", 0, 1, 1, "describe_client_quotas"),
        Api(49, "AlterClientQuotas", 0, 1, 1, "alter_client_quotas"),
        Api(50, "DescribeUserScramCredentials", 0, 0, 0, "describe_user_scram_credentials"),
        Api(55, "DescribeQuorum", 0, 2, 0, "describe_quorum"),
        Api(57, "UpdateFeatures", 0, 2, 0, "update_features"),
        Api(60, "DescribeCluster", 0, 2, 0, "describe_cluster"),
        Api(61, "DescribeProducers", 0, 0, 0, "describe_producers"),
        Api(64, "UnregisterBroker", 0, 0, 0, "unregister_broker"),
        Api(65, "DescribeTransactions", 0, 0, 0, "describe_transactions"),
        Api(66, "ListTransactions", 0, 2, 0, "list_transactions"),
        Api(68, "ConsumerGroupHeartbeat", 0, 1, 0, "consumer_group_heartbeat"),
        Api(69, "ConsumerGroupDescribe", 0, 1, 0, "consumer_group_describe"),
        Api(74, "ListConfigResources", 0, 1, 0, "list_config_resources"),
        Api(75, "DescribeTopicPartitions", 0, 0, 0, "describe_topic_partitions"),
    )
}
"""All APIs by their keys."""

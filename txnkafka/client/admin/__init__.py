"""``Admin``, and the types of its arguments and results."""

from __future__ import annotations

from txnkafka.client.admin.admin import Admin
from txnkafka.client.admin.admin_config import AdminConfig
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
from txnkafka.client.admin.configs import (
    AlterConfigOp,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
    OpType,
)
from txnkafka.client.admin.core import AdminCore
from txnkafka.client.admin.group_types import (
    GroupDescription,
    GroupListing,
    MemberDescription,
    MemberToRemove,
)
from txnkafka.client.admin.record_calls import ListedOffset, OffsetSpec
from txnkafka.client.admin.topic_types import (
    CreatedTopic,
    NewTopic,
    PartitionDescription,
    TopicDescription,
    TopicListing,
)
from txnkafka.client.admin.transaction_types import (
    AbortTransactionSpec,
    HangingTransaction,
    ProducerState,
    TransactionDescription,
    TransactionListing,
)

__all__ = [
    "AbortTransactionSpec",
    "Admin",
    "AdminConfig",
    "AdminCore",
    "AlterConfigOp",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "CreatedTopic",
    "FeatureMetadata",
    "GroupDescription",
    "GroupListing",
    "HangingTransaction",
    "ListedOffset",
    "LogDirDescription",
    "MemberDescription",
    "MemberToRemove",
    "NewTopic",
    "OffsetSpec",
    "OpType",
    "PartitionDescription",
    "ProducerState",
    "QuorumInfo",
    "ReplicaInfo",
    "ReplicaState",
    "TopicDescription",
    "TopicListing",
    "TransactionDescription",
    "TransactionListing",
    "UpgradeType",
    "VersionRange",
]

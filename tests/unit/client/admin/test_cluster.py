"""Brokers, log directories, features and controllers."""

from __future__ import annotations

import pytest

from tests.unit.client.admin.conftest import Cluster
from txnkafka.client.admin import Admin, UpgradeType, VersionRange
from txnkafka.errors import KafkaError
from txnkafka.model import TopicPartition


def test_the_cluster_is_described(admin: Admin, cluster: Cluster) -> None:
    described = admin.describe_cluster()
    assert described == admin.describe_cluster(include_fenced_brokers=True)
    assert (described.cluster_id, described.controller) == (cluster.broker.cluster_id, 1)
    assert [each.node_id for each in described.nodes] == [1]


def test_log_directories_have_the_sizes_of_partitions(admin: Admin, cluster: Cluster) -> None:
    admin.create_topic("orders")
    cluster.hang("orders")
    described = admin.describe_log_dirs()
    assert described.keys() == admin.describe_log_dirs([1]).keys() == {1}
    (directory,) = described[1].values()
    replica = directory.replicas[TopicPartition("orders", 0)]
    assert replica.size > 60
    assert (replica.offset_lag, replica.is_future, directory.error) == (0, False, None)
    assert directory.total_bytes is not None
    assert directory.total_bytes > replica.size


def test_levels_of_features_are_changed(admin: Admin) -> None:
    before = admin.describe_features()
    assert before.finalized["transaction.version"] == VersionRange(2, 2)
    assert before.supported["transaction.version"] == VersionRange(0, 2)
    lower = {"transaction.version": 1}
    with pytest.raises(KafkaError, match=r"^the update of features: .*transaction\.version"):
        admin.update_features(lower)
    admin.update_features(lower, upgrade_type=UpgradeType.SAFE_DOWNGRADE, validate_only=True)
    assert admin.describe_features() == before
    admin.update_features(lower, upgrade_type=UpgradeType.SAFE_DOWNGRADE)
    after = admin.describe_features()
    assert after.finalized["transaction.version"] == VersionRange(1, 1)
    assert (after.finalized_epoch or 0) > (before.finalized_epoch or 0)


def test_the_quorum_has_one_voter(admin: Admin) -> None:
    quorum = admin.describe_quorum()
    (voter,) = quorum.voters
    assert (quorum.leader_id, voter.replica_id, quorum.observers) == (1, 1, ())
    assert voter.log_end_offset >= quorum.high_watermark > 0
    assert voter.last_fetch_timestamp is not None

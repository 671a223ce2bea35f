"""``Admin`` over a socket: every test that passes in process, and lost connections."""

from __future__ import annotations

import pytest

from tests.unit.client.admin.conftest import Cluster
from tests.unit.client.admin.test_cluster import *  # noqa: F403
from tests.unit.client.admin.test_configs import *  # noqa: F403
from tests.unit.client.admin.test_groups import *  # noqa: F403
from tests.unit.client.admin.test_topics import *  # noqa: F403
from tests.unit.client.admin.test_transactions import *  # noqa: F403
from txnkafka.client.admin import Admin
from txnkafka.errors import KafkaTimeoutError
from txnkafka.testing import broker_faults


def test_a_lost_connection_is_opened_again(admin: Admin, cluster: Cluster) -> None:
    admin.create_topic("orders")
    assert broker_faults.drop_connections(cluster.broker) > 0
    assert [each.name for each in admin.list_topics()] == ["orders"]


def test_a_broker_that_is_gone(cluster: Cluster) -> None:
    address = cluster.broker.serve("127.0.0.1:0")
    with Admin(bootstrap_servers=address, default_api_timeout_ms=300) as admin:
        admin.list_topics()
        cluster.broker.close()
        with pytest.raises(KafkaTimeoutError, match=r"^Metadata of the cluster failed for 300 ms: "):
            admin.list_topics()

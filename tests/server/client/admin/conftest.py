"""The tests of ``Admin`` in process, over a socket."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.client.admin.conftest import Cluster, cluster
from txnkafka.client.admin import Admin

__all__ = ["admin", "cluster"]


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[Admin]:
    with Admin(bootstrap_servers=cluster.broker.serve("127.0.0.1:0")) as admin:
        admin._reactor.clock = cluster.clock
        yield admin

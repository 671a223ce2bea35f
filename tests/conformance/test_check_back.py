"""Check-back messages on Apache Kafka: lines of the conformance list, with a resolver beside the broker."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.broker import KafkaBroker
from tests.server.checkback import test_conformance, test_conformance_decisions
from tests.server.checkback.shop import RULES, SECONDS, Shop
from txnkafka import Admin, Consumer
from txnkafka.checkback.half_topics import HALF_TOPIC
from txnkafka.checkback.resolver import Resolver

_LINES = (
    "02", "03", "04", "06", "08", "11", "14", "15", "18", "19", "20", "23", "24", "26", "27", "28", "30",
    "32", "33", "37", "38", "40", "41", "43",
)  # fmt: skip
for _module in (test_conformance, test_conformance_decisions):
    for _name, _test in vars(_module).items():
        if _name.startswith("test_") and _name[5:7] in _LINES:
            globals()[_name] = _test


class Cluster:
    """The clients of a running Kafka, with the methods of a ``txnkafka.Broker``."""

    def __init__(self, address: str) -> None:
        self.address = address

    def admin(self) -> Admin:
        return Admin(bootstrap_servers=self.address)

    def consumer(self, *topics: str, **settings: Any) -> Consumer:
        given = {"bootstrap_servers": self.address, "auto_offset_reset": "earliest", **settings}
        return Consumer(given, topics=topics)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with KafkaBroker(tmp_path_factory.mktemp("kafka")) as kafka:
        yield Cluster(kafka.bootstrap_servers)


@pytest.fixture
def shop(request: pytest.FixtureRequest, running: Cluster) -> Iterator[Shop]:
    """A shop with new topics."""
    rules = {**RULES, **getattr(request.function, "rules", {})}
    with running.admin() as admin:
        _remove_topics(admin)
        admin.create_topic("orders", partitions=1)
        admin.create_topic("bills", partitions=3)
        count = rules.get("half_partitions", 8)
        admin.create_topic(HALF_TOPIC, partitions=count, config={"cleanup.policy": "compact"})
    with contextlib.ExitStack() as stack:
        stack.enter_context(Resolver({"bootstrap.servers": running.address, **rules}))
        made = Shop(running, running.address, rules)  # type: ignore[arg-type]
        stack.callback(made.close)
        yield made


def _remove_topics(admin: Admin) -> None:
    """Delete the topics of the test before, and wait until they are gone. Its groups would continue at their
    offsets in the old topics."""
    groups = [each.group_id for each in admin.list_groups()]
    if groups:
        admin.delete_groups(groups)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        names = [each.name for each in admin.list_topics(include_internal=True)]
        left = [name for name in names if name not in ("__consumer_offsets", "__transaction_state")]
        if not left:
            return
        admin.delete_topics(left)
        time.sleep(0.2)
    raise AssertionError("topics of the test before are still there")

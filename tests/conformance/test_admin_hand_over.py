"""New partitions, configs and levels of features go to Apache Kafka in a directory, and come back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from tests.conformance.broker import KafkaBroker
from tests.server.serving import Serving
from tests.side_by_side.messages import Request
from tests.side_by_side.sides import Conversation, TcpSide

SECONDS = 30
NAME = "t"
TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32  # ConfigResource.Type
# DescribeConfigsResponse.ConfigSource
OF_TOPIC, OF_NODE, OF_CLUSTER, DEFAULT, OF_METRICS, OF_GROUP = 1, 2, 3, 5, 7, 8
LARGEST: Final = str((1 << 63) - 1)
Shown = tuple[str, int]


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaBroker]:
    """Not running; its directory is that of our broker."""
    broker = KafkaBroker(tmp_path, is_static=True)
    yield broker
    broker.stop()


class Administrator:
    """Who asks one broker."""

    def __init__(self, server: str) -> None:
        self._side = TcpSide(server)
        self._conversation = Conversation(self._side, "")

    def _ask(self, api: str, version: int, **fields: Any) -> dict[str, Any]:
        return self._conversation.ask(Request(api, version, fields))

    def alter(self, kind: int, name: str, key: str, value: str | None) -> None:
        """Set a config, or delete it."""
        config = {"name": key, "config_operation": int(value is None), "value": value}
        resource = {"resource_type": kind, "resource_name": name, "configs": [config]}
        (answer,) = self._ask("IncrementalAlterConfigs", 1, resources=[resource])["responses"]
        assert "error_code" not in answer, answer

    def shown(self, kind: int, name: str, *keys: str) -> list[Shown]:
        """Value and source of configs."""
        resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
        (answer,) = self._ask("DescribeConfigs", 4, resources=[resource])["results"]
        found = {each["name"]: each for each in answer["configs"]}
        return [(found[key].get("value"), found[key]["config_source"]) for key in keys]

    def enlarge(self, count: int) -> None:
        """More partitions for the topic."""
        topic = {"name": NAME, "count": count, "assignments": None}
        (answer,) = self._ask("CreatePartitions", 3, topics=[topic], timeout_ms=SECONDS * 1000)["results"]
        assert "error_code" not in answer, answer

    def partitions(self) -> int:
        """Those with a leader, once all of them have one."""
        deadline = time.monotonic() + SECONDS
        while True:
            (topic,) = self._ask("Metadata", 12, topics=[{"name": NAME}])["topics"]
            found = topic.get("partitions", [])
            if found and all(each.get("leader_id") == 1 for each in found):
                return len(found)
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def close(self) -> None:
        """End the connection."""
        self._side.close()


def test_what_was_changed_here_is_there_and_back(kafka: KafkaBroker) -> None:
    of_topic = "retention.ms", "segment.ms", "flush.ms"
    of_broker = "log.retention.ms", "log.roll.ms", "log.flush.interval.ms"
    with (
        closing(Serving(kafka.log_dir, "--create-topic", f"{NAME}:1")) as ours,
        closing(Administrator(ours.address)) as administrator,
    ):
        administrator.enlarge(3)
        administrator.alter(TOPIC, NAME, "retention.ms", "5000000")
        administrator.alter(BROKER, "1", "log.roll.ms", "6000000")
        administrator.alter(BROKER, "", "log.flush.interval.ms", "7000000")
        assert ours.stop() == 0
    expected = [("5000000", OF_TOPIC), ("6000000", OF_NODE), ("7000000", OF_CLUSTER)]
    kafka.start()
    there = Administrator(kafka.bootstrap_servers)
    assert there.partitions() == 3
    assert there.shown(TOPIC, NAME, *of_topic) == expected
    assert there.shown(BROKER, "1", *of_broker)[1:] == expected[1:]
    there.enlarge(5)
    there.alter(TOPIC, NAME, "retention.ms", None)
    there.alter(BROKER, "1", "log.retention.ms", "8000000")
    there.alter(BROKER, "", "log.flush.interval.ms", None)
    there.alter(BROKER, "", "num.io.threads", "9")  # which has no effect here
    assert there.partitions() == 5
    there.close()
    kafka.stop()
    expected = [("8000000", OF_NODE), ("6000000", OF_NODE), (LARGEST, DEFAULT)]
    with closing(Serving(kafka.log_dir)) as ours, closing(Administrator(ours.address)) as back:
        assert back.partitions() == 5
        assert back.shown(TOPIC, NAME, *of_topic) == expected
        assert back.shown(BROKER, "1", *of_broker)[:2] == expected[:2]
        assert "num.io.threads" in ours.log()
        back.enlarge(6)
        back.alter(BROKER, "", "num.io.threads", None)
        assert ours.stop() == 0
    kafka.start()
    with closing(Administrator(kafka.bootstrap_servers)) as there:
        assert there.partitions() == 6


def test_configs_of_groups_and_subscriptions_are_there_and_back(kafka: KafkaBroker) -> None:
    session, where = "consumer.session.timeout.ms", "share.auto.offset.reset"
    with closing(Serving(kafka.log_dir)) as ours, closing(Administrator(ours.address)) as administrator:
        administrator.alter(GROUP, "g", session, "50000")
        administrator.alter(GROUP, "g", where, "by_duration:PT1H")
        administrator.alter(METRICS, "m", "metrics", "a, b")
        administrator.alter(METRICS, "m", "match", "client_id=x.*")
        assert ours.stop() == 0
    expected = [("50000", OF_GROUP), ("by_duration:PT1H", OF_GROUP)]
    kafka.start()
    with closing(Administrator(kafka.bootstrap_servers)) as there:
        assert there.shown(GROUP, "g", session, where) == expected
        assert there.shown(METRICS, "m", "metrics", "match") == [
            ("a,b", OF_METRICS), ("client_id=x.*", OF_METRICS),
        ]  # fmt: skip
        there.alter(GROUP, "g", session, "60000")
        there.alter(GROUP, "g", where, None)
        there.alter(METRICS, "m", "metrics", "*")
    assert not [line for line in kafka.said() if " ERROR " in line]
    kafka.stop()
    with closing(Serving(kafka.log_dir)) as ours, closing(Administrator(ours.address)) as back:
        assert back.shown(GROUP, "g", session, where) == [("60000", OF_GROUP), ("latest", DEFAULT)]
        assert back.shown(METRICS, "m", "metrics", "interval.ms") == [("*", OF_METRICS), ("300000", DEFAULT)]
        assert ours.stop() == 0

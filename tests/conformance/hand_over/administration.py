"""Partitions and configs of topics, brokers, groups and client metrics that administrators change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tests.conformance.hand_over.owners import Owned
from tests.side_by_side.messages import Request
from tests.side_by_side.sides import Conversation, TcpSide

__all__ = ["TOPICS", "Administration"]

SECONDS = 30
NAME = "administered"
TOPICS = (f"{NAME}:1",)
TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32  # ConfigResource.Type
# DescribeConfigsResponse.ConfigSource
OF_TOPIC, OF_NODE, OF_CLUSTER, DEFAULT, OF_METRICS, OF_GROUP = 1, 2, 3, 5, 7, 8
LARGEST: Final = str((1 << 63) - 1)
SESSION, RESET = "consumer.session.timeout.ms", "share.auto.offset.reset"
Shown = tuple[str, int]


class Administrator:
    """A connection of an administrator to one broker."""

    def __init__(self, server: str) -> None:
        self._side = TcpSide(server)
        self._conversation = Conversation(self._side, "")

    def _ask(self, api: str, version: int, **fields: Any) -> dict[str, Any]:
        return self._conversation.ask(Request(api, version, fields))

    def alter(self, kind: int, name: str, **configs: str | None) -> None:
        """Set configs; None deletes a config. An underscore in a name is a dot."""
        changes = [
            {"name": key.replace("_", "."), "config_operation": int(value is None), "value": value}
            for key, value in configs.items()
        ]
        resource = {"resource_type": kind, "resource_name": name, "configs": changes}
        (answer,) = self._ask("IncrementalAlterConfigs", 1, resources=[resource])["responses"]
        assert "error_code" not in answer, answer

    def shown(self, kind: int, name: str, *keys: str) -> list[Shown]:
        """Value and source of configs."""
        resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
        (answer,) = self._ask("DescribeConfigs", 4, resources=[resource])["results"]
        found = {each["name"]: each for each in answer["configs"]}
        return [(found[key].get("value"), found[key]["config_source"]) for key in keys]

    def enlarge(self, count: int) -> None:
        """Set the number of partitions of the topic."""
        topic = {"name": NAME, "count": count, "assignments": None}
        (answer,) = self._ask("CreatePartitions", 3, topics=[topic], timeout_ms=SECONDS * 1000)["results"]
        assert "error_code" not in answer, answer

    def partitions(self) -> int:
        """Wait until every partition has a leader; return their number."""
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


@contextmanager
def administrator(owned: Owned) -> Iterator[Administrator]:
    found = Administrator(owned.address)
    try:
        yield found
    finally:
        found.close()


class Administration:
    """The item of this file. In even turns the topic, the broker and the cluster have a config each; in odd
    turns the broker alone. The number of partitions grows."""

    def check(self, owned: Owned, turn: int) -> None:
        """Compare the configs and the number of partitions."""
        before = turn - 1
        with administrator(owned) as there:
            assert there.partitions() == partitions_after(before)
            of_topic = there.shown(TOPIC, NAME, "retention.ms", "segment.ms", "flush.ms")
            of_broker = there.shown(BROKER, "1", "log.retention.ms", "log.roll.ms", "log.flush.interval.ms")
            of_group = there.shown(GROUP, "g", SESSION, RESET)
            of_metrics = there.shown(METRICS, "m", "metrics", "match", "interval.ms")
        roll, match = (f"60{before:05}", OF_NODE), ("client_id=x.*", OF_METRICS)
        if before % 2 == 0:
            flush = (f"70{before:05}", OF_CLUSTER)
            assert of_topic == [(f"50{before:05}", OF_TOPIC), roll, flush]
            assert of_broker[1:] == [roll, flush]
            assert of_group == [("50000", OF_GROUP), ("by_duration:PT1H", OF_GROUP)]
            assert of_metrics == [("a,b", OF_METRICS), match, ("300000", DEFAULT)]
        else:
            retention = (f"80{before:05}", OF_NODE)
            assert of_topic == [retention, roll, (LARGEST, DEFAULT)]
            assert of_broker[:2] == [retention, roll]
            assert of_group == [("60000", OF_GROUP), ("latest", DEFAULT)]
            assert of_metrics == [("*", OF_METRICS), match, ("300000", DEFAULT)]
            assert any("num.io.threads" in line for line in owned.log()), "it has no effect here"
        errors = [line for line in owned.log() if " ERROR " in line and "config" in line.lower()]
        assert errors == []

    def leave(self, owned: Owned, turn: int) -> None:
        """Change the configs and the number of partitions."""
        with administrator(owned) as there:
            there.enlarge(partitions_after(turn))
            there.alter(BROKER, "1", log_roll_ms=f"60{turn:05}")
            if turn % 2 == 0:
                there.alter(TOPIC, NAME, retention_ms=f"50{turn:05}")
                there.alter(BROKER, "", log_flush_interval_ms=f"70{turn:05}")
                there.alter(GROUP, "g", consumer_session_timeout_ms="50000")
                there.alter(GROUP, "g", share_auto_offset_reset="by_duration:PT1H")
                there.alter(METRICS, "m", metrics="a, b", match="client_id=x.*")
                if turn:
                    there.alter(BROKER, "1", log_retention_ms=None)
                    there.alter(BROKER, "", num_io_threads=None)
            else:
                there.alter(TOPIC, NAME, retention_ms=None)
                there.alter(BROKER, "1", log_retention_ms=f"80{turn:05}")
                there.alter(BROKER, "", log_flush_interval_ms=None, num_io_threads="9")
                there.alter(GROUP, "g", consumer_session_timeout_ms="60000", share_auto_offset_reset=None)
                there.alter(METRICS, "m", metrics="*")
            assert there.partitions() == partitions_after(turn)


def partitions_after(turn: int) -> int:
    """Return the number of partitions that a turn leaves."""
    return 3 + 2 * turn

"""Consumer groups go to Apache Kafka and come back (KIP-848): members, epochs, partitions and patterns are
what they were, and no group is assigned anew, for the hash of its topics is the same."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.broker import KafkaBroker
from tests.server.serving import Serving
from tests.side_by_side.messages import Request
from tests.side_by_side.sides import Conversation, TcpSide

SECONDS = 60
TOPICS = ("one:1", "three:3", "many:70")
NAMES = [topic.split(":")[0] for topic in TOPICS]
CONFIG = {"group.consumer.assignment.interval.ms": "0"}
LOADING = {"14", "15", "16"}  # error codes of a coordinator that starts


class Client:
    """Members on one broker; ``epochs`` by group and member."""

    def __init__(self, address: str, epochs: dict[tuple[str, str], int]) -> None:
        self._side = TcpSide(address)
        self._conversation = Conversation(self._side, "")
        self.epochs = epochs

    def ask(self, api: str, version: int, **fields: Any) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS
        while True:
            answer = self._conversation.ask(Request(api, version, fields))
            if not _is_loading(answer):
                return answer
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)

    def join(self, group: str, member: str, **changes: Any) -> None:
        everything = {"rebalance_timeout_ms": 60_000, "topic_partitions": [], "subscribed_topic_names": NAMES}
        self._beat(group, member, 0, **{**everything, **changes})

    def beat(self, group: str, member: str, **fields: Any) -> None:
        self._beat(group, member, self.epochs[group, member], **fields)

    def _beat(self, group: str, member: str, epoch: int, **fields: Any) -> None:
        named = {"group_id": group, "member_id": member, "member_epoch": epoch}
        answer = self.ask("ConsumerGroupHeartbeat", 1, **named, **fields)
        assert "error_code" not in answer, answer
        self.epochs[group, member] = answer["member_epoch"]

    def settle(self) -> None:
        """Heartbeats in which each member says that it has nothing to give up."""
        for _ in range(3):
            for group, member in list(self.epochs):
                self.beat(group, member, topic_partitions=[])

    def described(self) -> list[Any]:
        """All groups, in an order of its own."""
        groups = sorted({group for group, _ in self.epochs})
        found = self.ask("ConsumerGroupDescribe", 1, group_ids=groups)["groups"]
        return sorted((_sorted(each) for each in found), key=str)

    def offset(self, group: str) -> int:
        topic = {"name": "one", "partition_indexes": [0]}
        asked = {"group_id": group, "topics": [topic]}
        found = self.ask("OffsetFetch", 9, groups=[asked])["groups"][0]["topics"][0]["partitions"][0]
        return int(found["committed_offset"])

    def commit(self, group: str, member: str, offset: int) -> None:
        part = {"partition_index": 0, "committed_offset": offset}
        identity = {"member_id": member, "generation_id_or_member_epoch": self.epochs[group, member]}
        topics = [{"name": "one", "partitions": [part]}]
        answer = self.ask("OffsetCommit", 9, group_id=group, topics=topics, **identity)
        assert "error_code" not in str(answer), answer

    def close(self) -> None:
        self._side.close()


def _is_loading(answer: dict[str, Any]) -> bool:
    return any(f"'error_code': {code}" in str(answer) for code in LOADING)


def _sorted(value: Any) -> Any:
    """Without the ids of topics, which a conversation numbers as they come; their names are there."""
    if isinstance(value, dict):
        return {name: _sorted(each) for name, each in value.items() if name != "topic_id"}
    return sorted(map(_sorted, value), key=str) if isinstance(value, list) else value


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaBroker]:
    """Not running; its directory is that of our broker."""
    broker = KafkaBroker(tmp_path, {"offsets.topic.num.partitions": "50", **CONFIG}, is_static=True)
    yield broker
    broker.stop()


@contextmanager
def ours(kafka: KafkaBroker) -> Iterator[Serving]:
    options = [word for topic in TOPICS for word in ("--create-topic", topic)]
    options += [word for item in CONFIG.items() for word in ("--config", "=".join(item))]
    with Serving(kafka.log_dir, *options) as serving:
        yield serving
        assert serving.stop() == 0
        assert "error" not in serving.log()


@contextmanager
def client(address: str, epochs: dict[tuple[str, str], int]) -> Iterator[Client]:
    found = Client(address, epochs)
    try:
        found.ask("FindCoordinator", 2, key="g", key_type=0)
        yield found
    finally:
        found.close()


def test_consumer_groups_go_to_kafka_and_come_back(kafka: KafkaBroker) -> None:
    epochs: dict[tuple[str, str], int] = {}
    with ours(kafka) as serving, client(serving.address, epochs) as of:
        of.join("names", "a")
        of.join("names", "b", instance_id="i", server_assignor="range")
        of.join("patterns", "c", subscribed_topic_names=None, subscribed_topic_regex="(one|th).*")
        time.sleep(0.5)
        of.settle()
        of.commit("names", "a", 7)
        before, told = of.described(), dict(epochs)
    kafka.start()
    with client(kafka.bootstrap_servers, epochs) as of:
        assert of.described() == before
        of.settle()
        assert epochs == told
        assert of.offset("names") == 7
        of.join("names", "d")
        of.join("kafka", "e", subscribed_topic_names=["one", "missing"])
        of.settle()
        of.commit("kafka", "e", 9)
        before, told = of.described(), dict(epochs)
    kafka.stop()
    with ours(kafka) as serving, client(serving.address, epochs) as of:
        assert of.described() == before
        of.settle()
        assert epochs == told
        assert [of.offset(group) for group in ("names", "kafka")] == [7, 9]
        of.join("kafka", "f", subscribed_topic_names=["one"])
        assert epochs["kafka", "f"] == told["kafka", "e"] + 1

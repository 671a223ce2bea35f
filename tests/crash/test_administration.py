"""What administrators have been told holds after a power cut at any moment: partitions and configs."""

from __future__ import annotations

from collections import Counter
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import LONG
from tests.unit.broker.node import Node, batch_of
from txnkafka.broker.broker import Broker
from txnkafka.broker.config import config_alteration
from txnkafka.broker.config.config_alteration import Alteration, ConfigChange, ConfigOp, alter_configs
from txnkafka.broker.registry import features
from txnkafka.broker.registry.features import FeatureUpdate, UpgradeType, update_features
from txnkafka.broker.topics import partition_creation
from txnkafka.broker.topics.partition_creation import MorePartitions, create_partitions
from txnkafka.env import DataFiles
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.storage.formats import parse_partition_metadata
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.memory_files import MemoryFiles

STATES, LEAST = (4_000, 600) if LONG else (400, 200)


class Told:
    """What the administrator knows, behind which change of the disk."""

    def __init__(self) -> None:
        self.node = Node(transaction_state_log_num_partitions=1)
        self.partitions = [(0, 0)]
        self.retention = [(0, "604800000")]
        self.largest = [(0, 1_048_588)]
        self.level = [(0, 2)]
        self.records: list[tuple[int, int, bytes]] = []

    @property
    def now(self) -> int:
        assert isinstance(self.node.files, MemoryFiles)
        return len(self.node.files.journal)

    def enlarge(self, count: int) -> None:
        wanted = [MorePartitions("t", count)]
        (result,) = self.node.call(lambda reply: create_partitions(self.node.broker, wanted, reply))
        assert result.error == ErrorCode.NONE
        self.partitions.append((self.now, count))

    def alter(self, kind: int, name: str, key: str, value: str | None) -> None:
        operation = ConfigOp.DELETE if value is None else ConfigOp.SET
        wanted = Alteration(kind, name, [ConfigChange(key, operation, value)])
        answers: list[ErrorCode] = []
        self.node.request(alter_configs, self.node.broker, wanted, lambda error, _: answers.append(error))
        self.node.settle()
        assert answers == [ErrorCode.NONE]

    def append(self, partition: int, value: bytes) -> None:
        assert self.node.append(batch_of(value), partition).error == ErrorCode.NONE
        self.records.append((self.now, partition, value))


def workload() -> Told:
    told = Told()
    told.node.create("t", 1)
    told.partitions.append((told.now, 1))
    told.append(0, b"a")
    told.alter(2, "t", "retention.ms", "-1")
    told.retention.append((told.now, "-1"))
    told.enlarge(3)
    told.append(2, b"b")
    told.alter(4, "", "message.max.bytes", "500000")
    told.largest.append((told.now, 500_000))
    told.node.request(
        update_features, told.node.broker,
        [FeatureUpdate("transaction.version", 1, UpgradeType.SAFE_DOWNGRADE)], lambda error, _: None,
    )  # fmt: skip
    told.node.settle()
    told.level.append((told.now, 1))
    told.enlarge(4)
    told.append(3, b"c")
    told.alter(2, "t", "retention.ms", None)
    told.retention.append((told.now, "604800000"))
    return told


def allowed(history: list[tuple[int, object]], changes: int) -> list[object]:
    """The last value that was acknowledged, and those that were asked for later."""
    known = [i for i, (told, _) in enumerate(history) if told <= changes]
    return [value for _, value in history[known[-1] : known[-1] + 2]]


def check(told: Told, disk: object, changes: int) -> str:
    node = Node(MemoryFiles(base=disk), transaction_state_log_num_partitions=1)  # type: ignore[arg-type]
    topic = node.broker.image.topics.get("t")
    count = 0 if topic is None else len(topic.partitions)
    assert count in allowed(list(told.partitions), changes)
    for number in range(count):
        assert node.append(batch_of(b"later"), number).error == ErrorCode.NONE
    for when, partition, value in told.records:
        assert when > changes or value in node.values(partition)
    for number in range(count):
        assert topic is not None
        assert id_on(node.files, number) == topic.topic_id
    if count:
        config = node.broker.logs[TopicPartition("t", 0)].config
        assert str(config.retention_ms) in allowed(list(told.retention), changes)
        assert config.max_message_bytes in allowed(list(told.largest), changes)
    assert node.broker.image.features["transaction.version"] in allowed(list(told.level), changes)
    node.close()
    return f"{count} partitions"


def id_on(files: DataFiles, number: int) -> str:
    """The topic id in the directory of a partition: Apache Kafka serves none without it."""
    path = f"/data/t-{number}/partition.metadata"
    return parse_partition_metadata(files.read(path, 100)).topic_id if files.exists(path) else "none"


def explore(told: Told) -> Counter[str]:
    found = Counter[str]()
    assert isinstance(told.node.files, MemoryFiles)
    news = [when for when, *_ in (*told.partitions, *told.retention, *told.largest, *told.records)]
    for state in crash_states(told.node.files, limit=STATES, news=news):
        try:
            found[check(told, state.disk, state.changes)] += 1
        except AssertionError as error:
            raise AssertionError(f"{state.name}: {error}") from error
    return found


def test_what_was_acknowledged_is_there() -> None:
    found = explore(workload())
    print(f"{sum(found.values())} states of an administered broker: {dict(sorted(found.items()))}")
    assert sum(found.values()) >= LEAST
    assert found.keys() == {f"{count} partitions" for count in (0, 1, 3, 4)}


def registered_early(broker: Broker, records: Any, then: Any) -> None:
    """What ``register`` must not do: the change is acknowledged before it is durable."""
    broker.metadata.append(records, broker.now_ms)
    broker.metadata.apply(records)
    then(ErrorCode.NONE, None)


@pytest.mark.parametrize("module", [config_alteration, partition_creation, features])
def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
    monkeypatch.setattr(module, "register", registered_early)
    with pytest.raises(AssertionError):
        explore(workload())

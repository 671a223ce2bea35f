"""More partitions: in the registry first, then on the disk; with other changes of the topic under way."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.broker.node import Node, Producer, batch_of
from txnkafka.broker.partition_creation import EnlargedTopic, MorePartitions, create_partitions
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles


def enlarge(node: Node, count: int, name: str = "t") -> EnlargedTopic:
    (result,) = node.call(
        lambda reply, now_ms: create_partitions(
            node.broker, [MorePartitions(name, count)], reply, now_ms=now_ms
        )
    )
    found: EnlargedTopic = result
    return found


def test_new_partitions_are_written_to_and_are_there_after_a_restart() -> None:
    node = Node()
    node.create("t", 1)
    producer = Producer(node)
    assert producer.send(b"old", 0) == [ErrorCode.NONE]
    assert enlarge(node, 3) == EnlargedTopic("t", ErrorCode.NONE)
    assert producer.send(b"new", 2) == [ErrorCode.NONE]
    assert producer.end() == ErrorCode.NONE
    node.restart()
    assert sorted(node.broker.image.topics["t"].partitions) == [0, 1, 2]
    assert [node.values(number) for number in range(3)] == [[b"old"], [], [b"new"]]
    assert Producer(node).send(b"later", 1) == [ErrorCode.NONE]


def test_the_topics_of_a_request_share_a_limit() -> None:
    node = Node()
    counts = {"a": 5_001, "b": 5_002, "c": 5_001, "d": 2}
    for name in counts:
        node.create(name)
    wanted = [MorePartitions(*each) for each in counts.items()]
    for _ in range(2):  # each request has its own
        results = node.call(
            lambda reply, now_ms: create_partitions(
                node.broker, wanted, reply, validate_only=True, now_ms=now_ms
            )
        )
        errors = [each.error.name for each in results]
        assert errors == ["NONE", "POLICY_VIOLATION", "NONE", "POLICY_VIOLATION"]


def test_requests_at_once_are_decided_one_after_the_other() -> None:
    node = Node()
    node.create("t", 1)
    answers: list[Any] = []
    for count in (3, 3, 2, 5):
        create_partitions(node.broker, [MorePartitions("t", count)], answers.extend, now_ms=node.now_ms)
    node.settle()
    errors = [answer.error.name for answer in answers]
    assert errors == ["NONE", "INVALID_PARTITIONS", "INVALID_PARTITIONS", "NONE"]
    assert sorted(node.broker.image.topics["t"].partitions) == [0, 1, 2, 3, 4]


def test_a_topic_that_is_being_deleted_gets_no_partitions() -> None:
    """Or its records would be behind the one that removes it, and no start would understand them."""
    node = Node()
    node.create("t", 1)
    answers: list[Any] = []
    node.broker.topics.delete(["t"], [], answers.extend, now_ms=node.now_ms)
    create_partitions(node.broker, [MorePartitions("t", 2)], answers.extend, now_ms=node.now_ms)
    node.settle()
    assert [answer.error for answer in answers] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    node.restart()
    assert "t" not in node.broker.image.topics


def test_partitions_that_are_being_created_are_deleted_with_their_topic() -> None:
    node = Node()
    node.create("t", 1)
    answers: list[Any] = []
    create_partitions(node.broker, [MorePartitions("t", 3)], answers.extend, now_ms=node.now_ms)
    node.broker.topics.delete(["t"], [], answers.extend, now_ms=node.now_ms)
    node.settle()
    assert [answer.error for answer in answers] == [ErrorCode.NONE, ErrorCode.NONE]
    assert not node.broker.logs


def test_a_directory_that_cannot_be_made_is_made_later(caplog: pytest.LogCaptureFixture) -> None:
    plan = FaultPlan(call="make_directory")
    node = Node(FaultyFiles(MemoryFiles(), plan))
    node.create("t", 1)
    plan.fails = plan.counted + 1
    assert enlarge(node, 2).error == ErrorCode.KAFKA_STORAGE_ERROR
    assert sorted(node.broker.image.topics["t"].partitions) == [0, 1]
    assert node.append(batch_of(b"a"), 1).error == ErrorCode.KAFKA_STORAGE_ERROR
    for _ in range(3):
        node.wait(1_000)
    assert node.append(batch_of(b"a"), 1).error == ErrorCode.NONE
    assert TopicPartition("t", 1) in node.broker.logs
    assert not caplog.records


def test_directories_that_cannot_be_made_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    plan = FaultPlan(call="make_directory")
    node = Node(FaultyFiles(MemoryFiles(), plan))
    node.create("t", 1)
    plan.__init__(fails=1, call="make_directory", for_ever=True)  # type: ignore[misc]
    assert enlarge(node, 2).error == ErrorCode.KAFKA_STORAGE_ERROR
    for _ in range(5):
        node.wait(1_000)
    assert ["without a directory" in each.getMessage() for each in caplog.records] == [True]

"""More partitions: in the registry first, then on the disk; with other changes of the topic under way."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from tests.unit.broker.node import Node, Producer, batch_of
from txnkafka.broker.requests import NewTopic
from txnkafka.broker.topics.partition_creation import EnlargedTopic, MorePartitions, create_partitions
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles


def enlarge(node: Node, count: int, name: str = "t") -> EnlargedTopic:
    (result,) = node.call(lambda reply: create_partitions(node.broker, [MorePartitions(name, count)], reply))
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
        results = node.call(lambda reply: create_partitions(node.broker, wanted, reply, validate_only=True))
        errors = [each.error.name for each in results]
        assert errors == ["NONE", "POLICY_VIOLATION", "NONE", "POLICY_VIOLATION"]


def test_requests_at_once_are_decided_one_after_the_other() -> None:
    node = Node()
    node.create("t", 1)
    answers: list[Any] = []
    for count in (3, 3, 2, 5):
        node.request(create_partitions, node.broker, [MorePartitions("t", count)], answers.extend)
    node.settle()
    errors = [answer.error.name for answer in answers]
    assert errors == ["NONE", "INVALID_PARTITIONS", "INVALID_PARTITIONS", "NONE"]
    assert sorted(node.broker.image.topics["t"].partitions) == [0, 1, 2, 3, 4]


def test_a_topic_that_is_being_deleted_gets_no_partitions() -> None:
    """Or its records would be behind the one that removes it, and no start would understand them."""
    node = Node()
    node.create("t", 1)
    answers: list[Any] = []
    node.request(node.broker.topics.delete, ["t"], [], answers.extend)
    node.request(create_partitions, node.broker, [MorePartitions("t", 2)], answers.extend)
    node.settle()
    assert [answer.error for answer in answers] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    node.restart()
    assert "t" not in node.broker.image.topics


def test_partitions_that_are_being_created_are_deleted_with_their_topic() -> None:
    node = Node()
    node.create("t", 1)
    answers: list[Any] = []
    node.request(create_partitions, node.broker, [MorePartitions("t", 3)], answers.extend)
    node.request(node.broker.topics.delete, ["t"], [], answers.extend)
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


def test_the_retry_of_missing_partitions_leaves_a_topic_in_creation_alone() -> None:
    plan = FaultPlan(call="make_directory")
    node = Node(FaultyFiles(MemoryFiles(), plan))
    node.create("t", 1)
    plan.fails = plan.counted + 1
    assert enlarge(node, 2).error == ErrorCode.KAFKA_STORAGE_ERROR
    node.broker.advance(node.now_ms)
    node.now_ms += 1_000
    node.broker.advance(node.now_ms)  # the retry is due, and waits for its turn
    answers: list[Any] = []
    node.request(node.broker.topics.create, [NewTopic("u", 1)], answers.append)
    flush = node.broker.begin_flush()
    assert flush is not None
    node.broker.finish_flush(flush, flush.run(), now_ms=node.now_ms)
    assert "u" in node.broker.image.topics
    work = node.broker.begin_work()
    assert work is not None
    work.run()
    node.broker.finish_work(work, None, now_ms=node.now_ms)
    assert sorted(node.broker.logs) == [TopicPartition("t", 0), TopicPartition("t", 1)]
    node.settle()
    assert answers[0][0].error == ErrorCode.NONE
    assert TopicPartition("u", 0) in node.broker.logs


class Failing:
    """Files of which none below ``directory`` can be created or removed, when ``calls`` have succeeded."""

    def __init__(self, directory: str) -> None:
        self._files, self._directory = MemoryFiles(), directory
        self.calls = 1 << 30

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def create(self, path: str) -> Any:
        self._check(path)
        return self._files.create(path)

    def rename(self, source: str, target: str) -> None:
        self._check(source)
        self._files.rename(source, target)

    def remove(self, path: str) -> None:
        self._check(path)
        self._files.remove(path)

    def _check(self, path: str) -> None:
        if path.startswith(self._directory):
            self.calls -= 1
            if self.calls < 0:
                raise OSError(errno.EIO, "the disk failed", path)


@pytest.mark.parametrize("calls", range(3))
def test_what_could_not_be_removed_when_a_creation_failed_is_used_later(calls: int) -> None:
    """Else the partition, and all others without a directory, would wait for the next start."""
    files = Failing("/data/t-0")
    node = Node(files)  # type: ignore[arg-type]
    files.calls = calls
    assert node.create("t", 1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert files.is_directory("/data/t-0")
    files.calls = 1 << 30
    for _ in range(3):
        node.wait(1_000)
    assert node.append(batch_of(b"a")).error == ErrorCode.NONE
    node.restart()
    assert node.values() == [b"a"]
    assert not node.broker.data.repairs


def test_a_directory_with_records_that_nobody_knows_is_in_the_way() -> None:
    """Somebody has copied it there while the broker runs."""
    node = Node()
    node.files.make_directory("/data/t-0")
    file = node.files.create("/data/t-0/00000000000000000000.log")
    file.write(0, [batch_of(b"a")])
    file.close()
    assert node.create("t", 1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.files.read("/data/t-0/00000000000000000000.log", 1_000) == bytes(batch_of(b"a"))


def test_directories_that_cannot_be_made_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    plan = FaultPlan(call="make_directory")
    node = Node(FaultyFiles(MemoryFiles(), plan))
    node.create("t", 1)
    plan.__init__(fails=1, call="make_directory", for_ever=True)  # type: ignore[misc]
    assert enlarge(node, 2).error == ErrorCode.KAFKA_STORAGE_ERROR
    for _ in range(5):
        node.wait(1_000)
    assert ["without a directory" in each.getMessage() for each in caplog.records] == [True]

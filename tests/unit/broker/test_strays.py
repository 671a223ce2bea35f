"""No topic begins with the files of another one: of one that is being deleted, could not be deleted, or that
the registry never had."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.broker.node import NOW, Node, Producer, batch_of
from txnkafka._core.encode import encode_batch
from txnkafka.broker.requests import NewTopic, ProduceRequest
from txnkafka.broker.topics.partition_creation import MorePartitions, create_partitions
from txnkafka.env import DataFiles
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.storage.partition_work import Creation
from txnkafka.testing.memory_files import MemoryFiles

NONE = ErrorCode.NONE
FIRST = TopicPartition("t", 0)


class NoRename:
    """Files of which no directory can be renamed to a name that ends so."""

    def __init__(self, files: DataFiles, suffix: str) -> None:
        self._files, self._suffix = files, suffix

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def rename(self, source: str, target: str) -> None:
        if target.endswith(self._suffix):
            raise OSError(errno.EIO, "the disk failed", source)
        self._files.rename(source, target)


class NoDirectory:
    """Files among which no directory can be made."""

    def __init__(self, files: DataFiles) -> None:
        self._files = files

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def make_directory(self, path: str) -> None:
        raise OSError(errno.ENOSPC, "the disk is full", path)


class SlowWork:
    """Work that takes as long as a test wants."""

    def run(self) -> None: ...

    def finish(self, error: Exception | None) -> None: ...


def flush(node: Node) -> None:
    while (group := node.broker.begin_flush()) is not None:
        node.broker.finish_flush(group, group.run(), now_ms=node.now_ms)


def delete(node: Node) -> ErrorCode:
    (deleted,) = node.call(node.broker.topics.delete, ["t"], [])
    error: ErrorCode = deleted.error
    return error


def not_deleted() -> Node:
    """Its directory could not be renamed when its topic was deleted."""
    node = Node()
    node.create()
    node.append(batch_of(b"old"))
    node.broker.data.files = NoRename(node.files, "-delete")  # type: ignore[assignment]
    assert delete(node) == NONE
    node.broker.data.files = node.files
    return node


def never_registered() -> Node:
    """Its metadata log is another one, from before the topic."""
    stranger = Node()
    stranger.create()
    stranger.append(batch_of(b"old"))
    return beside_another_registry(stranger)


def beside_another_registry(stranger: Node, *, is_clean: bool = True, **configs: Any) -> Node:
    """A broker with the topic ``u``, in whose directory are the files of t-0 of another one."""
    stranger.close()
    registered = Node()
    registered.create("u")
    registered.close()
    files = registered.files
    if not is_clean:
        files.remove("/data/.kafka_cleanshutdown")
    files.make_directory("/data/t-0")
    for entry in stranger.files.list("/data/t-0"):
        copied = files.create(f"/data/t-0/{entry.name}")
        copied.write(0, [stranger.files.read(f"/data/t-0/{entry.name}", 1 << 20)])
        copied.close()
    return Node(files, **configs)


def contents(node: Node) -> dict[str, bytes]:
    """The files of t-0."""
    paths = {entry.name: f"/data/t-0/{entry.name}" for entry in node.files.list("/data/t-0")}
    return {name: node.files.read(path, 1 << 20) for name, path in paths.items()}


def damaged() -> Node:
    """Its log is refused, and its topic deleted after that."""
    node = Node()
    node.create()
    node.append(batch_of(b"old"))
    node.close()
    node.files.open_to_write("/data/t-0/00000000000000000000.log").truncate(20)
    node = Node(node.files)
    assert list(node.broker.data.refused) == [FIRST]
    assert delete(node) == NONE
    return node


@pytest.mark.parametrize("story", [not_deleted, never_registered, damaged])
def test_a_topic_begins_empty_and_keeps_what_it_gets(story: Callable[[], Node]) -> None:
    node = story()
    assert node.create() == NONE
    assert node.values() == []
    assert node.append(batch_of(b"new")).error == NONE
    node.restart()
    assert node.values() == [b"new"]


def test_what_was_in_the_way_is_kept() -> None:
    node = never_registered()
    assert node.create() == NONE
    (stray,) = [each.name for each in node.files.list("/data") if each.name.endswith("-stray")]
    assert b"old" in node.files.read(f"/data/{stray}/00000000000000000000.log", 1 << 20)


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_what_the_registry_does_not_have_is_not_cleaned_up(policy: str) -> None:
    """The settings of the broker say nothing of it: retention must not take what nobody can read."""
    stranger = Node()
    stranger.create(segment_bytes="300")
    for _ in range(4):
        stranger.append(memoryview(encode_batch([(b"key", b"old" * 70, NOW)])))
    defaults = {"cleanup.policy": policy, "min.cleanable.dirty.ratio": "0.01"}
    node = beside_another_registry(stranger, topic_defaults=defaults)
    assert len(node.broker.logs[FIRST].segments) == 4
    before = contents(node)
    for _ in range(3):
        node.wait(30 * 86_400_000)
    assert contents(node) == before


def test_a_transaction_that_is_open_in_what_the_registry_does_not_have() -> None:
    """It stays open, and nobody waits for its end before recovery points are written."""
    stranger = Node()
    stranger.create()
    assert Producer(stranger).send(b"old") == [NONE]
    node = beside_another_registry(stranger, is_clean=False)
    node.produce({TopicPartition("u", 0): batch_of(b"new")})
    node.wait(60_000)
    assert b"u 0 1" in node.files.read("/data/recovery-point-offset-checkpoint", 1 << 20)
    assert node.broker.logs[FIRST].log_end_offset == 1


def test_the_files_of_a_refused_partition_are_deleted_with_its_topic() -> None:
    node = damaged()
    assert [each.name for each in node.files.list("/data") if each.name.startswith("t-0")] == []
    assert not node.broker.data.refused


def test_what_cannot_be_set_aside_keeps_a_topic_from_being_registered() -> None:
    node = never_registered()
    node.broker.data.files = NoRename(node.files, "-stray")  # type: ignore[assignment]
    assert node.create() == ErrorCode.KAFKA_STORAGE_ERROR
    assert set(node.broker.image.topics) == {"u"}
    node.broker.data.files = node.files
    assert node.create() == NONE
    node.restart()
    assert node.values() == []


def test_a_partition_that_is_added_begins_empty() -> None:
    node = Node()
    node.create("t", 2)
    node.append(batch_of(b"old"), 1)
    node.close()
    source = node.files
    node = Node(MemoryFiles())
    node.create("t", 1)
    node.close()
    node.files.make_directory("/data/t-1")
    for entry in source.list("/data/t-1"):
        copied = node.files.create(f"/data/t-1/{entry.name}")
        copied.write(0, [source.read(f"/data/t-1/{entry.name}", 1 << 20)])
        copied.close()
    node = Node(node.files)
    (enlarged,) = node.call(
        lambda *arguments, **named: create_partitions(node.broker, *arguments, **named),
        [MorePartitions("t", 2)],
    )
    assert enlarged.error == NONE
    assert node.values(1) == []
    assert node.append(batch_of(b"new"), 1).error == NONE
    node.restart()
    assert node.values(1) == [b"new"]


def test_a_topic_that_is_created_while_the_last_one_is_deleted() -> None:
    """Its files are there as long as other work is under way."""
    node = Node()
    node.create()
    node.append(batch_of(b"old"))
    broker, answers = node.broker, list[Any]()
    slow = SlowWork()
    broker.jobs.add(lambda: slow, lambda _: None)
    assert broker.begin_work() is slow
    broker.call(broker.topics.delete, ["t"], [], answers.append, now_ms=node.now_ms)
    flush(node)
    broker.call(broker.topics.create, [NewTopic("t", 1)], answers.append, now_ms=node.now_ms)
    flush(node)
    produced: list[Any] = []
    request = ProduceRequest({FIRST: batch_of(b"new")})
    broker.call(broker.produce, request, produced.append, now_ms=node.now_ms)
    flush(node)
    assert [each[FIRST].error for each in produced] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    broker.finish_work(slow, None, now_ms=node.now_ms)
    node.settle()
    assert [each[0].error for each in answers] == [NONE, NONE]
    assert node.values() == []


def test_a_topic_that_is_created_while_directories_of_the_last_one_are_made() -> None:
    """The disk was full when the last one was created. Its directories are made after all, while it is
    deleted and another one of its name is created: what that acknowledges must not go with them."""
    node = Node()
    broker = node.broker
    files = NoDirectory(node.files)
    broker.data.files = files  # type: ignore[assignment]
    assert node.create("t", 3) == ErrorCode.KAFKA_STORAGE_ERROR
    broker.data.files = node.files
    answers: list[Any] = []
    for _ in range(2):  # a second after it was seen to have failed
        broker.advance(node.now_ms)
        node.now_ms += 1_000
    late = broker.begin_work()
    assert isinstance(late, Creation)
    broker.call(broker.topics.delete, ["t"], [], answers.append, now_ms=node.now_ms)
    flush(node)
    broker.call(broker.topics.create, [NewTopic("t", 3)], answers.append, now_ms=node.now_ms)
    flush(node)
    acknowledged: list[bytes] = []

    def send(value: bytes) -> None:
        def reply(results: Any) -> None:
            if results[TopicPartition("t", 2)].error == NONE:
                acknowledged.append(value)

        request = ProduceRequest({TopicPartition("t", 2): batch_of(value)})
        broker.call(broker.produce, request, reply, now_ms=node.now_ms)
        flush(node)

    work: Any = late
    while work is not None:
        work.run()
        broker.finish_work(work, None, now_ms=node.now_ms)
        send(b"%d" % len(acknowledged))
        flush(node)
        work = broker.begin_work()
    assert [each[0].error for each in answers] == [NONE, NONE]
    assert acknowledged
    assert node.values(2) == acknowledged

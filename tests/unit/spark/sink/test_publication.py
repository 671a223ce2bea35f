"""Publication to an embedded broker: one transaction for each batch, whatever fails and is repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import EXAMPLES
from tests.unit.spark.sink.sinks import (
    FEW,
    QUERY,
    broker,
    committed,
    create_topics,
    publish_batch,
    sink,
    staged,
)
from txnkafka import Broker, Producer, TopicPartition
from txnkafka.client.offsets import OffsetAndMetadata
from txnkafka.env import LocalDataFiles, remove_tree, unique_name
from txnkafka.env.memory_directory import memory_directory
from txnkafka.errors import (
    KafkaError,
    KafkaStorageError,
    LogDirError,
    ProducerFencedError,
    UnknownTopicOrPartitionError,
)
from txnkafka.spark.sink.decision import BatchId, BatchRefusedError, Publication, Verdict
from txnkafka.spark.sink.publication import group_of, newest, publish
from txnkafka.spark.sink.target import BROKER_SETTINGS
from txnkafka.testing.broker_faults import advance
from txnkafka.testing.movable_clock import MovableClock

SHORT = {"request.timeout": "300", "delivery.timeout": "400", "max.block": "500"}
DAY_MS = 86_400_000
A, B, C = ([f"{name}{number}" for number in range(20)] for name in "abc")


@pytest.fixture
def target() -> Iterator[Broker]:
    with broker() as opened:
        yield opened


def test_a_batch_is_there_once(target: Broker, tmp_path: Path) -> None:
    options = sink(tmp_path)
    tasks = [staged(options, A[:10]), staged(options, []), staged(options, A[10:])]
    assert publish_batch(target, options, 0, tasks) is Verdict.PUBLISH
    assert publish_batch(target, options, 0, tasks) is Verdict.SKIP
    assert publish_batch(target, options, 0, tasks, run="later") is Verdict.REGISTER
    assert publish_batch(target, options, 0, tasks, run="later") is Verdict.SKIP
    assert publish_batch(target, options, 1, [staged(options, B)], run="later") is Verdict.PUBLISH
    assert committed(target) == sorted(A + B)


def test_rows_stay_in_the_order_of_tasks(target: Broker, tmp_path: Path) -> None:
    options = sink(tmp_path, topic="out")
    publish_batch(
        target, options, 0, [staged(options, ["a"]), staged(options, ["b"]), staged(options, ["a"])]
    )
    with target.consumer("out", consumer_timeout_ms=200) as consumer:
        found = [(record.partition, record.value) for record in consumer]
    assert sorted(value for _, value in found) == [b"a", b"a", b"b"]


@pytest.mark.parametrize(
    ("number", "run", "query", "text"),
    [
        (0, "new", QUERY, "batch 1 was published, so its rows may be there already"),
        (2, "old", QUERY, r"a later start of the same query \(run new\)"),
        (2, "new", "another", "was published by query 3f0c8c46"),
    ],
)
def test_a_refused_batch_writes_nothing(
    target: Broker, tmp_path: Path, number: int, run: str, query: str, text: str
) -> None:
    options = sink(tmp_path)
    publish_batch(target, options, 0, [staged(options, A)], run="old")
    publish_batch(target, options, 1, [staged(options, B)], run="new")
    with pytest.raises(BatchRefusedError, match=text):
        publish_batch(target, options, number, [staged(options, C)], run=run, query=query)
    assert committed(target) == sorted(A + B)


def test_the_offset_of_each_topic_may_be_of_another_batch() -> None:
    offsets = {
        TopicPartition(topic, 0): OffsetAndMetadata(number + 1, Publication(number, QUERY).to_text())
        for topic, number in {"a": 3, "b": 7, "c": 5}.items()
    }
    found = newest("group", offsets)
    assert found is not None
    assert (found.partition.topic, found.publication.number) == ("b", 7)


def test_batches_of_different_topics(target: Broker, tmp_path: Path) -> None:
    options = sink(tmp_path)
    for number, topic in enumerate(["out", "other", "out", "other"]):
        publish_batch(target, options, number, [staged(options, [A[number]], [topic])])
    assert publish_batch(target, options, 3, [staged(options, B)]) is Verdict.SKIP
    with pytest.raises(BatchRefusedError):
        publish_batch(target, options, 2, [staged(options, B)])
    assert committed(target) == A[:4]


def test_offsets_of_another_program(target: Broker, tmp_path: Path) -> None:
    options = sink(tmp_path)
    with target.admin() as admin:
        admin.alter_group_offsets(group_of("job"), {TopicPartition("out", 0): 7})
    with pytest.raises(KafkaError, match="has an offset of another program for out-0"):
        publish_batch(target, options, 0, [staged(options, A)])
    assert committed(target) == []


def test_a_write_without_an_id_is_one_transaction(target: Broker, tmp_path: Path) -> None:
    options = sink(tmp_path)._replace(transactional_id=None)
    for values in (A, A):
        assert publish(target, options, None, [staged(options, values)], LocalDataFiles()) is Verdict.PUBLISH
    assert committed(target) == sorted(A + A)


def test_a_staged_file_is_gone(target: Broker, tmp_path: Path) -> None:
    options = sink(tmp_path)
    first, second = staged(options, A), staged(options, B)
    Path(second.path or "").unlink()
    with pytest.raises(LogDirError, match="stagingPath must be the same directory on all machines"):
        publish_batch(target, options, 0, [first, second])
    assert committed(target) == []
    assert publish_batch(target, options, 0, [first, staged(options, B)]) is Verdict.PUBLISH
    assert committed(target) == sorted(A + B)


@pytest.mark.parametrize("damage", ["flipped", "cut"])
def test_a_staged_file_is_damaged(target: Broker, tmp_path: Path, damage: str) -> None:
    """The broker would refuse it, but only after all repetitions."""
    options = sink(tmp_path, **{f"kafka.{name}.ms": ms for name, ms in SHORT.items()})
    task = staged(options, A)
    path = Path(task.path or "")
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[content.index(b"a7")] ^= 1
    path.write_bytes(content if damage == "flipped" else content[:-1])
    with pytest.raises(KafkaStorageError, match="is damaged at position"):
        publish_batch(target, options, 0, [task])
    assert committed(target) == []


def test_a_partition_that_was_there_at_the_plan(target: Broker, tmp_path: Path) -> None:
    options = sink(tmp_path, **{"kafka.max.block.ms": "200"})
    task = staged(options, A)
    moved = replace(task, batches=tuple(each._replace(partition=9) for each in task.batches))
    with pytest.raises(UnknownTopicOrPartitionError, match="has no partition 9"):
        publish_batch(target, options, 0, [moved])
    assert committed(target) == []


class CrashError(Exception):
    """The process dies here."""


STEPS = (
    "init_transactions",
    "begin_transaction",
    "send_batch",
    "send_offsets_to_transaction",
    "commit_transaction",
)
AFTER = "after commit_transaction"


class Dying(Producer):
    """A producer whose process dies before the ``left``-th call of a method, or after the commit; nothing is
    closed or aborted then."""

    step, left = "", 1

    def abort_transaction(self) -> None:
        """Do nothing: the process is dead."""

    def close(self, timeout: float | None = None) -> None:
        """Do nothing: the process is dead."""


def _dying(name: str) -> Callable[..., object]:
    original = getattr(Producer, name)

    def call(self: Dying, *arguments: object) -> object:
        self.left -= self.step == name
        if not self.left:
            raise CrashError
        result = original(self, *arguments)
        if self.step == f"after {name}":
            raise CrashError
        return result

    return call


for _name in STEPS:
    setattr(Dying, _name, _dying(_name))


class DyingTarget:
    """The clients of a process that dies at a step."""

    def __init__(self, broker: Broker, step: str, count: int) -> None:
        self._broker, self._step, self._count = broker, step, count

    def producer(self, **settings: Any) -> Producer:
        made = Dying(settings, transport=self._broker._transport)
        made.step, made.left = self._step, self._count
        return made

    def admin(self, **settings: Any) -> Any:
        return self._broker.admin(**settings)


@settings(max_examples=max(5, EXAMPLES // 4))
@given(st.data())
def test_every_batch_is_there_once_whatever_crashes(data: st.DataObject) -> None:
    """A process dies at any step; its successor, or the same process again, repeats the batch, whose rows may
    differ."""
    folder = Path(memory_directory())
    try:
        with broker() as opened:
            options = sink(folder)
            expected: list[str] = []
            for number in range(data.draw(st.integers(1, 4), "batches")):
                rows = publish_until_done(opened, options, number, data)
                expected += rows
                assert committed(opened) == sorted(expected)
    finally:
        remove_tree(LocalDataFiles(), str(folder))


def publish_until_done(opened: Broker, options: Any, number: int, data: st.DataObject) -> list[str]:
    """Return the rows of the attempt that counts."""
    rows: list[str] = []
    while True:
        run = unique_name()
        attempt = [f"{number} {row} {run}" for row in range(4)]
        task = staged(options, attempt)
        step = data.draw(st.sampled_from(["", *STEPS, AFTER]), "step")
        count = data.draw(st.integers(1, 2), "count")
        before = len(committed(opened))
        try:
            if not step:
                publish_batch(opened, options, number, [task], run=run)
            else:
                batch = BatchId(number, QUERY, run)
                publish(DyingTarget(opened, step, count), options, batch, [task], LocalDataFiles())
        except CrashError:
            pass
        else:
            step = ""
        after = len(committed(opened))
        assert after - before in (0, 4)
        if after > before:
            assert not rows
            rows = attempt
        if not step:
            assert rows
            return rows


def test_the_later_of_two_publications_at_a_time_fences_the_other(target: Broker, tmp_path: Path) -> None:
    """The first driver has read the last id, when the second one publishes."""
    options = sink(tmp_path)
    publish_batch(target, options, 0, [staged(options, A)], run="first")

    class Slow(DyingTarget):
        def producer(self, **settings: Any) -> Producer:
            made = self._broker.producer(**settings)
            original = made.send_offsets_to_transaction

            def send_offsets(*arguments: Any) -> None:
                publish_batch(target, options, 1, [staged(options, C)], run="second")
                original(*arguments)

            made.send_offsets_to_transaction = send_offsets  # type: ignore[method-assign]
            return made

    slow = Slow(target, "", 0)
    with pytest.raises(ProducerFencedError):
        publish(slow, options, BatchId(1, QUERY, "first"), [staged(options, B)], LocalDataFiles())
    assert committed(target) == sorted(A + C)
    with pytest.raises(BatchRefusedError, match=r"a later start of the same query \(run second\)"):
        publish_batch(target, options, 1, [staged(options, B)], run="first")


@pytest.mark.parametrize("is_decided", [False, True])
def test_a_restart_after_a_long_time(tmp_path: Path, is_decided: bool) -> None:
    """The transaction has timed out. The sink's broker expires neither its offset nor its records."""
    options, clock = sink(tmp_path), MovableClock()
    settings = {**FEW, **BROKER_SETTINGS}
    with Broker._open(tmp_path / "data", LocalDataFiles(), clock, "page_cache", settings) as opened:
        create_topics(opened)
        clients = DyingTarget(opened, AFTER if is_decided else "commit_transaction", 1)
        with pytest.raises(CrashError):
            publish(clients, options, BatchId(0, QUERY, "first"), [staged(options, A)], LocalDataFiles())
        for _ in range(3):
            advance(opened, clock, 100 * DAY_MS)
        assert committed(opened) == (sorted(A) if is_decided else [])
        verdict = publish_batch(opened, options, 0, [staged(options, A)], run="second")
        assert verdict is (Verdict.REGISTER if is_decided else Verdict.PUBLISH)
        assert committed(opened) == sorted(A)

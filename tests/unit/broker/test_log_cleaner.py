"""Compaction of a running broker: what is obsolete goes, and nobody notices."""

from __future__ import annotations

import errno
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.broker.node import NOW, Node, Producer
from txnkafka import LogDir
from txnkafka._core.encode import encode_batch
from txnkafka.broker.requests import ProduceRequest
from txnkafka.coordinator import TRANSACTION_STATE_TOPIC
from txnkafka.env import DataFiles, LocalDataFiles
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import FlushUnderWayError, KafkaError
from txnkafka.logdir.verify.report import verify
from txnkafka.model import TopicPartition
from txnkafka.storage.cleaner import cleaner_pass
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles

T0 = TopicPartition("t", 0)
TOPIC_ID = "AAAAAAAAAAEAAAAAAAAAAg"
BACKOFF_MS = 15_000
COMPACT = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01"}


def keyed(key: bytes, value: bytes | None, **fields: Any) -> memoryview:
    return memoryview(encode_batch([(key, value, NOW)], **fields))


def filled(node: Node, *, rounds: int = 3, keys: int = 3, **configs: str) -> PartitionLog:
    """A compacted topic whose segments have one batch of each key."""
    size = str(keys * len(keyed(b"k0", b"k00")))
    assert node.create(**{**COMPACT, "segment_bytes": size, **configs}) == ErrorCode.NONE
    for number in range(rounds):
        for key in range(keys):
            assert node.append(keyed(b"k%d" % key, b"k%d%d" % (key, number))).error == ErrorCode.NONE
    return node.broker.logs[T0]


def append_between(node: Node, key: bytes, value: bytes) -> None:
    """An append and the flush that acknowledges it; no other work is run."""
    results: list[Any] = []
    request = ProduceRequest({T0: keyed(key, value)})
    node.request(node.broker.produce, request, results.append)
    while (flush := node.broker.begin_flush()) is not None:
        node.broker.finish_flush(flush, flush.run(), now_ms=node.now_ms)
    assert results[0][T0].error == ErrorCode.NONE


def pieces(node: Node) -> Iterator[int]:
    """Begin a compaction, and run it piece by piece; the number of each, behind it."""
    node.now_ms += BACKOFF_MS
    node.broker.advance(node.now_ms)
    number = 0
    while True:
        flush = node.broker.begin_flush()
        if flush is not None:
            node.broker.finish_flush(flush, flush.run(), now_ms=node.now_ms)
        work = node.broker.begin_work()
        if work is None:
            return
        error = None
        try:
            work.run()
        except (OSError, KafkaError) as raised:
            error = raised
        node.broker.finish_work(work, error, now_ms=node.now_ms)
        number += 1
        yield number


def names(node: Node) -> list[str]:
    return [entry.name for entry in node.files.list("/data/t-0")]


def test_a_compacted_topic_is_compacted_while_the_broker_runs() -> None:
    node = Node()
    log = filled(node)
    assert len(node.values()) == 9
    node.wait(BACKOFF_MS - 1)
    assert len(node.values()) == 9
    node.wait(1)
    active = [b"k02", b"k12", b"k22"]
    assert node.values() == [b"k01", b"k11", b"k21", *active], "the active segment stays as it is"
    assert [each.base_offset for each in log.segments] == [0, 3, 6]
    assert log.segments[0].size < log.segments[1].size
    assert node.broker.data.checkpoints.cleaner_offsets == {T0: 6}
    node.restart()
    assert node.broker.data.checkpoints.cleaner_offsets == {T0: 6}
    assert not node.broker.data.repairs


def test_a_compaction_that_is_not_wanted() -> None:
    node = Node(log_cleaner_enable=False)
    filled(node)
    node.wait(100 * BACKOFF_MS)
    assert len(node.values()) == 9


def test_a_log_is_compacted_when_it_is_dirty_enough_and_old_enough() -> None:
    node = Node()
    filled(node, min_cleanable_dirty_ratio="0.5", min_compaction_lag_ms="60000")
    node.wait(BACKOFF_MS)
    assert len(node.values()) == 9
    node.wait(60_000)
    assert len(node.values()) == 6
    for key in range(3):
        node.append(keyed(b"k%d" % key, b"3"))
    node.wait(10 * BACKOFF_MS)
    assert len(node.values()) == 9, "three of nine are dirty"


def test_a_tombstone_goes_when_its_time_is_over() -> None:
    node = Node()
    filled(node, rounds=1, keys=1, delete_retention_ms="100000")
    node.append(keyed(b"k0", None))
    for value in (b"k11", b"k12"):
        node.append(keyed(b"k1", value))
        node.wait(BACKOFF_MS)
    assert node.values() == [None, b"k11", b"k12"], "it stays for as long as a reader may need it"
    node.wait(100_000)
    for value in (b"k13", b"k14", b"k15"):
        node.append(keyed(b"k1", value))
        node.wait(BACKOFF_MS)
    assert None not in node.values()


def test_the_log_of_the_coordinator_is_compacted() -> None:
    node = Node(transaction_state_log_num_partitions=1, transaction_state_log_segment_bytes=1500)
    node.create()
    producer = Producer(node)
    for number in range(30):
        assert producer.send(b"%d" % number) == [ErrorCode.NONE]
        assert producer.end() == ErrorCode.NONE
    log = node.broker.logs[TopicPartition(TRANSACTION_STATE_TOPIC, 0)]
    before = sum(segment.size for segment in log.segments)
    node.wait(BACKOFF_MS)
    assert sum(segment.size for segment in log.segments) < before / 2
    node.restart()
    identity = producer.identity
    assert producer.init().producer_id == identity.producer_id
    assert producer.send_and_commit(b"last", 0) == ErrorCode.NONE
    assert node.values() == [b"%d" % number for number in range(30)] + [b"last"]


def view(node: Node) -> dict[bytes, int]:
    """The last number of each key, of values that begin with their key."""
    values = node.values(offset=node.broker.logs[T0].log_start_offset)
    return {value[:2]: int(value[2:]) for value in values if value}


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step is a piece."""
    monkeypatch.setattr(cleaner_pass, "PIECE_COST", 1)


@pytest.mark.slow
@pytest.mark.usefixtures("small_pieces")
def test_requests_are_served_between_all_pieces() -> None:
    node = Node()
    log = filled(node, rounds=6)
    held = node.fetch(0)
    assert held.records is not None
    before = bytes(held.records.read())
    expected = {b"k0": 0, b"k1": 0}
    count = 0
    for count in pieces(node):
        for key in expected:
            expected[key] = count
            append_between(node, key, b"%s%d" % (key, count))
        assert expected.items() <= view(node).items()
        if count == 200:  # what is appended is compacted in its turn
            break
    assert count > 20
    assert log.segments[0].size < len(before)
    with held.records as records:  # its file was replaced and is not closed
        assert bytes(records.read()) == before, "what a fetch holds stays readable"
    node.restart()
    assert expected.items() <= view(node).items()


@pytest.mark.slow
@pytest.mark.usefixtures("small_pieces")
def test_a_broker_stops_between_two_pieces_unless_segments_are_being_replaced() -> None:
    node = Node()
    filled(node, rounds=4)
    count = len(list(pieces(node)))
    stopped = 0
    for number in range(1, count):
        node = Node()
        filled(node, rounds=4)
        before = view(node)
        running = pieces(node)
        assert [next(running) for _ in range(number)][-1] == number
        if not node.broker.is_idle:
            with pytest.raises(FlushUnderWayError):
                node.broker.close()
            continue
        stopped += 1
        node.restart()
        assert not [name for name in names(node) if name.endswith((".cleaned", ".swap"))]
        assert not node.broker.data.repairs
        assert view(node) == before
    assert 0 < stopped < count - 1


@pytest.mark.slow
@pytest.mark.usefixtures("small_pieces")
def test_a_broker_that_is_only_dropped_changes_nothing_when_it_is_collected() -> None:
    """The directory may have another owner by then, which compacts the same segment."""
    node = Node()
    filled(node, rounds=4)
    count = len(list(pieces(node)))
    rewritten = 0
    for number in range(1, count):
        node = Node()
        filled(node, rounds=4)
        running = pieces(node)
        for _ in range(number):
            next(running)
        before, files = names(node), node.files
        rewritten += any(name.endswith(".cleaned") for name in before)
        running.close()
        del node, running
        gc.collect()
        assert [entry.name for entry in files.list("/data/t-0")] == before
    assert rewritten > 3


@pytest.mark.slow
@pytest.mark.usefixtures("small_pieces")
def test_a_topic_may_be_deleted_and_created_again_between_any_two_pieces() -> None:
    number = 0
    while True:
        node = Node()
        filled(node, rounds=4)
        running = pieces(node)
        number += 1
        if [None for _, _ in zip(range(number), running, strict=False)] != [None] * number:
            break
        node.call(node.broker.topics.delete, ["t"], [])
        filled(node, rounds=2, keys=2)
        found, before = names(node), node.values()
        for _ in running:
            assert node.values() == before
        assert names(node) == found
        assert node.broker.is_idle
    assert number > 20


@pytest.mark.usefixtures("small_pieces")
def test_where_a_compaction_ended_is_not_noted_for_a_new_topic_of_the_same_name() -> None:
    """The old topic goes after the last piece of the pass, before the pass learns that it is over."""
    node = Node()
    filled(node)
    count = len(list(pieces(node)))
    assert node.broker.data.checkpoints.cleaner_offsets[T0] > 0
    noted = []
    for number in range(count - 8, count):
        node = Node()
        filled(node)
        for _ in zip(range(number + 1), pieces(node), strict=False):
            pass
        node.broker.manager.delete(T0)
        node.broker.manager.create(T0, TOPIC_ID, now_ms=node.now_ms)
        node.settle()
        noted.append(node.broker.data.checkpoints.cleaner_offsets.get(T0))
    assert noted == [None] * 8


@pytest.mark.usefixtures("small_pieces")
def test_retention_may_delete_what_is_being_compacted() -> None:
    for number in range(1, 40, 3):
        node = Node(log_retention_check_interval_ms=BACKOFF_MS + 1)
        log = filled(node, rounds=6, cleanup_policy="compact,delete", retention_bytes="600")
        running = pieces(node)
        assert len([None for _, _ in zip(range(number), running, strict=False)]) == number
        node.wait(1)  # retention, and the pieces that are left
        assert log.log_start_offset > 0
        assert view(node) == {b"k0": 5, b"k1": 5, b"k2": 5}
        assert not node.broker.manager.uncleanable
        node.wait(BACKOFF_MS)
        node.restart()
        assert view(node) == {b"k0": 5, b"k1": 5, b"k2": 5}


def test_a_damaged_log_is_left_alone_and_the_others_are_compacted(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    log = filled(node)
    node.create("u", **COMPACT, segment_bytes="100")
    other = TopicPartition("u", 0)
    for number in range(3):
        node.produce({other: keyed(b"k", b"%d" % number)})
    log.segments[0].file("log").write(90, [b"!"])
    node.wait(BACKOFF_MS)
    node.wait(BACKOFF_MS)
    assert list(node.broker.manager.uncleanable) == [T0]
    assert "not compacted any more" in caplog.text
    assert list(node.broker.data.checkpoints.cleaner_offsets) == [other]
    assert node.append(keyed(b"k0", b"k09")).error == ErrorCode.NONE


class Unreadable:
    """Files of which the logs in ``directory`` cannot be read."""

    def __init__(self, files: DataFiles) -> None:
        self._files, self.directory = files, "none"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def open(self, path: str) -> Any:
        if path.startswith(self.directory) and path.endswith(".log"):
            raise OSError(errno.EIO, "the disk failed", path)
        return self._files.open(path)


def test_a_log_that_cannot_be_read_does_not_keep_others_from_being_compacted() -> None:
    files = Unreadable(MemoryFiles())
    node = Node(files)  # type: ignore[arg-type]
    filled(node)
    node.create("u", **COMPACT, segment_bytes="100")
    other = TopicPartition("u", 0)
    for number in range(3):
        node.produce({other: keyed(b"k", b"%d" % number)})
    files.directory = "/data/t-0/"
    for _ in range(3):
        node.wait(BACKOFF_MS)
    assert node.broker.data.checkpoints.cleaner_offsets == {other: 2}
    files.directory = "none"
    for _ in range(3):
        node.wait(BACKOFF_MS)
    assert T0 in node.broker.data.checkpoints.cleaner_offsets, "it is tried again"


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("call", ["write", "sync", "create", "read_into", "sync_directory", "rename"])
def test_a_disk_that_fails_once_stops_nothing_else(call: str) -> None:
    plan = FaultPlan(1 << 30, errno.EIO, call=call)
    files = MemoryFiles()
    node = Node(FaultyFiles(files, plan))
    log = filled(node, rounds=4)
    node.now_ms += BACKOFF_MS
    node.broker.advance(node.now_ms)
    before = view(node)
    plan.fails = plan.counted + 1
    for _ in pieces(node):
        pass
    assert plan.failed
    if log.fenced is None:
        assert view(node) == before
        node.wait(2 * BACKOFF_MS)
        assert log.segments[0].size < log.active.size
    node = Node(MemoryFiles(base=files.disk()))
    assert view(node) == before


def test_what_was_compacted_and_its_registry_are_sound(tmp_path: Path) -> None:
    node = Node(
        LocalDataFiles(), str(tmp_path / "data"), transaction_state_log_num_partitions=1,
        transaction_state_log_segment_bytes=1500, metadata_log_max_record_bytes_between_snapshots=1,
    )  # fmt: skip
    filled(node, rounds=5)
    producer = Producer(node)
    for number in range(20):
        batch = keyed(b"k0", b"k0%d" % number, transactional=True, **numbered(producer))
        request = {T0: batch}
        assert node.produce(request, transactional_id="x", version=13)[T0].error == ErrorCode.NONE
        assert producer.end(commit=number % 3 > 0) == ErrorCode.NONE
    for _ in range(3):
        node.wait(BACKOFF_MS)
    assert len(node.broker.data.checkpoints.cleaner_offsets) == 2
    assert node.broker.metadata.snapshots
    before = view(node)
    node.wait(600_000)  # replaced segments are removed when nobody reads them any more
    node.close()
    report = verify(LogDir(str(tmp_path / "data")))
    assert [(each.code, each.file) for each in report.findings] == []
    node = Node(LocalDataFiles(), str(tmp_path / "data"), transaction_state_log_num_partitions=1)
    assert view(node) == before == {b"k0": 19, b"k1": 4, b"k2": 4}
    node.close()


def numbered(producer: Producer) -> dict[str, int]:
    """The identity of a producer, for the first batch of a transaction of version 2."""
    identity = producer.identity
    return {
        "producer_id": identity.producer_id, "producer_epoch": identity.producer_epoch, "base_sequence": 0
    }  # fmt: skip

"""The leader epoch of a partition rises at each start: clients notice a log that came back shorter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.broker.node import COMMITTED, NOW, Node, Producer, batch_of
from tests.unit.export.outputs import run_export
from tests.unit.storage.client import what_is_synced
from txnkafka._core.scan import scan
from txnkafka.broker.broker import open_broker
from txnkafka.broker.registry import leader_epochs
from txnkafka.broker.registry.leader_epochs import next_epoch
from txnkafka.broker.requests import (
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    OffsetQuery,
    ProduceRequest,
)
from txnkafka.config import LogConfig
from txnkafka.env import LocalDataFiles
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError, LogDirError
from txnkafka.logdir import CannotResumeError, LogDir, PartitionView, resumable_plan
from txnkafka.model import TopicPartition
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.formats.checkpoint import parse_leader_epoch_checkpoint
from txnkafka.storage.recovery.log_loader import Repair
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.memory_files import MemoryFiles

NONE = ErrorCode.NONE
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
LOG, EPOCHS = "/data/t-0/00000000000000000000.log", "/data/t-0/leader-epoch-checkpoint"
IN_2026 = 1_790_000_000_000
LARGEST = (1 << 31) - 1


def values(*names: str) -> list[bytes]:
    return [name.encode() for name in names]


def write(node: Node, name: str, count: int) -> None:
    for i in range(count):
        assert node.append(batch_of(b"%s %d" % (name.encode(), i))).error == NONE


def disk_of(node: Node) -> MemoryFiles:
    """The files of a broker as they are, for a broker that runs after the process was killed."""
    assert isinstance(node.files, MemoryFiles)
    return MemoryFiles(base=node.files.disk())


def cut(files: MemoryFiles, offset: int) -> None:
    """Remove the end of the log, from the batch with ``offset`` on."""
    index = scan(files.read(LOG, 1 << 20))
    file = files.open_to_write(LOG)
    file.truncate(index.position[list(index.base_offset).index(offset)])
    file.close()


def epochs_of(node: Node, offset: int = 0) -> dict[int, int]:
    """The leader epoch of each batch, by base offset."""
    fetched = node.fetch(offset)
    assert fetched.records is not None
    with fetched.records as records:
        index = scan(records.read())
    return dict(zip(index.base_offset, index.partition_leader_epoch, strict=True))


def asked(node: Node, offset: int, **epochs: int) -> FetchedPartition:
    answers: list[Any] = []
    request = FetchRequest([FetchPartition(T0, offset, 1 << 20, **epochs)])
    node.request(node.broker.fetch, request, answers.append)
    ((_, fetched),) = answers[0]
    if fetched.records is not None:
        fetched.records.release()
    return fetched


def test_each_start_raises_the_leader_epoch_and_the_partition_epoch_by_one() -> None:
    node = Node()
    node.create("t", 2)
    write(node, "a", 2)
    for start in (1, 2):
        node.restart()
        for partition in (T0, T1):
            registered = node.broker.registered(partition)
            assert registered is not None
            assert (registered.leader_epoch, registered.partition_epoch) == (start, start)
            assert (registered.leader, registered.isr) == (1, [1])
    write(node, "b", 1)
    assert epochs_of(node) == {0: 0, 1: 0, 2: 2}
    assert node.broker.list_offsets([OffsetQuery(T0, -1)], COMMITTED)[T0].leader_epoch == 2
    assert node.broker.list_offsets([OffsetQuery(T0, -2)], COMMITTED)[T0].leader_epoch == 0
    assert node.broker.list_offsets([OffsetQuery(T0, -1, 1)], COMMITTED)[T0].error == (
        ErrorCode.FENCED_LEADER_EPOCH
    )


@pytest.mark.parametrize("kept", [0, 5])
def test_the_lost_epoch_ends_where_the_log_was_cut(kept: int) -> None:
    node = Node(durability="page_cache")
    node.create()
    write(node, "first", 10)
    files = disk_of(node)
    cut(files, kept)

    node = Node(files, durability="page_cache")
    assert node.broker.logs[T0].log_end_offset == kept
    assert node.broker.end_offset_for_epoch(T0, 0) == (NONE, 0, kept), "before the first new record"
    write(node, "second", 10)
    assert node.broker.end_offset_for_epoch(T0, 0) == (NONE, 0, kept)
    assert node.broker.end_offset_for_epoch(T0, 1) == (NONE, 1, kept + 10)
    assert asked(node, 10, current_leader_epoch=0).error == ErrorCode.FENCED_LEADER_EPOCH
    assert asked(node, 10, current_leader_epoch=1, last_fetched_epoch=0).diverging == (0, kept)
    assert set(epochs_of(node, kept).values()) == {1}
    node.close()
    entries = parse_leader_epoch_checkpoint(files.read(EPOCHS, 1 << 20))
    assert [tuple(entry) for entry in entries] == ([(0, 0), (1, 5)] if kept else [(1, 0)])


def test_two_lost_tails_one_after_the_other() -> None:
    node = Node(durability="page_cache")
    node.create()
    write(node, "first", 10)
    files = disk_of(node)
    cut(files, 5)
    node = Node(files, durability="page_cache")
    write(node, "second", 10)
    files = disk_of(node)
    cut(files, 5)
    node = Node(files, durability="page_cache")
    write(node, "third", 10)
    assert epochs_of(node) == dict.fromkeys(range(5), 0) | dict.fromkeys(range(5, 15), 2)
    for lost in (0, 1):
        assert node.broker.end_offset_for_epoch(T0, lost) == (NONE, 0, 5)


def test_an_export_and_a_plan_notice_a_log_that_was_repaired_and_grew_again(tmp_path: Path) -> None:
    """Damage of a durable record, ``repair --truncate-corrupt``, and the same records once more."""
    root = tmp_path / "data"
    node = Node(LocalDataFiles(), str(root))
    node.create()
    write(node, "a", 10)
    node.close()
    run_export(root, tmp_path / "out")
    planned = resumable_plan(LogDir(str(root)).partition("t", 0))
    log = root / "t-0" / f"{0:020}.log"
    content = bytearray(log.read_bytes())
    content[scan(bytes(content)).position[5] + 70] ^= 1
    log.write_bytes(content)
    repair = Repair(full=True, truncate_corrupt=True)
    config = LogConfig()
    DataDirectory(LocalDataFiles(), str(root), lambda _: config, now_ms=NOW, repair=repair).close()

    node = Node(LocalDataFiles(), str(root))
    assert node.broker.logs[T0].log_end_offset == 5
    assert node.broker.end_offset_for_epoch(T0, 0) == (NONE, 0, 5)
    write(node, "a", 10)
    node.close()
    with pytest.raises(KafkaError, match="10 with leader epoch 0 and has leader epoch 1 there now"):
        run_export(root, tmp_path / "out", incremental=True)
    source = LogDir(str(root)).partition("t", 0).source
    with pytest.raises(CannotResumeError):
        resumable_plan(PartitionView(source, planned.checkpoint))


def test_an_older_copy_of_the_whole_directory_gets_a_later_epoch_than_the_life_that_it_replaces() -> None:
    """Both lives follow the same copy, and nothing in the directory distinguishes them."""
    node = Node(now_ms=IN_2026)
    node.create()
    write(node, "first", 5)
    node.close()
    copy = disk_of(node)

    lost = Node(disk_of(node), now_ms=IN_2026 + 1_000)
    write(lost, "lost", 10)
    restored = Node(copy, now_ms=IN_2026 + 2_000)
    write(restored, "second", 20)
    lost_epoch = epochs_of(lost)[5]
    assert epochs_of(restored)[5] > lost_epoch > 0
    assert restored.broker.end_offset_for_epoch(T0, lost_epoch) == (NONE, 0, 5)
    assert asked(restored, 15, last_fetched_epoch=lost_epoch).diverging == (0, 5)


def test_a_log_from_a_newer_copy_has_later_epochs_than_the_registry() -> None:
    node = Node()
    node.create()
    write(node, "first", 3)
    node.close()
    older = disk_of(node)
    for _ in range(4):
        node.restart()
    write(node, "second", 3)
    node.close()
    file = older.open_to_write(LOG)
    file.write(0, [node.files.read(LOG, 1 << 20)])
    file.close()
    file = older.open_to_write(EPOCHS)
    file.write(0, [node.files.read(EPOCHS, 1 << 20)])
    file.close()
    older.remove("/data/.kafka_cleanshutdown")

    node = Node(older)
    assert node.broker.leader_epoch(T0) == 5, "the log has 4, the registry has 0"
    write(node, "third", 1)
    assert epochs_of(node) == {0: 0, 1: 0, 2: 0, 3: 4, 4: 4, 5: 4, 6: 5}


def test_a_directory_that_comes_without_a_registry_gets_a_later_epoch_than_its_logs_have() -> None:
    node = Node()
    node.create()
    for _ in range(3):
        node.restart()
    write(node, "first", 3)
    node.close()
    files = disk_of(node)
    for entry in files.list("/data/__cluster_metadata-0"):
        files.remove(f"/data/__cluster_metadata-0/{entry.name}")
    node = Node(files)
    assert node.broker.leader_epoch(T0) == 4
    write(node, "second", 1)
    assert epochs_of(node) == {0: 3, 1: 3, 2: 3, 3: 4}


def test_a_partition_that_is_refused_gets_a_new_epoch() -> None:
    node = Node()
    node.create("t", 2)
    write(node, "a", 3)
    node.close()
    file = node.files.open_to_write(LOG)
    file.write(0, [b"\xff" * 40])
    file.close()
    node = Node(node.files)
    assert T0 in node.broker.data.refused
    assert (node.broker.leader_epoch(T0), node.broker.leader_epoch(T1)) == (1, 1)


def test_the_last_epoch_is_not_followed_by_another() -> None:
    node = Node()
    node.create()
    node.broker.image.topics["t"].partitions[0].leader_epoch = LARGEST - 1
    leader_epochs.begin_epochs(node.broker.services, NOW)
    assert node.broker.leader_epoch(T0) == LARGEST
    node.close()
    with pytest.raises(LogDirError, match="t-0 has used the largest leader epoch, 2147483647"):
        Node(node.files)


@pytest.mark.parametrize(
    ("known", "now_ms", "epoch"),
    [
        ((0, -1), 0, 1),
        ((0, -1), 1_735_689_600_000, 1),  # 2025 begins
        ((0, -1), 1_735_689_600_000 + 7_999, 7),
        ((7, -1), 1_735_689_600_000 + 7_999, 8),
        ((3, 9), 1_735_689_600_000, 10),
        ((0, -1), -(10**15), 1),
        ((0, -1), 10**18, 1 << 30),
        ((1 << 30, -1), 10**18, (1 << 30) + 1),
        ((LARGEST, -1), 0, LARGEST + 1),
    ],
)
def test_the_next_epoch_is_larger_than_all_and_follows_the_clock(
    known: tuple[int, int], now_ms: int, epoch: int
) -> None:
    assert next_epoch(*known, now_ms=now_ms) == epoch


def test_the_epochs_of_many_partitions_are_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_epochs, "_RECORDS_OF_A_BATCH", 2)
    node = Node()
    node.create("t", 5)
    node.restart()
    assert {node.broker.leader_epoch(TopicPartition("t", i)) for i in range(5)} == {1}
    node.restart()
    assert {node.broker.leader_epoch(TopicPartition("t", i)) for i in range(5)} == {2}


def test_markers_have_the_epoch_of_their_coordinator_of_this_start() -> None:
    node = Node(transaction_state_log_num_partitions=1)
    node.create()
    producer = Producer(node)
    assert producer.send(b"a") == [NONE]
    assert producer.end() == NONE
    assert producer.send(b"open") == [NONE]
    node.restart()
    producer.init()  # aborts the open transaction
    assert producer.send(b"b") == [NONE]
    assert producer.end() == NONE
    (entry,) = node.broker.logs[T0].producers.entries()
    assert entry.coordinator_epoch == 1
    assert node.values() == values("a", "b")


def test_an_epoch_is_durable_before_the_first_batch_has_it() -> None:
    """Also where nothing was flushed since the start: the page cache acknowledges at once."""
    node = Node()
    node.create()
    write(node, "first", 2)
    node.close()
    files, answers = disk_of(node), list[Any]()
    broker = open_broker(files, "/data", now_ms=NOW, durability="page_cache")
    broker.call(broker.produce, ProduceRequest({T0: batch_of(b"second")}), answers.append, now_ms=NOW)
    assert (answers[0][T0].error, broker.leader_epoch(T0)) == (NONE, 1)
    node = Node(MemoryFiles(base=what_is_synced(files)))
    assert node.broker.logs[T0].log_end_offset == 2
    assert node.broker.leader_epoch(T0) == 2


@pytest.mark.slow
def test_no_power_cut_takes_an_epoch_back_that_a_consumer_has_seen() -> None:
    """At each change of the disk during two starts and the appends after them. A consumer sees records that
    are in the page cache only, so the epochs of these records must be durable in the registry."""
    node = Node()
    node.create()
    write(node, "first", 2)
    node.close()
    files = disk_of(node)
    seen: list[tuple[int, int]] = [(0, 0)]  # after which change, epoch
    for name in ("second", "third"):
        node = Node(files, durability="page_cache")
        write(node, name, 2)
        seen.append((len(files.journal), max(epochs_of(node).values())))
        node.close()
    count = 0
    for state in crash_states(files, limit=150, begin=0, news=[change for change, _ in seen]):
        after = Node(MemoryFiles(base=state.disk))
        latest = max(epoch for change, epoch in seen if change <= state.changes)
        assert after.broker.leader_epoch(T0) > latest, state.name
        write(after, "later", 1)
        found = list(epochs_of(after).values())
        assert found == sorted(found), state.name
        count += 1
    assert count > 50
    assert [epoch for _, epoch in seen] == [0, 1, 2]

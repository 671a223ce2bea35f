"""A data directory and its owner: the lock, damaged partitions, the clean shutdown marker."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.storage.logs import NOW, append
from txnkafka import TopicPartition
from txnkafka.config import LogConfig
from txnkafka.env import DataFiles, LocalDataFiles, write_durably
from txnkafka.errors import (
    CorruptFileError,
    InvalidTopicError,
    LogDirError,
    UnknownTopicOrPartitionError,
)
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.formats import parse_offset_checkpoint
from txnkafka.storage.locked_directory import lock_directory
from txnkafka.storage.recovery.log_end import Repair
from txnkafka.testing.memory_files import MemoryFiles

PATH, CLEAN = "/data", "/data/.kafka_cleanshutdown"
TOPIC_ID = "AAAAAAAAAAEAAAAAAAAAAg"
PARTITIONS = [TopicPartition("t", 0), TopicPartition("t", 1)]


def opened(files: DataFiles, config: LogConfig | None = None) -> DataDirectory:
    return DataDirectory(files, PATH, lambda topic: config or LogConfig(), now_ms=NOW)


@pytest.fixture
def files() -> MemoryFiles:
    """Two partitions of two batches, flushed and closed."""
    files = MemoryFiles()
    directory = opened(files)
    for partition in PARTITIONS:
        log = directory.create(partition, TOPIC_ID, now_ms=NOW)
        append(log)
        append(log)
    directory.close()
    return files


def damage(files: MemoryFiles, position: int) -> None:
    file = files.open_to_write("/data/t-0/00000000000000000000.log")
    file.write(position, [b"\xff"])
    file.close()


def test_the_marker_of_a_clean_stop_is_there_while_nobody_owns_it(files: MemoryFiles) -> None:
    assert files.exists(CLEAN)
    directory = opened(files)
    assert not files.exists(CLEAN)
    assert not directory.repairs
    directory.close()
    assert files.exists(CLEAN)


def test_missing_parents_are_created_as_apache_kafka_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for files, path in ((MemoryFiles(), "/a/b/c"), (LocalDataFiles(), "a/b/c")):
        DataDirectory(files, path, lambda topic: LogConfig(), now_ms=NOW).close()
        assert files.exists(f"{path}/.kafka_cleanshutdown")


def test_one_owner(files: MemoryFiles) -> None:
    directory = opened(files)
    with pytest.raises(LogDirError, match="is locked by another owner"):
        opened(files)
    directory.close()
    opened(files).close()


def test_a_damaged_partition_is_refused_and_the_others_work(files: MemoryFiles) -> None:
    """The next owners refuse it, too."""
    damage(files, 70)
    files.remove(CLEAN)
    before = files.read("/data/t-0/00000000000000000000.log", 1000)
    for end in (2, 3):
        directory = opened(files)
        assert list(directory.refused) == PARTITIONS[:1]
        log = directory.logs[PARTITIONS[1]]
        assert log.log_end_offset == end
        append(log)
        directory.close()
        assert not files.exists(CLEAN)
    assert files.read("/data/t-0/00000000000000000000.log", 1000) == before


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_start_with_a_digit_too_many_does_not_empty_the_log(files: MemoryFiles, clean: bool) -> None:
    checkpoint = "/data/log-start-offset-checkpoint"
    files.remove(checkpoint)
    files.create(checkpoint).write(0, [b"0\n1\nt 0 20\n"])
    if not clean:
        files.remove(CLEAN)
    before = files.read("/data/t-0/00000000000000000000.log", 1000)
    for _ in range(2):
        directory = opened(files)
        assert list(directory.refused) == PARTITIONS[:1]
        directory.close()
        assert files.read("/data/t-0/00000000000000000000.log", 1000) == before
        assert files.read(checkpoint, 1000) == b"0\n1\nt 0 20\n"


@pytest.mark.parametrize("topic", ["", "..", "a/b", "x" * 250])
def test_a_partition_of_a_name_that_no_topic_may_have_is_not_created(files: MemoryFiles, topic: str) -> None:
    directory = opened(files)
    there = sorted(entry.name for entry in files.list(PATH))
    with pytest.raises(InvalidTopicError):
        directory.create(TopicPartition(topic, 0), TOPIC_ID, now_ms=NOW)
    assert sorted(entry.name for entry in files.list(PATH)) == there
    assert sorted(directory.logs) == PARTITIONS
    directory.close()


@pytest.mark.parametrize("number", [-1, 2**31, 2**40, "0", True, None, 0.0])
def test_a_partition_of_a_number_that_no_partition_may_have_is_not_created(
    files: MemoryFiles, number: Any
) -> None:
    """``x--1`` would be partition 1 of ``x-`` at the next opening, and no checkpoint could be read."""
    directory = opened(files)
    before = len(files.journal)
    with pytest.raises(ValueError, match="x: a partition number must be 0 to 2147483647, not "):
        directory.create(TopicPartition("x", number), TOPIC_ID, now_ms=NOW)
    assert len(files.journal) == before
    assert sorted(directory.logs) == PARTITIONS
    largest = TopicPartition("x", 2**31 - 1)
    directory.create(largest, TOPIC_ID, now_ms=NOW)
    directory.close()
    again = opened(files)
    assert largest in again.logs
    assert not again.repairs


@pytest.mark.parametrize("change", ["delete", "setting_aside", "truncate", "delete_records"])
@pytest.mark.parametrize("unknown", [TopicPartition("t", 2), TopicPartition("__cluster_metadata", 0)])
def test_a_partition_that_is_not_there_is_not_changed(
    files: MemoryFiles, change: str, unknown: TopicPartition
) -> None:
    files.make_directory("/data/__cluster_metadata-0")
    directory = opened(files)
    changes: dict[str, Callable[[], object]] = {
        "delete": lambda: directory.delete(unknown),
        "setting_aside": lambda: directory.setting_aside(unknown),
        "truncate": lambda: directory.truncate(unknown, 0, now_ms=NOW),
        "delete_records": lambda: directory.delete_records(unknown, 0),
    }
    before = len(files.journal)
    with pytest.raises(UnknownTopicOrPartitionError, match=f"^/data has no partition {unknown}$"):
        changes[change]()
    assert len(files.journal) == before


def test_a_refused_partition_can_be_deleted_and_not_truncated(files: MemoryFiles) -> None:
    files.open_to_write("/data/t-0/partition.metadata").truncate(15)
    directory = opened(files)
    with pytest.raises(CorruptFileError, match=r"partition\.metadata"):
        directory.truncate(PARTITIONS[0], 0, now_ms=NOW)
    directory.delete(PARTITIONS[0])
    assert not files.exists("/data/t-0")


FUTURE = "t-1.0123456789abcdef0123456789abcdef-future"


def noted(files: MemoryFiles, partition: TopicPartition) -> list[int | None]:
    """Return recovery point and high watermark."""
    names = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint")
    contents = [parse_offset_checkpoint(files.read(f"{PATH}/{name}", 1000)) for name in names]
    return [content.get(partition) for content in contents]


@pytest.mark.parametrize("clean", [False, True])
def test_a_copy_for_another_disk_is_left_to_kafka(files: MemoryFiles, clean: bool) -> None:
    """kafka-reassign-partitions had begun it. With a marker Kafka would not recover it, append behind a torn
    tail, and delete the log that it is a copy of."""
    files.rename("/data/t-1", f"/data/{FUTURE}")
    if not clean:
        files.remove(CLEAN)
    for _ in range(2):
        directory = opened(files)
        assert list(directory.logs) == PARTITIONS[:1]
        directory.close()
        assert files.exists(CLEAN) == clean
        assert noted(files, PARTITIONS[1]) == [2, 2]


@pytest.mark.parametrize("repair", [None, Repair()])
def test_damaged_recovery_points_beside_a_copy_are_rebuilt_once(
    files: MemoryFiles, repair: Repair | None
) -> None:
    """Kafka recovers the copy from its beginning without them."""
    files.rename("/data/t-1", f"/data/{FUTURE}")
    write_durably(files, f"{PATH}/recovery-point-offset-checkpoint", b"0\n1\nt 0 one\n")
    for is_damaged in (True, False):
        directory = DataDirectory(files, PATH, lambda topic: LogConfig(), now_ms=NOW, repair=repair)
        assert any("recovery-point" in step for step in directory.repairs) == is_damaged
        directory.close()
    assert noted(files, PARTITIONS[0])[0] == 2
    assert noted(files, PARTITIONS[1])[0] == 0


def test_a_log_does_not_get_the_offsets_of_its_copy(files: MemoryFiles) -> None:
    files.make_directory(f"/data/{FUTURE}")
    directory = opened(files)
    append(directory.logs[PARTITIONS[1]])
    directory.close()
    assert noted(files, PARTITIONS[1]) == [3, 3]


@pytest.mark.parametrize(("mark", "kept"), [(b"t 0 1\n", 1), (b"t 0 9\n", 2), (b"t 2 1\n", None)])
@pytest.mark.parametrize("clean", [True, False])
def test_a_repair_raises_no_high_watermark(
    files: MemoryFiles, mark: bytes, kept: int | None, clean: bool
) -> None:
    """A member of a cluster may have records that are not replicated, and would serve them."""
    write_durably(files, f"{PATH}/replication-offset-checkpoint", b"0\n1\n" + mark)
    if not clean:
        files.remove(CLEAN)
    DataDirectory(files, PATH, lambda topic: LogConfig(), now_ms=NOW, repair=Repair()).close()
    assert noted(files, PARTITIONS[0]) == [2, kept]
    assert noted(files, PARTITIONS[1]) == [2, None]
    opened(files).close()  # an owner is the only replica
    assert noted(files, PARTITIONS[0]) == [2, 2]


@pytest.mark.parametrize("damage", ["", "index", "log", "txnindex"])
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("clean", [True, False])
def test_a_repair_keeps_no_index_in_memory(damage: str, full: bool, clean: bool) -> None:
    """A broker may have hundreds of thousands of segments, each with indexes of up to 20 MB."""
    files = MemoryFiles()
    config = LogConfig(segment_bytes=300, index_interval_bytes=0)
    log = (directory := opened(files, config)).create(PARTITIONS[0], TOPIC_ID, now_ms=NOW)
    for _ in range(9):
        append(log)
    directory.close()
    closed = [segment.base_offset for segment in log.segments][:-1]
    if damage:
        write_durably(files, f"/data/t-0/{closed[1]:020}.{damage}", b"x" * 9)
    if not clean:
        files.remove(CLEAN)
    repair = Repair(full=full, truncate_corrupt=True)
    directory = DataDirectory(files, PATH, lambda topic: config, now_ms=NOW, repair=repair)
    for segment in list(directory.logs[PARTITIONS[0]].segments)[:-1]:
        assert not segment.offset_index.content
        assert not segment.time_index.content
    directory.close()
    assert not opened(files, config).repairs


def test_the_marker_of_a_clean_stop_is_gone_before_the_registry_is_changed(files: MemoryFiles) -> None:
    """A power cut in the start would leave the marker beside a registry whose end is torn."""
    content = files.read(CLEAN, 100)
    with contextlib.suppress(LogDirError), lock_directory(files, PATH) as locked:
        assert locked.identity.node_id == 1
        assert not files.exists(CLEAN)
        raise LogDirError("the registry is that of a cluster")
    assert files.read(CLEAN, 100) == content, "no log was opened"
    assert opened(files).was_clean


def test_a_start_that_has_begun_with_logs_leaves_no_marker(files: MemoryFiles) -> None:
    def config(topic: str) -> LogConfig:
        raise KeyError(topic)

    with pytest.raises(KeyError), lock_directory(files, PATH) as locked:
        DataDirectory(files, PATH, config, now_ms=NOW, locked=locked)
    assert not files.exists(CLEAN)
    assert not opened(files).was_clean


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_a_start_that_ends_before_the_logs_gives_the_lock_back(
    files: MemoryFiles, error: type[BaseException] | None
) -> None:
    with contextlib.suppress(KeyboardInterrupt), lock_directory(files, PATH):
        if error is not None:
            raise error
    assert opened(files).was_clean == (error is None)

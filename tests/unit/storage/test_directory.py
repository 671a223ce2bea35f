"""A data directory: its lock, its shutdown, its deletions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.storage.client import NOW, Log, data
from txnkafka.broker.log_manager import LogManager
from txnkafka.config import LogConfig
from txnkafka.env import DataFiles, LocalDataFiles
from txnkafka.errors import KafkaStorageError, LogDirError
from txnkafka.model import TopicPartition
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.formats import (
    parse_clean_shutdown,
    parse_offset_checkpoint,
    parse_partition_metadata,
)
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("with-dash", 3)
TOPIC_ID = "AAAAAAAAAAEAAAAAAAAAAg"
MARKER = "/data/.kafka_cleanshutdown"


def opened(files: DataFiles, path: str = "/data", **arguments: Any) -> LogManager:
    configs = arguments.pop("configs", {})
    return LogManager(DataDirectory(files, path, lambda topic: LogConfig(**configs), now_ms=NOW, **arguments))


def created(directory: LogManager, partition: TopicPartition = FIRST) -> Log:
    return Log(directory.create(partition, TOPIC_ID, now_ms=NOW))


def checkpoint(files: DataFiles, name: str) -> dict[TopicPartition, int]:
    return parse_offset_checkpoint(files.read(f"/data/{name}", 1000))


# Lock


def test_one_owner_in_a_process() -> None:
    files = MemoryFiles()
    directory = opened(files)
    with pytest.raises(LogDirError, match="locked by another owner"):
        opened(files)
    directory.close()
    opened(files).close()


@pytest.mark.process
def test_one_owner_among_processes(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    directory = opened(LocalDataFiles(), path)
    program = (
        "import sys\n"
        "from txnkafka.config import LogConfig\n"
        "from txnkafka.env import LocalDataFiles\n"
        "from txnkafka.errors import LogDirError\n"
        "from txnkafka.storage.data_directory import DataDirectory\n"
        "try: DataDirectory(LocalDataFiles(), sys.argv[1], lambda topic: LogConfig(), now_ms=0)\n"
        "except LogDirError: sys.exit(7)\n"
    )
    command = [sys.executable, "-c", program, path]
    assert subprocess.run(command, check=False).returncode == 7
    directory.close()
    assert subprocess.run(command, check=False).returncode == 0


# Stopping and starting


def test_a_clean_stop() -> None:
    files = MemoryFiles()
    directory = opened(files)
    log = created(directory)
    log.plain()
    created(directory, SECOND)
    directory.close()
    assert parse_clean_shutdown(files.read(MARKER, 100)).broker_epoch == -1
    assert checkpoint(files, "recovery-point-offset-checkpoint") == {FIRST: 2, SECOND: 0}
    assert checkpoint(files, "replication-offset-checkpoint") == {FIRST: 2, SECOND: 0}
    assert checkpoint(files, "log-start-offset-checkpoint") == {}
    again = opened(files)
    assert again.data.repairs == []
    assert {partition: each.log_end_offset for partition, each in again.logs.items()} == {FIRST: 2, SECOND: 0}


def test_the_clean_marker_is_gone_durably_before_anything_is_changed() -> None:
    """KAFKA-10471: a crash while opening must not look like a clean shutdown."""
    files = MemoryFiles()
    directory = opened(files)
    created(directory).plain()
    directory.close()
    before = len(files.journal)
    opened(files)
    changes = files.journal[before:]
    first = next(each for each in changes if each.kind not in ("create", "sync_directory"))
    assert (first.kind, first.path) == ("remove", MARKER)
    after = changes[changes.index(first) + 1]
    assert (after.kind, after.path) == ("sync_directory", "/data")


def test_ul_74_the_topic_id_is_there_before_the_first_append_and_loaded_again() -> None:
    files = MemoryFiles()
    directory = opened(files)
    created(directory)
    content = files.read("/data/t-0/partition.metadata", 100)
    assert parse_partition_metadata(content).topic_id == TOPIC_ID
    directory.close()
    again = opened(files)
    assert again.data.topic_ids == {FIRST: TOPIC_ID}
    with pytest.raises(LogDirError, match="exists already"):
        created(again)


def test_a_partition_whose_topic_id_is_damaged_is_refused() -> None:
    files = MemoryFiles()
    directory = opened(files)
    created(directory).plain()
    created(directory, SECOND).plain()
    directory.close()
    files.open_to_write("/data/t-0/partition.metadata").truncate(15)
    again = opened(files)
    assert list(again.data.refused) == [FIRST]
    assert list(again.logs) == [SECOND]


def test_a_refused_partition_is_left_unchanged_by_every_start() -> None:
    """Recovery would truncate this log to nothing, and then it looks like a creation that a crash has
    interrupted, whose damaged topic id does not count."""
    files = MemoryFiles()
    directory = opened(files)
    created(directory).plain()
    directory.data.abandon()
    files.open_to_write("/data/t-0/partition.metadata").truncate(15)
    log = files.open_to_write("/data/t-0/00000000000000000000.log")
    log.write(20, [b"\xff\xff\xff"])
    size = log.size()
    for _ in range(3):
        again = opened(files)
        assert list(again.data.refused) == [FIRST]
        assert log.size() == size
        again.data.abandon()


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_damaged_topic_id_of_a_partition_that_was_never_written_to_is_removed(is_clean: bool) -> None:
    """Else the second start, which is unclean because the first has refused a partition, would open it."""
    files = MemoryFiles()
    directory = opened(files)
    created(directory)
    if is_clean:
        directory.close()
    else:
        directory.data.abandon()
    files.open_to_write("/data/t-0/partition.metadata").truncate(15)
    again = opened(files)
    assert again.data.repairs == [
        "t-0: partition.metadata is removed: the partition is empty, and the file damaged"
    ]
    assert not again.data.refused
    created(again).plain()
    again.data.abandon()
    assert opened(files).data.topic_ids == {FIRST: TOPIC_ID}


@pytest.mark.parametrize("position", [61, 300])
def test_damage_below_the_recovery_point_refuses_one_partition(position: int) -> None:
    """The partition keeps its checkpoints, and no shutdown is clean while it is refused."""
    files = MemoryFiles()
    directory = opened(files)
    for partition in (FIRST, SECOND):
        log = created(directory, partition)
        for _ in range(4):
            log.plain()
    directory.close()
    files.remove(MARKER)
    file = files.open_to_write("/data/t-0/00000000000000000000.log")
    file.write(position, [b"\xff\xff\xff"])
    again = opened(files)
    assert list(again.data.refused) == [FIRST]
    assert "t-0" in str(again.data.refused[FIRST])
    assert again.logs[SECOND].log_end_offset == 8
    Log(again.logs[SECOND]).plain()
    again.close()
    assert not files.exists(MARKER)
    assert checkpoint(files, "recovery-point-offset-checkpoint") == {FIRST: 8, SECOND: 10}


def test_a_checkpoint_that_is_damaged_costs_time_only() -> None:
    files = MemoryFiles()
    directory = opened(files)
    created(directory).plain()
    directory.close()
    files.open_to_write("/data/recovery-point-offset-checkpoint").write(0, [b"?"])
    again = opened(files)
    assert len(again.data.repairs) == 1
    assert again.logs[FIRST].log_end_offset == 2


def test_a_log_that_failed_is_no_clean_stop() -> None:
    plan, memory = FaultPlan(), MemoryFiles()
    directory = opened(FaultyFiles(memory, plan))
    log, other = created(directory), created(directory, SECOND)
    other.plain()
    log.plain()
    plan.__init__(1, call="write")
    with pytest.raises(KafkaStorageError):
        log.plain()
    with pytest.raises(KafkaStorageError):
        directory.close()
    assert not memory.exists(MARKER)
    assert checkpoint(memory, "recovery-point-offset-checkpoint") == {FIRST: 0, SECOND: 2}
    assert {each.log_end_offset for each in opened(memory).logs.values()} == {2}


def test_foreign_directories_are_left_alone() -> None:
    files = MemoryFiles()
    opened(files).close()
    for name in (
        "foo",
        "__cluster_metadata-0",
        "remote-log-index-cache",
        "t-0.0123456789abcdef0123456789abcdef-stray",
    ):
        files.make_directory(f"/data/{name}")
    directory = opened(files)
    assert directory.logs == {}
    directory.close()
    assert files.exists("/data/foo")


# Flush and maintenance


def test_all_logs_share_a_flush() -> None:
    directory = opened(MemoryFiles())
    logs = [created(directory, TopicPartition("t", number)) for number in range(3)]
    for log in logs[:2]:
        log.plain()
    directory.flush()
    assert [log.log.high_watermark for log in logs] == [2, 2, 0]


def test_maintenance() -> None:
    """Maintenance applies retention, expires producers, removes deleted files and writes checkpoints."""
    files = MemoryFiles()
    configs = {
        "segment_bytes": len(data()), "retention_ms": 1000, "file_delete_delay_ms": 10,
        "producer_id_expiration_ms": 5000, "flush_ms": 100,
    }  # fmt: skip
    directory = opened(files, configs=configs)
    log = created(directory)
    log.plain()
    log.plain(timestamp=NOW + 4000)
    log.idempotent(7, 0, 1)
    directory.maintain(NOW + 4000)
    assert log.bases == [2, 4]
    assert checkpoint(files, "recovery-point-offset-checkpoint") == {FIRST: 5}
    directory.maintain(NOW + 4999)
    assert not [name for name in log.names() if name.endswith(".deleted")]
    assert len(log.log.producers) == 1
    directory.maintain(NOW + 5000)
    assert len(log.log.producers) == 0


# Deleting


def test_a_partition_that_is_deleted_is_gone_at_every_moment() -> None:
    files = MemoryFiles()
    directory = opened(files)
    created(directory).plain()
    created(directory, SECOND)
    directory.flush()
    directory.delete(FIRST)
    done = len(files.journal)
    assert list(directory.logs) == [SECOND]
    assert FIRST not in checkpoint(files, "recovery-point-offset-checkpoint")
    assert [entry.name for entry in files.list("/data") if entry.is_directory] == ["with-dash-3"]
    for state in crash_states(files, begin=done):
        assert FIRST not in opened(MemoryFiles(base=state.disk)).logs, state.name


def test_an_interrupted_deletion_is_finished_at_the_next_start() -> None:
    files = MemoryFiles()
    directory = opened(files)
    created(directory).plain()
    directory.close()
    files.rename("/data/t-0", "/data/t-0.0123456789abcdef0123456789abcdef-delete")
    assert opened(files).logs == {}
    assert [entry.name for entry in files.list("/data") if entry.is_directory] == []


@pytest.mark.parametrize("length", [1, 198, 199, 249])
def test_an_interrupted_deletion_of_a_long_topic_name_is_finished(tmp_path: Path, length: int) -> None:
    """The name of the directory keeps the partition's number, so that it is known for what it is."""
    path, partition = str(tmp_path / "data"), TopicPartition("t" * length, 0)
    directory = opened(LocalDataFiles(), path)
    created(directory, partition).plain()
    directory.data.deletion(partition)  # its work is never done
    directory.data.abandon()
    opened(LocalDataFiles(), path).close()
    assert [entry.name for entry in LocalDataFiles().list(path) if entry.is_directory] == []


def test_records_that_are_deleted_stay_deleted() -> None:
    files = MemoryFiles()
    directory = opened(files)
    created(directory).plain(5)
    directory.flush()
    assert directory.delete_records(FIRST, 3) == 3
    done = len(files.journal)
    for state in crash_states(files, begin=done):
        assert opened(MemoryFiles(base=state.disk)).logs[FIRST].log_start_offset == 3, state.name


@pytest.mark.parametrize("offset", [2, 3])
def test_appends_after_a_truncation_survive_older_checkpoints(offset: int) -> None:
    """A checkpointed log start or recovery point above the new end would lose the appended batch."""
    files = MemoryFiles()
    directory = opened(files)
    log = created(directory)
    for _ in range(4):
        log.plain()
    directory.flush()
    directory.data.checkpoint()
    directory.delete_records(FIRST, 7)
    directory.truncate(FIRST, offset, now_ms=NOW)
    cut = len(files.journal)
    log.plain()
    directory.flush()
    done = len(files.journal)
    for state in crash_states(files, begin=cut):
        found = opened(MemoryFiles(base=state.disk))
        assert found.data.refused == {}
        assert (found.logs[FIRST].log_start_offset, found.logs[FIRST].log_end_offset) == (
            2,
            4 if state.changes == done else found.logs[FIRST].log_end_offset,
        ), state.name


def test_a_log_whose_directory_was_closed_takes_nothing() -> None:
    """Another owner may have written the same offsets by then."""
    files = MemoryFiles()
    directory = opened(files)
    log = created(directory)
    log.plain()
    directory.close()
    again = opened(files)
    for use in (log.plain, log.log.flush):
        with pytest.raises(KafkaStorageError, match="t-0 is closed: open /data/t-0 again"):
            use()
    Log(again.logs[FIRST]).plain()
    again.close()
    log.log.close()  # a second close does nothing


def test_a_log_that_was_deleted_takes_nothing() -> None:
    """A partition of the same name may exist again."""
    files = MemoryFiles()
    directory = opened(files)
    log = created(directory)
    directory.delete(FIRST)
    new = created(directory)
    with pytest.raises(KafkaStorageError, match="is closed"):
        log.plain()
    assert new.plain().first_offset == 0
    directory.close()

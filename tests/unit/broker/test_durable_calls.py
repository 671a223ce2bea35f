"""Each call that waits for an append is made exactly once, by whatever flushes its log or prevents it."""

from __future__ import annotations

import errno
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.unit.storage.client import NOW, Log
from txnkafka.broker.flush import Flush
from txnkafka.broker.log_manager import LogManager
from txnkafka.config import LogConfig
from txnkafka.env import DataFiles, LocalDataFiles
from txnkafka.errors import (
    FlushUnderWayError,
    KafkaStorageError,
    UnknownTopicOrPartitionError,
)
from txnkafka.model import TopicPartition
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC_ID = "AAAAAAAAAAEAAAAAAAAAAg"
MARKER = "/data/.kafka_cleanshutdown"


class Host:
    """A data directory with two logs. ``told`` has the results of the appends that are decided, by number."""

    def __init__(self, files: DataFiles | None = None, path: str = "/data", **configs: Any) -> None:
        self.files = MemoryFiles() if files is None else files
        self.directory = LogManager(
            DataDirectory(self.files, path, lambda _: LogConfig(**configs), now_ms=NOW)
        )
        self.flushes = self.directory.flushes
        for partition in (FIRST, SECOND):
            if partition not in self.directory.logs:
                self.directory.create(partition, TOPIC_ID, now_ms=NOW)
        self.told: dict[int, Exception | None] = {}
        self._count = 0

    def append(self, partition: TopicPartition = FIRST) -> int:
        log = self.directory.logs[partition]
        Log(log).plain()
        self._count += 1
        self.flushes.when_durable(log, partial(self._tell, self._count))
        return self._count

    def _tell(self, number: int, error: Exception | None) -> None:
        assert number not in self.told, "told twice"
        self.told[number] = error

    def begin(self) -> Flush:
        flush = self.flushes.begin()
        assert flush is not None
        return flush

    def finish(self, flush: Flush) -> None:
        self.flushes.finish(flush, flush.run())


@pytest.mark.parametrize("configs", [{"flush_messages": 1}, {"flush_ms": 10}])
def test_maintenance_that_flushes(configs: dict[str, int]) -> None:
    host = Host(**configs)
    numbers = [host.append(), host.append(SECOND), host.append()]
    assert host.told == {}
    host.directory.maintain(NOW + 10)
    assert host.told == dict.fromkeys(numbers)
    assert not host.flushes.has_waiting
    assert host.directory.logs[FIRST].recovery_point == 4


def test_a_flush_of_the_directory() -> None:
    host = Host()
    numbers = [host.append(), host.append(SECOND)]
    host.directory.flush()
    assert host.told == dict.fromkeys(numbers)


def test_a_directory_is_not_flushed_while_a_group_is_under_way() -> None:
    host = Host(flush_messages=1)
    numbers = [host.append()]
    flush = host.begin()
    numbers.append(host.append(SECOND))
    with pytest.raises(FlushUnderWayError, match="/data is under way"):
        host.directory.flush()
    host.directory.maintain(NOW)
    assert host.told == {}
    host.finish(flush)
    assert host.told == {numbers[0]: None}
    host.directory.maintain(NOW)
    assert host.told == dict.fromkeys(numbers)
    assert host.directory.logs[SECOND].recovery_point == 2


def test_a_directory_is_not_closed_while_a_group_is_under_way() -> None:
    """It stays as it is, and can be closed when the group is finished: nothing is lost."""
    host = Host()
    first = host.append()
    flush = host.begin()
    second = host.append()
    with pytest.raises(FlushUnderWayError, match="then close"):
        host.directory.close()
    assert not host.files.exists(MARKER)
    third = host.append(SECOND)
    host.finish(flush)
    assert host.told == {first: None}
    host.directory.close()
    assert host.told == dict.fromkeys((first, second, third))
    assert host.files.exists(MARKER)
    again = Host(host.files)
    assert [log.log_end_offset for log in again.directory.logs.values()] == [4, 2]


@pytest.mark.parametrize("is_flushing", [False, True])
def test_a_partition_that_is_deleted(is_flushing: bool) -> None:
    """Its calls fail; the other log is flushed."""
    host = Host()
    doomed, other = host.append(), host.append(SECOND)
    flush = host.begin() if is_flushing else None
    host.directory.delete(FIRST)
    assert list(host.told) == [doomed]
    assert isinstance(host.told[doomed], UnknownTopicOrPartitionError)
    host.finish(flush or host.begin())
    assert list(host.told) == [doomed, other]
    assert host.told[other] is None
    last = host.append(SECOND)
    host.finish(host.begin())
    assert host.told[last] is None
    assert not host.flushes.has_waiting


def test_a_partition_is_deleted_while_its_files_are_synced(tmp_path: Path) -> None:
    """They stay open: a thread syncs their descriptors, which others may get. The log needs no more flushes,
    and that its sync fails is no fault of it."""
    host = Host(LocalDataFiles(), str(tmp_path / "data"))
    host.append()
    host.finish(host.begin())
    host.append()
    flush, log = host.begin(), host.directory.logs[FIRST]
    ((_, descriptor),) = flush.descriptors()
    log.roll(NOW)
    host.directory.delete(FIRST)
    assert os.fstat(descriptor).st_nlink == 0
    host.flushes.finish(flush, {log: OSError(errno.EIO, "it was deleted")})
    assert log.fenced is None
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    assert host.flushes.begin() is None
    host.directory.close()


def test_a_log_that_is_truncated() -> None:
    """The call for a truncated append must not report that the append is durable."""
    host = Host()
    kept, cut = host.append(), host.append()
    flush = host.begin()
    also_cut = host.append()
    with pytest.raises(FlushUnderWayError, match="then truncate"):
        host.directory.truncate(FIRST, 2, now_ms=NOW)
    host.finish(flush)
    assert host.told == {kept: None, cut: None}
    assert host.directory.truncate(FIRST, 2, now_ms=NOW)
    assert list(host.told) == [kept, cut, also_cut]
    assert isinstance(host.told[also_cut], KafkaStorageError)
    assert host.directory.logs[FIRST].recovery_point == 2


def test_what_ends_at_a_truncation_is_kept_and_acknowledged() -> None:
    host = Host()
    kept, cut = host.append(), host.append()
    assert host.directory.truncate(FIRST, 2, now_ms=NOW)
    assert list(host.told) == [cut]
    host.finish(host.begin())
    assert host.told[kept] is None
    assert host.directory.logs[FIRST].log_end_offset == 2


def test_files_that_cannot_be_opened_fence_their_log_and_no_other() -> None:
    plan = FaultPlan()
    host = Host(FaultyFiles(MemoryFiles(), plan))
    failed, sound = host.append(), host.append(SECOND)
    host.directory.logs[FIRST].local.close_files()
    plan.__init__(1, errno.EMFILE, "open_to_write")
    host.finish(host.begin())
    assert list(host.told) == [failed, sound]
    assert isinstance(host.told[failed], OSError)
    assert host.told[sound] is None
    again = host.append(SECOND)
    host.finish(host.begin())
    assert host.told[again] is None


def test_a_log_that_is_fenced_by_an_append() -> None:
    plan = FaultPlan()
    host = Host(FaultyFiles(MemoryFiles(), plan))
    waiting, other = host.append(), host.append(SECOND)
    plan.__init__(1, errno.EIO, "write")
    with pytest.raises(KafkaStorageError):
        host.append()
    with pytest.raises(KafkaStorageError, match="t-0 is offline since"):
        host.directory.flush()
    assert list(host.told) == [waiting, other]
    assert isinstance(host.told[waiting], OSError)
    assert host.told[other] is None
    assert host.directory.logs[FIRST].recovery_point == 0, "no sync makes good what has failed"


@pytest.mark.parametrize("call", ["sync", "create"])
def test_a_close_of_which_one_log_fails(call: str) -> None:
    """The other is closed and recorded, and each call gets the result of its log."""
    plan, memory = FaultPlan(), MemoryFiles()
    host = Host(FaultyFiles(memory, plan))
    failed, sound = host.append(), host.append(SECOND)
    plan.__init__(1, errno.EIO, call)
    with pytest.raises(KafkaStorageError):
        host.directory.close()
    assert list(host.told) == [failed, sound]
    assert isinstance(host.told[failed], OSError)
    assert host.told[sound] is None
    assert not memory.exists(MARKER)
    again = Host(memory)
    assert again.directory.logs[SECOND].log_end_offset == 2


def test_a_close_of_which_one_log_raises_what_nobody_foresaw(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host()
    failed, sound = host.append(), host.append(SECOND)
    monkeypatch.setattr(host.directory.logs[FIRST], "close", lambda: int("no number"))
    with pytest.raises(ValueError, match="no number"):
        host.directory.close()
    assert host.told.get(sound, "never told") is None
    assert isinstance(host.told[failed], OSError)
    assert not host.files.exists(MARKER)
    again = Host(host.files)
    assert [log.log_end_offset for log in again.directory.logs.values()] == [2, 2]


def test_a_flush_that_a_signal_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was synced by then nobody knows: the logs fail, and the directory can be closed."""
    host = Host()
    number = host.append()
    log = host.directory.logs[FIRST]

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(log.active.file("log"), "sync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        host.directory.flush()
    assert isinstance(host.told[number], OSError)
    assert log.high_watermark == log.recovery_point == 0
    with pytest.raises(KafkaStorageError):
        host.directory.close()


def test_maintenance_of_a_log_that_fails_does_not_keep_it_from_others() -> None:
    plan = FaultPlan()
    host = Host(FaultyFiles(MemoryFiles(), plan), retention_ms=1000)
    for partition in (FIRST, SECOND):
        host.append(partition)
    host.directory.flush()
    plan.__init__(1, errno.EIO, "rename")
    with pytest.raises(KafkaStorageError):
        host.directory.maintain(NOW + 5000)
    first, second = host.directory.logs.values()
    assert first.fenced is not None
    assert (second.fenced, second.log_start_offset) == (None, 2)


def test_reading_creates_no_file() -> None:
    """A log whose files somebody has removed stays without them."""
    host = Host()
    host.append()
    log = host.directory.logs[FIRST]
    log.local.close_files()
    path = log.active.path("log")
    host.files.remove(path)
    for access in (lambda: log.active.read(0, 10), log.active.sync, log.active.trim):
        with pytest.raises(FileNotFoundError):
            access()
    assert not host.files.exists(path)

"""Group flushes: which logs they cover, in which order calls are released, and the effect of failures."""

from __future__ import annotations

import errno
from functools import partial
from pathlib import Path

import pytest

from tests.unit.storage.client import NOW, PATH, Log, opened
from txnkafka.broker.flush import Flush, FlushQueue
from txnkafka.broker.log_manager import flush_is_due
from txnkafka.config import LogConfig
from txnkafka.env import LocalDataFiles
from txnkafka.errors import KafkaStorageError
from txnkafka.model import TopicPartition
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.recovery.log_loader import Start, open_log
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles


class Waiting:
    """A flush queue. ``told`` has the result of each append, by its number, in the order of the calls."""

    def __init__(self) -> None:
        self.flushes = FlushQueue()
        self.told: dict[int, Exception | None] = {}
        self._count = 0

    def append(self, log: Log, **options: bool) -> int:
        log.plain()
        self._count += 1
        self.flushes.when_durable(log.log, partial(self.told.__setitem__, self._count), **options)
        return self._count

    def begin(self) -> Flush:
        flush = self.flushes.begin()
        assert flush is not None
        return flush

    def flush(self) -> list[PartitionLog]:
        """Run one group flush; returns its logs."""
        flush = self.begin()
        self.flushes.finish(flush, flush.run())
        return [log for log, _ in flush.logs]


def test_one_flush_releases_each_log_in_the_order_of_its_appends() -> None:
    waiting, first, second = Waiting(), Log(), Log()
    numbers = [waiting.append(log) for log in (first, second, first)]
    assert waiting.flushes.has_waiting
    flush = waiting.begin()
    assert [log for log, _ in flush.logs] == [first.log, second.log]
    assert flush.run() == {}
    waiting.flushes.finish(flush, {})
    assert list(waiting.told) == [numbers[0], numbers[2], numbers[1]]
    assert set(waiting.told.values()) == {None}
    assert (waiting.flushes.has_waiting, waiting.flushes.begin()) == (False, None)
    assert (first.log.high_watermark, second.log.recovery_point) == (4, 2)


def test_appends_during_a_flush_belong_to_the_next_flush() -> None:
    waiting, log = Waiting(), Log()
    first = waiting.append(log)
    flush = waiting.begin()
    later = waiting.append(log)
    assert waiting.flushes.begin() is None, "one is under way"
    waiting.flushes.finish(flush, flush.run())
    assert waiting.told == {first: None}
    assert log.log.high_watermark == 2
    waiting.flush()
    assert waiting.told == {first: None, later: None}
    assert log.log.high_watermark == 4


def test_a_host_may_sync_the_files_itself(tmp_path: Path) -> None:
    found = open_log(
        LocalDataFiles(), str(tmp_path), TopicPartition("t", 0), LogConfig(), Start(), now_ms=NOW
    )
    waiting, log = Waiting(), Log(found.log)
    waiting.append(log)
    first = waiting.begin()
    assert first.descriptors() == [], "the epochs are to be written, too"
    waiting.flushes.finish(first, first.run())
    number = waiting.append(log)
    second = waiting.begin()
    assert second.descriptors() == [(log.log, log.log.active.file("log").fileno())]
    waiting.flushes.finish(second, {})
    assert waiting.told[number] is None
    waiting.append(Log())  # its files are in memory
    assert waiting.begin().descriptors() == []
    log.log.close()


def test_a_call_that_is_not_awaited_comes_with_the_next_flush() -> None:
    waiting, first, second = Waiting(), Log(), Log()
    flushes = waiting.flushes
    waiting.append(first, is_awaited=False)
    assert (flushes.is_dirty, flushes.is_awaited) == (True, False)
    waiting.append(second)
    assert flushes.is_awaited
    flush = waiting.begin()
    assert not flushes.is_awaited
    flushes.finish(flush, flush.run())
    assert list(waiting.told) == [1, 2]
    flushes.hurry()
    assert not flushes.is_awaited, "nothing is dirty"
    waiting.append(first, is_awaited=False)
    flushes.hurry()
    assert flushes.is_awaited


def test_a_log_that_goes_first_is_flushed_alone() -> None:
    """Its call appends to a log that is dirty already, and the two appends share a flush."""
    waiting, data, state = Waiting(), Log(), Log()
    opened, written = waiting.append(state), waiting.append(data, goes_first=True)
    assert waiting.flush() == [data.log]
    assert list(waiting.told) == [written]
    assert waiting.flushes.is_awaited
    decided = waiting.append(state)
    waiting.flush()
    assert list(waiting.told) == [written, opened, decided]
    flushes = waiting.flushes
    assert (state.log.recovery_point, flushes.is_dirty, flushes.is_awaited) == (4, False, False)


def test_logs_that_go_first_hold_others_up_for_one_flush() -> None:
    waiting, eager, patient = Waiting(), Log(), Log()
    waiting.append(patient)
    groups = []
    for _ in range(4):
        waiting.append(eager, goes_first=True)
        groups.append(set(waiting.flush()))
        waiting.append(patient)
    assert groups == [{eager.log}, {eager.log, patient.log}] * 2


@pytest.mark.parametrize("count", [1, 2])
def test_a_log_that_goes_first_and_is_deleted_is_not_flushed(count: int) -> None:
    waiting, deleted, others = Waiting(), Log(), [Log() for _ in range(count)]
    number = waiting.append(deleted, goes_first=True)
    for other in others:
        waiting.append(other)
    error = KafkaStorageError("deleted")
    waiting.flushes.forget(deleted.log, error)
    assert waiting.told == {number: error}
    assert waiting.flush() == [other.log for other in others]


def test_a_flush_is_finished_once() -> None:
    waiting = Waiting()
    waiting.append(Log())
    flush = waiting.begin()
    waiting.flushes.finish(flush, {})
    with pytest.raises(ValueError, match="under way"):
        waiting.flushes.finish(flush, {})


def test_a_call_for_an_offset_in_between_waits_only_for_that_offset() -> None:
    log, told = Log(), list[int]()
    log.plain()
    flush = log.log.begin_flush()
    log.plain()
    for offset in (4, 3, 2):  # a call waits for those before it
        log.log.when_durable(offset, lambda error, offset=offset: told.append(offset))
    log.log.finish_flush(flush, None)
    assert told == []
    log.log.when_durable(2, lambda error: told.append(2))
    assert told == [2], "durable already"
    log.log.flush()
    assert told == [2, 4, 3, 2]


def test_a_flush_syncs_what_was_written_and_then_names() -> None:
    """Once: what is durable is not synced again."""
    log = Log(segment_bytes=10_000)
    log.plain()
    log.log.flush()
    for _ in range(4):
        log.plain()
    log.log.local.flushing.has_unsynced_names = True
    files = log.log.files
    assert isinstance(files, MemoryFiles)
    before = len(files.journal)
    log.log.flush()
    kinds = [change.kind for change in files.journal[before:]]
    assert set(kinds) == {"sync", "sync_directory"}
    assert kinds[-1] == "sync_directory"
    before = len(files.journal)
    log.log.flush()
    assert [change.kind for change in files.journal[before:]] == []


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_sync_that_fails_fences_its_log_and_no_other(error: int) -> None:
    plan, waiting = FaultPlan(), Waiting()
    broken, sound = Log(opened(FaultyFiles(MemoryFiles(), plan))), Log()
    broken.plain()
    broken.log.flush()
    for log in (broken, sound):
        waiting.append(log)
    plan.__init__(1, error, "sync")
    waiting.flush()
    assert isinstance(failed := waiting.told[1], OSError)
    assert (failed.errno, waiting.told[2]) == (error, None)
    assert (broken.log.high_watermark, sound.log.high_watermark) == (2, 2)
    with pytest.raises(KafkaStorageError):
        broken.plain()
    sound.plain()


def test_an_append_during_a_failed_flush_is_never_acknowledged() -> None:
    """Even though the next sync succeeds: the state of the file after the failed one is unknown."""
    plan, waiting = FaultPlan(), Waiting()
    log = Log(opened(FaultyFiles(MemoryFiles(), plan)))
    log.plain()
    log.log.flush()
    waiting.append(log)
    plan.__init__(1, errno.EIO, "sync")
    flush = waiting.begin()
    number = waiting.append(log)
    waiting.flushes.finish(flush, flush.run())
    while waiting.flushes.is_dirty:
        waiting.flush()
    assert isinstance(waiting.told[number], OSError)
    assert log.log.high_watermark == log.log.recovery_point == 2


def test_flush_messages_and_flush_ms_want_a_flush() -> None:
    log = Log(flush_messages=3, flush_ms=500)
    log.plain()
    assert not flush_is_due(log.log, log.now_ms + 499)
    assert flush_is_due(log.log, log.now_ms + 500)
    log.plain()
    assert flush_is_due(log.log, log.now_ms)
    log.log.flush()
    assert not flush_is_due(log.log, log.now_ms + 10_000)
    assert log.log.files.exists(PATH)

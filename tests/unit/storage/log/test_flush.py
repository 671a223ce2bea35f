"""Flushes of logs, and flushes of a log that changes at the same time."""

from __future__ import annotations

import pytest

from tests.unit.storage.client import what_is_synced
from tests.unit.storage.logs import NOW, append, opened, restarted
from txnkafka.broker.flush import FlushQueue
from txnkafka.errors import FlushUnderWayError
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.log.truncation import truncate_to
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.memory_files import MemoryFiles


def test_readers_see_what_is_durable() -> None:
    log = opened()
    append(log)
    assert (log.high_watermark, log.recovery_point) == (0, 0)
    flush = log.begin_flush()
    append(log)
    flush.run(log.files)
    assert log.high_watermark == 0
    log.finish_flush(flush, None)
    assert (log.high_watermark, log.recovery_point, log.log_end_offset) == (1, 1, 2)


def test_a_failed_flush_fails_all_waiting_calls() -> None:
    log, flushes, told = opened(), FlushQueue(), list[Exception | None]()
    append(log)
    flushes.when_durable(log, told.append)
    flush = flushes.begin()
    assert flush is not None
    append(log)
    flushes.when_durable(log, told.append)
    error = OSError("broken")
    flushes.finish(flush, {log: error})
    flushes.run()
    flushes.when_durable(log, told.append)
    assert told == [error] * 3
    assert log.high_watermark == 0


def test_a_log_is_not_truncated_during_a_flush() -> None:
    """The flush would sync data that is no longer in the log."""
    log = opened(segment_bytes=400)
    for _ in range(4):
        append(log)
    assert len(log.segments) == 2
    flush = log.begin_flush()
    with pytest.raises(FlushUnderWayError, match="then truncate"):
        truncate_to(log, 1, now_ms=NOW)
    flush.run(log.files)
    log.finish_flush(flush, None)
    assert (log.log_end_offset, log.recovery_point, log.fenced) == (4, 3, None)
    log.flush()
    assert truncate_to(log, 1, now_ms=NOW)
    assert (log.recovery_point, log.high_watermark, len(log.segments)) == (1, 1, 1)


def test_a_segment_is_durable_before_the_next_one_has_a_name() -> None:
    """Each flush gives one segment its final name, and covers the data before it."""
    log = opened(segment_bytes=200)
    for _ in range(3):
        append(log)
    bases = [segment.base_offset for segment in log.segments]
    assert len(bases) > 2
    for number in range(1, len(bases)):
        names = [entry.name for entry in log.files.list(log.directory) if entry.name.endswith(".log")]
        assert names == [f"{base:020}.log" for base in bases[:number]]
        assert log.needs_flush
        flush = log.begin_flush()
        flush.run(log.files)
        log.finish_flush(flush, None)
        assert log.recovery_point == log.high_watermark == bases[number]
    log.flush()
    assert (log.recovery_point, log.needs_flush) == (3, False)


def names_of_logs(log: PartitionLog) -> list[str]:
    return [entry.name for entry in log.files.list(log.directory) if entry.name.endswith(".log")]


def test_a_segment_has_no_name_while_the_one_before_it_goes_on_behind_the_flush() -> None:
    """The bytes that are appended between the sync and the roll belong to the next flush, so the name of the
    new segment does too: with the name and without the bytes the log would have a hole."""
    log = opened(segment_bytes=400)
    append(log)
    flush = log.begin_flush()
    flush.run(log.files)
    append(log)
    append(log, size=300)
    assert [segment.base_offset for segment in log.segments] == [0, 2]
    files = log.files
    assert isinstance(files, MemoryFiles)
    begin = len(files.journal)
    log.finish_flush(flush, None)
    assert names_of_logs(log) == [f"{0:020}.log"]
    assert (log.recovery_point, log.needs_flush, log.has_unsynced_names) == (1, True, True)
    log.flush()
    assert names_of_logs(log) == [f"{0:020}.log", f"{2:020}.log"]
    assert (log.recovery_point, log.needs_flush) == (3, False)
    for state in crash_states(files, begin=begin):
        left = opened(MemoryFiles(base=state.disk))
        batches = [index for each in left.segments for index in each.windows()]
        offsets = [offset for index in batches for offset in index.base_offset]
        assert offsets == list(range(left.log_end_offset)), state.name


def rolled_during_a_flush() -> PartitionLog:
    """A log whose second segment was created behind the sync of a flush that has ended."""
    log = opened(segment_bytes=400)
    append(log)
    flush = log.begin_flush()
    flush.run(log.files)
    log.roll(NOW)
    log.finish_flush(flush, None)
    return log


def test_a_segment_has_no_name_before_the_indexes_of_the_one_before_it_are_durable() -> None:
    """A roll during a flush writes them, also when nothing is appended in between."""
    log = rolled_during_a_flush()
    files = log.files
    assert isinstance(files, MemoryFiles)
    left = MemoryFiles(base=what_is_synced(files))
    assert [entry.name for entry in left.list(log.directory) if entry.name == f"{1:020}.log"] == []
    assert (log.recovery_point, log.has_unsynced_names) == (1, True)
    log.flush()
    left = MemoryFiles(base=what_is_synced(files))
    assert left.read(f"{log.directory}/{1:020}.log", 100) == b""
    assert len(left.read(f"{log.directory}/{0:020}.timeindex", 100)) == 12


def test_a_new_segment_gets_its_name_although_nothing_else_is_appended() -> None:
    """Whoever flushes in groups flushes once more; so does a close."""
    log, flushes, told = opened(segment_bytes=400), FlushQueue(), list[Exception | None]()
    append(log)
    flushes.when_durable(log, told.append)
    flush = flushes.begin()
    assert flush is not None
    failed = flush.run()
    append(log)
    log.roll(NOW)
    flushes.finish(flush, failed)
    assert told == [None]
    assert flushes.is_dirty
    assert flushes.is_awaited
    flushes.run()
    assert log.active.is_named
    assert (log.recovery_point, log.needs_flush, flushes.is_dirty) == (2, False, False)


def test_a_close_gives_a_new_segment_its_name() -> None:
    log = rolled_during_a_flush()
    assert not log.active.is_named
    again = restarted(log)
    assert names_of_logs(again) == [f"{0:020}.log", f"{1:020}.log"]
    assert (again.log_end_offset, again.repairs) == (1, [])

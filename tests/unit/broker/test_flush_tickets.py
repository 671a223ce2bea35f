"""Flush tickets: who waits for which flush, in which order they are told, and what a failure does."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.unit.storage.client import NOW, PATH, Log, opened
from txnkafka.broker.flush import FlushTickets
from txnkafka.broker.log_manager import flush_is_due
from txnkafka.config import LogConfig
from txnkafka.env import LocalDataFiles
from txnkafka.errors import KafkaStorageError
from txnkafka.model import TopicPartition
from txnkafka.storage.recovery.log_loader import Start, open_log
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles


def test_one_flush_releases_all_that_wait_in_their_order() -> None:
    tickets, first, second = FlushTickets(), Log(), Log()
    taken = []
    for log in (first, second, first):
        log.plain()
        taken.append((tickets.take(log.log), log.log))
    assert len(tickets) == 3
    flush = tickets.begin()
    assert flush is not None
    assert [log for log, _ in flush.logs] == [first.log, second.log]
    assert flush.run() == {}
    released = tickets.finish(flush, {})
    assert [(each.ticket, each.log, each.error) for each in released] == [(*each, None) for each in taken]
    assert (len(tickets), tickets.begin()) == (0, None)
    assert (first.log.high_watermark, second.log.recovery_point) == (4, 2)


def test_what_comes_meanwhile_belongs_to_the_next_flush() -> None:
    tickets, log = FlushTickets(), Log()
    log.plain()
    tickets.take(log.log)
    flush = tickets.begin()
    log.plain()
    later = tickets.take(log.log)
    assert flush is not None
    assert tickets.begin() is None, "one is under way"
    assert [each.ticket for each in tickets.finish(flush, flush.run())] == [later - 1]
    assert log.log.high_watermark == 2
    following = tickets.begin()
    assert following is not None
    assert [each.ticket for each in tickets.finish(following, following.run())] == [later]
    assert log.log.high_watermark == 4


def test_a_host_may_sync_the_files_itself(tmp_path: Path) -> None:
    found = open_log(
        LocalDataFiles(), str(tmp_path), TopicPartition("t", 0), LogConfig(), Start(), now_ms=NOW
    )
    tickets, log = FlushTickets(), Log(found.log)
    log.plain()
    tickets.take(log.log)
    first = tickets.begin()
    assert first is not None
    assert first.descriptors() == [], "the epochs are to be written, too"
    tickets.finish(first, first.run())
    log.plain()
    tickets.take(log.log)
    second = tickets.begin()
    assert second is not None
    assert second.descriptors() == [(log.log, log.log.active.file("log").fileno())]
    assert len(tickets.finish(second, {})) == 1
    in_memory = Log()
    in_memory.plain()
    tickets.take(in_memory.log)
    third = tickets.begin()
    assert third is not None
    assert third.descriptors() == []
    log.log.close()


def test_a_ticket_that_is_not_awaited_comes_with_the_next_flush() -> None:
    tickets, first, second = FlushTickets(), Log(), Log()
    first.plain()
    tickets.take(first.log, is_awaited=False)
    assert (tickets.is_dirty, tickets.is_awaited) == (True, False)
    second.plain()
    tickets.take(second.log)
    assert tickets.is_awaited
    flush = tickets.begin()
    assert flush is not None
    assert not tickets.is_awaited
    assert [each.log for each in tickets.finish(flush, flush.run())] == [first.log, second.log]
    tickets.hurry()
    assert not tickets.is_awaited, "nothing is dirty"
    first.plain()
    tickets.take(first.log, is_awaited=False)
    tickets.hurry()
    assert tickets.is_awaited


def test_a_ticket_that_goes_first_is_flushed_alone() -> None:
    """What waits for it appends to a log that is dirty already, and the two appends share a flush."""
    tickets, data, state = FlushTickets(), Log(), Log()
    for log in (state, data):
        log.plain()
    opened, written = tickets.take(state.log), tickets.take(data.log, goes_first=True)
    first = tickets.begin()
    assert first is not None
    assert [log for log, _ in first.logs] == [data.log]
    assert [each.ticket for each in tickets.finish(first, first.run())] == [written]
    assert tickets.is_awaited
    state.plain()
    decided = tickets.take(state.log)
    second = tickets.begin()
    assert second is not None
    assert [each.ticket for each in tickets.finish(second, second.run())] == [opened, decided]
    assert (state.log.recovery_point, tickets.is_dirty, tickets.is_awaited) == (4, False, False)


def test_tickets_that_go_first_hold_others_up_for_one_flush() -> None:
    tickets, eager, patient = FlushTickets(), Log(), Log()
    patient.plain()
    tickets.take(patient.log)
    groups = []
    for _ in range(4):
        eager.plain()
        tickets.take(eager.log, goes_first=True)
        flush = tickets.begin()
        assert flush is not None
        groups.append({log for log, _ in flush.logs})
        tickets.finish(flush, flush.run())
        patient.plain()
        tickets.take(patient.log)
    assert groups == [{eager.log}, {eager.log, patient.log}] * 2


@pytest.mark.parametrize("count", [1, 2])
def test_a_log_that_goes_first_and_is_deleted_is_not_flushed(count: int) -> None:
    tickets, deleted, others = FlushTickets(), Log(), [Log() for _ in range(count)]
    for log in (deleted, *others):
        log.plain()
    tickets.take(deleted.log, goes_first=True)
    for other in others:
        tickets.take(other.log)
    tickets.forget(deleted.log, KafkaStorageError("deleted"))
    flush = tickets.begin()
    assert flush is not None
    assert [log for log, _ in flush.logs] == [other.log for other in others]


def test_a_flush_is_finished_once_and_by_its_own() -> None:
    tickets, log = FlushTickets(), Log()
    log.plain()
    tickets.take(log.log)
    flush = tickets.begin()
    assert flush is not None
    tickets.finish(flush, {})
    with pytest.raises(ValueError, match="under way"):
        tickets.finish(flush, {})


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
    plan, tickets = FaultPlan(), FlushTickets()
    broken, sound = Log(opened(FaultyFiles(MemoryFiles(), plan))), Log()
    broken.plain()
    broken.log.flush()
    for log in (broken, sound):
        log.plain()
        tickets.take(log.log)
    plan.__init__(1, error, "sync")
    flush = tickets.begin()
    assert flush is not None
    released = tickets.finish(flush, flush.run())
    assert [each.error and each.error.errno for each in released] == [error, None]
    assert (broken.log.high_watermark, sound.log.high_watermark) == (2, 2)
    with pytest.raises(KafkaStorageError):
        broken.plain()
    sound.plain()


def test_what_waits_behind_a_failed_flush_is_never_acknowledged() -> None:
    """Even though the next sync succeeds: nobody knows what the failed one has left."""
    plan, tickets = FaultPlan(), FlushTickets()
    log = Log(opened(FaultyFiles(MemoryFiles(), plan)))
    log.plain()
    log.log.flush()
    log.plain()
    tickets.take(log.log)
    plan.__init__(1, errno.EIO, "sync")
    flush = tickets.begin()
    log.plain()
    tickets.take(log.log)
    assert flush is not None
    tickets.finish(flush, flush.run())
    following = tickets.begin()
    assert following is not None
    (released,) = tickets.finish(following, following.run())
    assert released.error is not None
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

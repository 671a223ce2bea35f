"""Flush tickets, and flushes of a log that changes at the same time."""

from __future__ import annotations

import pytest

from tests.unit.storage.logs import NOW, append, opened
from txnkafka.broker.flush import FlushTickets
from txnkafka.errors import FlushUnderWayError
from txnkafka.storage.log.truncation import truncate_to


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


def test_what_is_appended_during_a_flush_waits_for_the_next() -> None:
    log, tickets = opened(), FlushTickets()
    append(log)
    first = tickets.take(log)
    flush = tickets.begin()
    assert flush is not None
    append(log)
    second = tickets.take(log)
    assert tickets.begin() is None
    assert [each.ticket for each in tickets.finish(flush, flush.run())] == [first]
    flush = tickets.begin()
    assert flush is not None
    assert [(each.ticket, each.error) for each in tickets.finish(flush, flush.run())] == [(second, None)]
    assert not len(tickets)


def test_every_ticket_of_a_log_that_fails_gets_the_error() -> None:
    log, tickets = opened(), FlushTickets()
    append(log)
    tickets.take(log)
    flush = tickets.begin()
    assert flush is not None
    tickets.take(log)
    error = OSError("broken")
    assert [released.error for released in tickets.finish(flush, {log: error})] == [error]
    flush = tickets.begin()
    assert flush is not None
    assert [released.error for released in tickets.finish(flush, flush.run())] == [error]
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

"""Tickets, and what a flush says of a log that changes meanwhile."""

from __future__ import annotations

from tests.unit.storage.logs import NOW, append, opened
from txnkafka.broker.flush import FlushTickets
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


def test_every_ticket_of_a_log_that_fails_is_told_the_error() -> None:
    log, tickets = opened(), FlushTickets()
    append(log)
    tickets.take(log)
    flush = tickets.begin()
    assert flush is not None
    tickets.take(log)
    error = OSError("broken")
    assert [each.error for each in tickets.finish(flush, {log: error})] == [error]
    flush = tickets.begin()
    assert flush is not None
    assert [each.error for each in tickets.finish(flush, flush.run())] == [error]
    assert log.high_watermark == 0


def test_a_log_that_is_cut_during_a_flush() -> None:
    """What the flush made durable is not what stands there now."""
    log = opened(segment_bytes=400)
    for _ in range(4):
        append(log)
    assert len(log.segments) == 2
    flush = log.begin_flush()
    truncate_to(log, 1, now_ms=NOW)
    for _ in range(3):
        append(log)
    flush.run(log.files)
    log.finish_flush(flush, None)
    assert (log.recovery_point, log.high_watermark) == (1, 0)
    log.flush()
    assert (log.recovery_point, log.high_watermark) == (4, 4)

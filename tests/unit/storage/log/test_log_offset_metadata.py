"""Positions of the offsets where readers stop: which of them need no lookup in the log, and which are dropped
when the log is truncated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.models.fetch_filter import scan_log
from tests.unit.storage.client import NOW, Log, data
from txnkafka.model import IsolationLevel
from txnkafka.storage.log.log_offset_metadata import LogOffsetMetadata, bytes_between
from txnkafka.storage.log.log_read import read
from txnkafka.storage.log.log_segment import LogSegment
from txnkafka.storage.log.truncation import delete_records, truncate_to

SIZE = len(data(count=2))


@contextmanager
def no_lookups() -> Iterator[None]:
    """Makes every lookup in the log fail."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LogSegment, "find", None)
        yield


def transaction_bytes(log: Log, producer_id: int, sequence: int, count: int = 2) -> int:
    before = log.log.active.size
    log.transactional(producer_id, sequence, count)
    return log.log.active.size - before


def test_the_high_watermark_is_where_the_log_ended_when_its_flush_began() -> None:
    log = Log()
    log.plain()
    flush = log.log.begin_flush()
    log.plain()
    log.log.finish_flush(flush, None)
    with no_lookups():
        assert log.log.offsets.high_watermark_metadata == (2, 0, SIZE)
        assert log.log.offsets.last_stable_metadata == (2, 0, SIZE)
        assert log.log.log_end_metadata == (4, 0, 2 * SIZE)


def test_a_roll_while_a_flush_is_under_way() -> None:
    log = Log()
    log.plain()
    flush = log.log.begin_flush()
    log.log.roll(NOW)
    log.plain()
    log.log.finish_flush(flush, None)
    with no_lookups():
        assert log.log.offsets.high_watermark_metadata == (2, 2, 0)
    log.log.roll(NOW)
    assert log.log.log_end_metadata == (4, 4, 0)


def test_the_first_unstable_offset_is_where_its_transaction_began() -> None:
    """Tests several open transactions, also one that has ended but whose marker is not durable yet."""
    log = Log()
    log.plain()
    first = transaction_bytes(log, 1, 0)
    transaction_bytes(log, 2, 0, 3)
    log.transactional(1, 2)
    log.plain()
    log.log.flush()
    with no_lookups():
        assert log.log.offsets.last_stable_metadata == (2, 0, SIZE)
        log.end(2)
        log.end(1)
        assert log.log.offsets.last_stable_metadata == (2, 0, SIZE)
    log.transactional(3, 0)
    flush = log.log.begin_flush()
    log.log.finish_flush(flush, None)
    assert log.log.last_stable_offset == log.log.log_end_offset - 2
    log.transactional(4, 0)
    with no_lookups():
        third = log.log.offsets.last_stable_metadata
        log.end(3)
        log.log.offsets.advance_high_watermark(log.log.log_end_offset)
        fourth = log.log.offsets.last_stable_metadata
    assert (third.offset + 2, third.position + first) == (fourth.offset, fourth.position)


def test_a_transaction_that_ended_is_unstable_until_its_marker_is_durable() -> None:
    """The second transaction becomes the oldest one before its position was looked up."""
    log = Log()
    first = transaction_bytes(log, 1, 0)
    log.transactional(2, 0)
    log.end(1)
    flush = log.log.begin_flush()
    log.end(2)
    log.log.finish_flush(flush, None)
    with no_lookups():
        assert log.log.offsets.last_stable_metadata == (2, 0, first)


def test_a_consumer_at_the_high_watermark_gets_what_came_since_without_a_lookup() -> None:
    log = Log(segment_bytes=8 * SIZE)
    for count in (1, 2, 1, 3):  # seven batches in one segment
        waits_at = log.log.high_watermark
        for _ in range(count):
            log.plain()
        log.log.flush()
        if waits_at:
            with no_lookups(), read(log.log, waits_at, max_bytes=count * SIZE).records as records:
                assert (records.size, records.base_offset) == (count * SIZE, 0)


def test_later_batches_are_found_without_a_lookup() -> None:
    """Across rolls, with any size limit."""
    log = Log(segment_bytes=5 * SIZE)
    for count in (1, 2, 1, 3, 1, 1, 2, 4):
        waits_at = log.log.high_watermark
        for _ in range(count):
            log.plain()
        log.log.flush()
        for max_bytes in (1, count * SIZE - 1, count * SIZE, 1 << 20):
            answers = [read(log.log, waits_at, max_bytes=max_bytes)]
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(log.log.offsets.positions, "waited_at", None)
                answers.append(read(log.log, waits_at, max_bytes=max_bytes))
            known, found = (
                (bytes(answer.records.read()), answer.records.position, *answer[1:]) for answer in answers
            )
            assert known == found
            for answer in answers:
                answer.records.release()


def test_where_consumers_waited_is_forgotten_when_the_log_is_cut() -> None:
    """Batches of another size replace the truncated ones."""
    log = Log()
    for _ in range(3):
        log.plain()
        log.log.flush()
    truncate_to(log.log, 2, now_ms=NOW)
    for _ in range(6):
        log.plain(1)
    log.log.flush()
    with read(log.log, 6, max_bytes=1 << 20).records as records:
        assert [header.base_offset for header in scan_log(bytes(records.read()))[0]] == [6, 7]


def test_positions_after_recovery_are_looked_up_once() -> None:
    log = Log()
    log.plain()
    log.transactional(1, 0)
    log.plain()
    log.restart()
    assert log.log.offsets.last_stable_metadata == (2, 0, SIZE)
    assert log.log.offsets.high_watermark_metadata.offset == 6
    with no_lookups():
        assert log.log.offsets.last_stable_metadata == (2, 0, SIZE)
        assert log.log.offsets.high_watermark_metadata.position == log.log.active.size
    log.end(1)
    log.log.flush()
    with no_lookups():
        assert log.log.offsets.last_stable_metadata == log.log.log_end_metadata


def test_a_log_start_in_the_first_unstable_batch_is_looked_up_once() -> None:
    log = Log()
    log.plain()
    log.transactional(1, 0)
    log.plain()
    log.log.flush()
    delete_records(log.log, 3)
    assert log.log.last_stable_offset == 2
    with no_lookups():
        assert log.log.last_stable_offset == 2
        assert log.log.offsets.last_stable_metadata == (2, 0, SIZE)
    delete_records(log.log, 4)
    assert log.log.offsets.last_stable_metadata.offset == 4


@pytest.mark.parametrize("count", [1, 3])
def test_a_truncation_forgets_positions(count: int) -> None:
    """The offsets are assigned again, at other positions."""
    log = Log()
    log.plain(4)
    log.transactional(1, 0)
    log.log.flush()
    before = log.log.offsets.last_stable_metadata, log.log.offsets.high_watermark_metadata
    truncate_to(log.log, 0, now_ms=NOW)
    log.plain(count)
    log.plain(4 - count)
    log.transactional(1, 0)
    log.log.flush()
    after = log.log.offsets.last_stable_metadata, log.log.offsets.high_watermark_metadata
    assert [each.offset for each in before] == [each.offset for each in after] == [4, 6]
    assert all(old.position < new.position for old, new in zip(before, after, strict=True))


def test_bytes_between_two_positions_in_several_segments() -> None:
    log = Log(segment_bytes=2 * SIZE)
    for _ in range(7):
        log.plain()
    log.log.flush()
    segments = log.log.segments
    positions = [log.log.offsets.positions.look_up(2 * i) for i in range(8)]
    with no_lookups():
        for i, begin in enumerate(positions):
            for j, end in enumerate(positions):
                assert bytes_between(segments, begin, end) == max(0, j - i) * SIZE
    # deleted segments are not counted
    assert bytes_between(segments[2:], positions[1], positions[6]) == 2 * SIZE
    end = log.log.offsets.high_watermark_metadata
    assert bytes_between(segments, LogOffsetMetadata(0, 0, 0), end) == 7 * SIZE


def test_a_parked_fetch_needs_no_lookup() -> None:
    """An empty read returns the position where the fetch waits, from which the bytes appended since are
    computed."""
    log = Log()
    log.plain()
    log.log.flush()
    for level in IsolationLevel:
        with no_lookups(), read(log.log, 2, max_bytes=100, isolation_level=level).records as records:
            assert records.size == 0
        waits_at = LogOffsetMetadata(2, records.base_offset, records.position)
        assert bytes_between(log.log.segments, waits_at, log.log.offsets.high_watermark_metadata) == 0
    log.plain()
    log.log.flush()
    with no_lookups():
        assert bytes_between(log.log.segments, waits_at, log.log.offsets.high_watermark_metadata) == SIZE


def test_an_empty_read_above_the_high_watermark_says_where_its_offset_is() -> None:
    log = Log()
    log.plain()
    log.log.flush()
    log.plain()
    log.plain()
    with read(log.log, 5, max_bytes=100).records as records:
        assert (records.base_offset, records.position, records.size) == (0, 2 * SIZE, 0)

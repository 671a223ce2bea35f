"""Reads from a log that this process owns: where they begin, where they end, how many bytes they return."""

from __future__ import annotations

import pytest

from tests.unit.storage.client import Log, data
from tests.unit.storage.reads import Answer, read
from txnkafka._core.scan import scan
from txnkafka.errors import OffsetOutOfRangeError
from txnkafka.model import IsolationLevel

COMMITTED, UNCOMMITTED = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
SIZE = len(data(count=2))


def offsets(answer: Answer) -> list[tuple[int, int]]:
    return [(each.base_offset, each.last_offset) for each in scan(answer.records)]


def test_ul_41_where_each_kind_of_reader_stops() -> None:
    log = Log()
    log.plain()
    log.transactional(7, 0)
    log.log.flush()
    log.plain()
    ends = {COMMITTED: 2, UNCOMMITTED: 4, None: 6}
    for level, end in ends.items():
        answer = read(log.log, 0, max_bytes=10**6, isolation_level=level)
        assert offsets(answer)[-1][1] + 1 == end
        assert (answer.aborted_transactions is None) == (level is not COMMITTED)
        assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (4, 2, 0)
        assert not read(log.log, end, max_bytes=10**6, isolation_level=level).records


def test_ul_68_gaps_and_ends() -> None:
    log = Log()
    log.log.offsets.on_append(2)  # as compaction leaves it
    log.plain()
    log.log.flush()
    assert offsets(read(log.log, 0, max_bytes=100)) == [(2, 3)]
    assert not read(log.log, 4, max_bytes=100).records
    for offset in (-1, 5):
        with pytest.raises(OffsetOutOfRangeError, match="begins at 0 and ends before 4"):
            read(log.log, offset, max_bytes=100)


def test_ul_69_at_least_one_batch_or_none() -> None:
    """Kafka cuts the last batch at the limit; here only whole batches are returned."""
    log = Log()
    for _ in range(3):
        log.plain()
    log.log.flush()
    for max_bytes, count in ((0, 0), (SIZE - 1, 0), (SIZE, 1), (2 * SIZE - 1, 1), (2 * SIZE, 2), (10**6, 3)):
        answer = read(log.log, 0, max_bytes=max_bytes, at_least_one=False)
        assert len(offsets(answer)) == count
        assert len(offsets(read(log.log, 1, max_bytes=max_bytes))) == max(count, 1)


def test_a_read_ends_with_its_segment() -> None:
    log = Log(segment_bytes=2 * SIZE)
    for _ in range(5):
        log.plain()
    log.log.flush()
    found = []
    offset = 0
    while answer := offsets(read(log.log, offset, max_bytes=10**6)):
        found.append(answer)
        offset = answer[-1][1] + 1
    assert found == [[(0, 1), (2, 3)], [(4, 5), (6, 7)], [(8, 9)]]


def test_a_batch_larger_than_what_a_lookup_reads() -> None:
    log = Log()
    log.append(data(count=8000))
    log.plain()
    log.log.flush()
    assert offsets(read(log.log, 8000, max_bytes=1)) == [(8000, 8001)]
    assert offsets(read(log.log, 7999, max_bytes=1)) == [(0, 7999)]


def test_many_segments_are_looked_up_again_and_again() -> None:
    """Their indexes are dropped from memory in between."""
    log = Log(segment_bytes=SIZE)
    for _ in range(30):
        log.plain()
    log.log.flush()
    for offset in (*range(59, -1, -1), *range(60)):
        assert offsets(read(log.log, offset, max_bytes=1)) == [(offset // 2 * 2, offset // 2 * 2 + 1)]
    log.restart()
    for offset in range(60):
        assert offsets(read(log.log, offset, max_bytes=1)) == [(offset // 2 * 2, offset // 2 * 2 + 1)]


def test_aborted_transactions_are_those_of_what_is_returned() -> None:
    """Sorted by first offset, although the index is sorted by marker."""
    log = Log()
    log.transactional(7, 0)  # 0, 1
    log.transactional(8, 0)  # 2, 3
    log.end(8, commit=False)  # 4
    log.end(7, commit=False)  # 5
    log.transactional(9, 0)  # 6, 7
    log.end(9, commit=False)  # 8
    log.log.flush()

    def aborted(offset: int, max_bytes: int) -> list[int]:
        answer = read(log.log, offset, max_bytes=max_bytes)
        assert answer.aborted_transactions is not None
        return [each.producer_id for each in answer.aborted_transactions]

    assert aborted(0, 10**6) == [7, 8, 9]
    assert aborted(0, 1) == [7]
    assert aborted(2, 1) == [7, 8]
    assert aborted(5, 1) == [7]
    assert aborted(6, 1) == [9]

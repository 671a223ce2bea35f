"""Which records readers see, in both isolation levels and without one."""

from __future__ import annotations

import pytest

from tests.unit.storage.logs import append, end, opened
from tests.unit.storage.reads import read
from txnkafka._core.scan import scan
from txnkafka.model import IsolationLevel
from txnkafka.storage.log.partition_log import PartitionLog

COMMITTED, UNCOMMITTED = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED


def offsets(log: PartitionLog, isolation_level: IsolationLevel | None, offset: int = 0) -> list[int]:
    """Return the base offsets of all batches that such a reader gets."""
    found: list[int] = []
    while data := read(log, offset, max_bytes=1 << 20, isolation_level=isolation_level).records:
        batches = scan(data)
        found += batches.base_offset
        offset = batches.last_offset[-1] + 1
    return found


def aborted(log: PartitionLog, offset: int, max_bytes: int = 1 << 20) -> list[tuple[int, int, int]]:
    answer = read(log, offset, max_bytes=max_bytes).aborted_transactions
    assert answer is not None
    return [(each.producer_id, each.first_offset, each.last_offset) for each in answer]


@pytest.fixture
def log() -> PartitionLog:
    """Offsets 0 and 1 belong to transactions that are aborted at 2 and 3, the later one first; 4 is committed
    at 5, 6 is not transactional, 7 is open, 8 is not transactional, 9 is not flushed."""
    log = opened(segment_bytes=10_000)
    append(log, producer_id=1, transactional=True)
    append(log, producer_id=2, transactional=True)
    end(log, 2, commit=False)
    end(log, 1, commit=False)
    append(log, producer_id=3, transactional=True)
    end(log, 3, commit=True)
    append(log)
    append(log, producer_id=4, transactional=True)
    append(log)
    log.flush()
    append(log)
    return log


def test_up_to_where_a_reader_sees(log: PartitionLog) -> None:
    assert (log.last_stable_offset, log.high_watermark, log.log_end_offset) == (7, 9, 10)
    assert offsets(log, COMMITTED) == list(range(7))
    assert offsets(log, UNCOMMITTED) == list(range(9))
    assert offsets(log, None) == list(range(10))


def test_the_offsets_of_an_answer_are_those_of_one_moment(log: PartitionLog) -> None:
    answer = read(log, 0, max_bytes=1 << 20)
    assert answer[2:] == (9, 7, 0)


def test_aborted_transactions_come_by_their_first_offsets(log: PartitionLog) -> None:
    """The index is sorted by marker."""
    assert aborted(log, 0) == [(1, 0, 3), (2, 1, 2)]


def test_an_aborted_transaction_that_began_before_the_read(log: PartitionLog) -> None:
    assert aborted(log, 1) == [(1, 0, 3), (2, 1, 2)]
    assert aborted(log, 3) == [(1, 0, 3)]
    assert aborted(log, 4) == []


def test_an_aborted_transaction_that_begins_behind_the_read(log: PartitionLog) -> None:
    assert aborted(log, 0, max_bytes=1) == [(1, 0, 3)]


def test_who_reads_uncommitted_is_told_of_no_transactions(log: PartitionLog) -> None:
    for level in (UNCOMMITTED, None):
        assert read(log, 0, max_bytes=1 << 20, isolation_level=level).aborted_transactions is None


def test_the_marker_is_in_a_later_segment() -> None:
    log = opened(segment_bytes=250)
    append(log, producer_id=1, transactional=True)
    for _ in range(6):
        append(log)
    end(log, 1, commit=False)
    log.flush()
    assert len(log.segments) > 2
    assert aborted(log, 0) == [(1, 0, 7)]


def test_an_empty_log() -> None:
    log = opened()
    assert (log.last_stable_offset, log.high_watermark) == (0, 0)
    assert read(log, 0, max_bytes=100)[1:] == ([], 0, 0, 0)

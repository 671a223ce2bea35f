"""Every fetch of small logs with transactions: each offset, isolation level and size, compared with the bytes
of the segments and with a simple model of the consumer."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import LONG
from tests.models.fetch_filter import AbortedTxn, aborted_in, fetch, last_stable_offset, scan_log
from tests.models.record_batch import BatchHeader
from tests.unit.storage.client import NOW, Log
from txnkafka.errors import OffsetOutOfRangeError
from txnkafka.model import IsolationLevel
from txnkafka.storage.log.log_read import read

COMMITTED, UNCOMMITTED = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
LEVELS = (COMMITTED, UNCOMMITTED, None)
LARGEST = 1 << 20
PRODUCERS = st.integers(1, 3)
STEPS = st.one_of(
    st.tuples(st.just("plain"), st.integers(1, 3)),
    st.tuples(st.just("data"), PRODUCERS),
    st.tuples(st.just("data"), PRODUCERS),
    st.tuples(st.sampled_from(["commit", "abort", "abort"]), PRODUCERS),
    st.tuples(st.just("roll"), st.just(0)),
)


class Placed(NamedTuple):
    """A batch and its segment."""

    base: int
    header: BatchHeader


class Files:
    """A log as its ``.log`` files."""

    def __init__(self, log: Log) -> None:
        segments = [each for each in log.log.segments if each.size]
        self.contents = {
            each.base_offset: log.log.files.read(each.path("log"), LARGEST) for each in segments
        }
        self.batches = [
            Placed(base, header) for base, content in self.contents.items() for header in scan_log(content)[0]
        ]
        self.headers = [each.header for each in self.batches]
        self.aborted = aborted_in(self.headers)
        below = [each for each in self.headers if each.last_offset < log.log.high_watermark]
        self.stable = min(
            last_stable_offset(below, log.log.high_watermark),
            *(e.first_offset for e in _ended(self.headers) if e.last_offset >= log.log.high_watermark),
            log.log.high_watermark,
        )

    def part(
        self, offset: int, limit: int, max_bytes: int, at_least_one: bool
    ) -> tuple[int, int, bytes] | None:
        """Return the segment, the position and the bytes of the answer."""
        behind = [batch for batch in self.batches if batch.header.last_offset >= offset]
        if not behind or behind[0].header.last_offset >= limit:
            return None
        base, first = behind[0]
        wanted = max(max_bytes, first.size) if at_least_one else max_bytes
        ends = [
            batch.header.position + batch.header.size
            for batch in self.batches
            if batch.base == base and batch.header.last_offset < limit
        ]
        end = min(first.position + wanted, max(ends))
        return (base, first.position, self.contents[base][first.position : end]) if wanted else None


def _ended(headers: list[BatchHeader]) -> list[AbortedTxn]:
    """Return the completed transactions, committed ones as if they were aborted."""
    return aborted_in([each._replace(control_type=0) if each.control_type == 1 else each for each in headers])


def live(steps: list[tuple[str, int]], **configs: int) -> Log:
    log, sequences = Log(**configs), dict.fromkeys((1, 2, 3), 0)
    for what, value in steps:
        if what == "plain":
            log.plain(value)
        elif what == "data":
            log.transactional(value, sequences[value], 1 + value % 2)
            sequences[value] += 1 + value % 2
        elif what == "flush":
            log.log.flush()
        elif what == "roll":
            log.log.roll(NOW)
        elif sequences[value]:
            log.end(value, commit=what == "commit")
    return log


@settings(max_examples=300 if LONG else 40, deadline=None)
@given(
    st.lists(STEPS, min_size=4, max_size=14),
    st.lists(STEPS, max_size=4),
    st.sampled_from([0, 150, 4096]),
    st.booleans(),
)
def test_every_fetch(
    flushed: list[tuple[str, int]], unflushed: list[tuple[str, int]], interval: int, restarted: bool
) -> None:
    log = live([*flushed, ("flush", 0), *unflushed], index_interval_bytes=interval)
    if restarted:
        log.restart()
    files = Files(log)
    assert files.stable == log.log.last_stable_offset
    ends = (each.size + more for each in files.headers[:3] for more in (-1, 0, 70))
    sizes = sorted({0, 1, LARGEST, *ends})
    for offset in range(log.log.log_end_offset + 1):
        for level in LEVELS:
            for max_bytes in sizes:
                for at_least_one in (True, False):
                    check(log, files, offset, level, max_bytes, at_least_one=at_least_one)
    for offset in (-1, log.log.log_end_offset + 1):
        with pytest.raises(OffsetOutOfRangeError):
            read(log.log, offset, max_bytes=1)


def check(
    log: Log, files: Files, offset: int, level: IsolationLevel | None, max_bytes: int, *, at_least_one: bool
) -> None:
    high, end = log.log.high_watermark, log.log.log_end_offset
    limit = {COMMITTED: files.stable, UNCOMMITTED: high, None: end}[level]
    answer = read(log.log, offset, max_bytes=max_bytes, isolation_level=level, at_least_one=at_least_one)
    with answer.records as records:
        found, place = bytes(records.read()), (records.base_offset, records.position)
    assert answer[2:] == (log.log.high_watermark, files.stable, 0)
    expected = files.part(offset, limit, max_bytes, at_least_one) if offset < limit else None
    if expected is None:
        assert found == b""
        assert answer.aborted_transactions == (None if level is not COMMITTED else [])
        return
    assert (*place, found) == expected
    if level is not COMMITTED:
        assert answer.aborted_transactions is None
        return
    headers, _, whole = scan_log(found)
    told = [AbortedTxn(*each[1:]) for each in answer.aborted_transactions or []]
    behind = headers[-1].last_offset + 1 if headers else offset
    exact = [each for each in files.aborted if each.last_offset >= offset and each.first_offset < behind]
    assert told == sorted(told, key=lambda each: each.first_offset)
    assert set(exact) <= set(told) <= {each for each in files.aborted if each.last_offset >= offset}
    if headers and (whole == len(found) == headers[0].size or behind == limit):
        assert set(told) == set(exact)  # the end of the slice is known
    seen = [list(fetch(found, headers, offset, limit, each)) for each in (told, exact)]
    assert seen[0] == seen[1]

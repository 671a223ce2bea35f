"""Index entries for many batches at once equal those for single batches."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.storage.client import NOW, PATH, data
from txnkafka._core.index_entries import index_entries
from txnkafka._core.scan import scan
from txnkafka.config import LogConfig
from txnkafka.storage.log.log_segment import LogSegment
from txnkafka.testing.memory_files import MemoryFiles

SIZE = len(data(count=1))
STATE = ("rolling_timestamp", "max_timestamp", "max_timestamp_offset", "bytes_since_entry")


def segment(base: int, interval: int) -> LogSegment:
    return LogSegment(MemoryFiles(), PATH, base, LogConfig(index_interval_bytes=interval), created_ms=NOW)


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 30)), max_size=6), max_size=5),
    st.integers(0, 4 * SIZE),
    st.integers(0, 2**40),
)
def test_many_at_once_as_one_by_one(windows: list[list[tuple[int, int]]], interval: int, base: int) -> None:
    """A count of 0 is the batch before, once more."""
    together, alone = segment(base, interval), segment(base, interval)
    position, offset = 0, base
    before = data(count=1, base_offset=offset)
    for window in windows:
        log = bytearray()
        for count, timestamp in window:
            if count:
                before = data(count=count, timestamp=timestamp, base_offset=offset)
            log += before
            offset += count
        batches = scan(log, position=position)
        together.note_all(batches)
        for each in batches:
            alone.note(each.position, each.size, each.last_offset, each.max_timestamp)
        position += len(log)
    for name in STATE:
        assert getattr(together, name) == getattr(alone, name), name
    assert together.offset_index.content == alone.offset_index.content
    assert together.time_index.content == alone.time_index.content
    offsets = [entry for entry, _ in struct.iter_unpack(">ii", together.offset_index.content)]
    assert offsets == sorted(set(offsets))


def test_an_offset_that_does_not_fit_is_refused() -> None:
    batches = scan(data(count=1, base_offset=2**31) + data(count=1, base_offset=2**31 + 1))
    with pytest.raises(OverflowError, match="offset 2147483648 at 0"):
        index_entries(
            batches,
            base_offset=0,
            interval_bytes=0,
            bytes_since_entry=1,
            max_timestamp=-1,
            max_timestamp_offset=0,
            newest_entry=-1,
            last_entry=-1,
        )

"""The sparse indexes, compared with a plain list of entries."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from txnkafka.storage.formats import OffsetIndex, TimeIndex
from txnkafka.storage.formats.index import TIME_ENTRY

BASE = 5_000_000_000
OFFSET_ENTRIES = [(8, 490), (9, 924), (14, 1363)]
TIME_ENTRIES = [(1000, 8), (2000, 9), (2500, 14)]

steps = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), max_size=40)


def offset_file(entries: list[tuple[int, int]]) -> bytes:
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def time_file(entries: list[tuple[int, int]]) -> bytes:
    return b"".join(struct.pack(">qi", *entry) for entry in entries)


def running_sums(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(sum(a for a, _ in pairs[:i]), sum(b for _, b in pairs[:i])) for i in range(1, len(pairs) + 1)]


def test_offset_entries() -> None:
    index = OffsetIndex(offset_file(OFFSET_ENTRIES), BASE)
    assert list(index) == [(BASE + 8, 490), (BASE + 9, 924), (BASE + 14, 1363)]
    assert (len(index), index[0], index[-1]) == (3, (BASE + 8, 490), (BASE + 14, 1363))
    assert index.problems(1545, end_offset=BASE + 16) == []
    for entry in (3, -4):
        with pytest.raises(IndexError):
            index[entry]


def test_time_entries() -> None:
    index = TimeIndex(time_file(TIME_ENTRIES), BASE)
    assert list(index) == [(1000, BASE + 8), (2000, BASE + 9), (2500, BASE + 14)]
    assert (len(index), index[1]) == (3, (2000, BASE + 9))
    assert index.problems(end_offset=BASE + 15) == []


def test_empty_files() -> None:
    assert OffsetIndex(b"", 7).lookup(100) == (7, 0)
    assert TimeIndex(b"", 7).lookup(100) == (-1, 7)
    assert OffsetIndex(b"", 7).problems(0) == TimeIndex(b"", 7).problems() == []


@given(steps, st.integers(0, 5), st.integers(0, 7), st.integers(-5, 2500))
def test_offset_lookup(pairs: list[tuple[int, int]], zeros: int, odd: int, target: int) -> None:
    entries = running_sums(pairs)
    index = OffsetIndex(offset_file(entries) + bytes(8 * zeros + odd), BASE)
    below = [(BASE + offset, position) for offset, position in entries if offset <= target]
    assert len(index) == len(entries)
    assert index.lookup(BASE + target) == (below[-1] if below else (BASE, 0))
    assert len(index.problems(2**31)) == (odd > 0)


@given(steps, st.integers(0, 5), st.integers(0, 11), st.integers(-5, 2500))
def test_time_lookup(pairs: list[tuple[int, int]], zeros: int, odd: int, target: int) -> None:
    assume(pairs or zeros != 1)  # which is an entry, see below
    entries = running_sums(pairs)
    index = TimeIndex(time_file(entries) + bytes(12 * zeros + odd), BASE)
    below = [(timestamp, BASE + offset) for timestamp, offset in entries if timestamp <= target]
    assert len(index) == len(entries)
    assert index.lookup(target) == (below[-1] if below else (-1, BASE))
    assert len(index.problems()) == (odd > 0)


def test_twelve_zeros_are_the_entry_of_a_first_record_with_timestamp_0() -> None:
    zeros = bytes(TIME_ENTRY.size)
    for index in (TimeIndex(zeros, BASE), TimeIndex.owned(BASE, zeros)):
        assert (list(index), index.last_key, index.problems()) == ([(0, BASE)], 0, [])
        assert index.is_saved == isinstance(index.content, bytearray)
    assert list(TimeIndex(2 * zeros, BASE)) == list(TimeIndex.owned(BASE, 2 * zeros)) == []


@given(st.binary(max_size=200), st.integers(-(2**63), 2**63 - 1))
def test_random_bytes_never_raise(data: bytes, target: int) -> None:
    for index in (OffsetIndex(data, BASE), TimeIndex(data, BASE)):
        assert len(index.lookup(target)) == 2
        assert len(list(index)) == len(index)
    assert isinstance(OffsetIndex(data, BASE).problems(100, end_offset=BASE + 10, last_offsets={}), list)
    assert isinstance(TimeIndex(data, BASE).problems(end_offset=BASE + 10), list)


@pytest.mark.parametrize(
    ("entries", "entry", "text"),
    [
        ([(8, 490), (8, 924)], 1, f"offset {BASE + 8} follows {BASE + 8}"),
        ([(8, 490), (9, 490)], 1, "position 490 follows 490"),
        ([(8, 490), (9, 1545)], 1, "position 1545 is outside 0..1544"),
        ([(8, 490), (16, 924)], 1, f"offset {BASE + 16} is outside {BASE}..{BASE + 15}"),
        ([(-1, 490), (9, 924)], 0, f"offset {BASE - 1} is outside {BASE}..{BASE + 15}"),
        ([(8, -1), (9, 924)], 0, "position -1 is outside 0..1544"),
        ([(7, 490), (9, 924)], 0, f"no batch at position 490 ends with offset {BASE + 7}"),
        ([(8, 490), (9, 923)], 1, f"no batch at position 923 ends with offset {BASE + 9}"),
    ],
)
def test_offset_index_that_does_not_fit(entries: list[tuple[int, int]], entry: int, text: str) -> None:
    index = OffsetIndex(offset_file(entries), BASE)
    last_offsets = {490: BASE + 8, 924: BASE + 9}
    assert (entry, text) in index.problems(1545, end_offset=BASE + 16, last_offsets=last_offsets)


@pytest.mark.parametrize(
    ("entries", "entry", "text"),
    [
        ([(1000, 8), (1000, 9)], 1, "timestamp 1000 follows 1000"),
        ([(1000, 8), (2000, 8)], 1, f"offset {BASE + 8} follows {BASE + 8}"),
        ([(-1, 8), (2000, 9)], 0, f"timestamp -1 is outside 0..{2**63 - 1}"),
        ([(1000, 8), (2000, 16)], 1, f"offset {BASE + 16} is outside {BASE}..{BASE + 15}"),
    ],
)
def test_time_index_that_does_not_fit(entries: list[tuple[int, int]], entry: int, text: str) -> None:
    assert (entry, text) in TimeIndex(time_file(entries), BASE).problems(end_offset=BASE + 16)


def test_offset_of_a_whole_append_is_legal() -> None:
    index = OffsetIndex(offset_file([(8, 490)]), BASE)
    assert index.problems(1545, last_offsets={490: BASE + 6}) == []


def test_entries_behind_zeros() -> None:
    data = bytes(8 * 20) + offset_file(OFFSET_ENTRIES)
    assert OffsetIndex(data, BASE).problems(1545) == [(0, "entries follow an entry of zeros")]


def test_problems_are_bounded() -> None:
    index = OffsetIndex(offset_file([(9, 9)] * 10_000), BASE)
    assert len(index.problems(5, end_offset=BASE, last_offsets={})) == 100


def test_a_lookup_in_a_full_index_reads_only_what_it_needs() -> None:
    data = offset_file([(10 * i, 4096 * i) for i in range(1, 200_000)]) + bytes(8 * 100_000)
    tracemalloc.start()
    assert OffsetIndex(data, BASE).lookup(BASE + 123_456) == (BASE + 123_450, 4096 * 12_345)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000


def test_every_problem_is_named_and_nothing_else() -> None:
    """The first entry has the lowest valid offset, the last one the highest valid position."""
    index = OffsetIndex(offset_file([(0, 0), (9, 1544), (9, 1544)]), BASE)
    assert index.problems(1545, end_offset=BASE + 10) == [
        (2, f"offset {BASE + 9} follows {BASE + 9}"),
        (2, "position 1544 follows 1544"),
    ]


@pytest.mark.parametrize("timestamp", [2**63, 2**64, -(2**63) - 1, -(2**70)])
def test_a_timestamp_beyond_64_bits_is_looked_up(timestamp: int) -> None:
    index = TimeIndex(TIME_ENTRY.pack(5, 1) + TIME_ENTRY.pack(7, 2), 100)
    assert index.lookup(timestamp) == ((7, 102) if timestamp > 0 else (-1, 100))

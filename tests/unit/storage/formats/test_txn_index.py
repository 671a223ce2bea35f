"""The transaction index of a segment, intact and damaged."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka.storage.formats import TxnIndexProblem, iter_txn_index, parse_txn_index

SPEC_EXAMPLE = bytes.fromhex("0000000000000000012c000000000000000c00000000000000100000000000000011")
FIRST, SECOND, THIRD = (0, 3, 35, 36, 31), (0, 1, 38, 39, 40), (0, 4, 2, 45, 40)


def index_file(*entries: tuple[int, ...]) -> bytes:
    return b"".join(struct.pack(">hqqqq", *entry) for entry in entries)


def test_example_of_the_specification() -> None:
    assert parse_txn_index(SPEC_EXAMPLE, 0) == ([(0, 300, 12, 16, 17)], [])


def test_entries_in_the_order_of_their_markers() -> None:
    assert parse_txn_index(memoryview(index_file(FIRST, SECOND, THIRD)), 31) == ([FIRST, SECOND, THIRD], [])
    assert parse_txn_index(b"", 31) == ([], [])


def test_only_the_first_byte_is_the_version() -> None:
    entries, problems = parse_txn_index(index_file(FIRST, (4, *SECOND[1:])), 31)
    assert entries == [FIRST, SECOND]
    assert problems == [(34, "version 4 is not known, read as 0")]


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ((0x100, 1, 38, 39, 40), "version byte 1 is not known"),
        ((-1, 1, 38, 39, 40), "version byte -1 is not known"),
        ((0, -1, 38, 39, 40), "producer id -1 is negative"),
        ((0, 1, 40, 39, 40), "the transaction begins at 40 and ends at 39"),
        ((0, 1, -1, 39, 40), "the transaction begins at -1 and ends at 39"),
        ((0, 1, 20, 30, 31), "last offset 30 is below the segment's base offset 31"),
        ((0, 1, 35, 36, 37), "last offset 36 follows 36"),
        ((0, 1, 38, 39, 41), "last stable offset 41 is outside 0..40"),
        ((0, 1, 38, 39, -1), "last stable offset -1 is outside 0..40"),
    ],
)
def test_a_bad_entry_is_left_out(entry: tuple[int, ...], text: str) -> None:
    assert parse_txn_index(index_file(FIRST, entry, THIRD), 31) == ([FIRST, THIRD], [(34, text)])


@pytest.mark.parametrize("odd", range(1, 34))
def test_a_fragment_is_no_entry(odd: int) -> None:
    entries, problems = parse_txn_index(index_file(FIRST) + index_file(SECOND)[:odd], 31)
    assert entries == [FIRST]
    assert problems == [(34, f"{odd} bytes after the last whole entry")]


def test_too_many_problems_end_the_reading() -> None:
    entries, problems = parse_txn_index(b"\xff" * 34 * 1000 + index_file(FIRST), 31)
    assert entries == []
    assert len(problems) == 101
    assert problems[-1] == (3400, "too many problems, the rest was not read")


@given(st.binary(max_size=34 * 5))
def test_random_bytes_never_raise_and_never_pass_for_nothing(data: bytes) -> None:
    entries, problems = parse_txn_index(data, 31)
    assert len(entries) * 34 == len(data) or problems


@given(
    st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 30), st.integers(1, 9)), max_size=20),
    st.integers(0, 33),
    st.integers(0, 2**34),
)
def test_what_was_written_is_read(shape: list[tuple[int, int, int]], odd: int, base_offset: int) -> None:
    entries, last_offset = [], base_offset
    for producer_id, length, step in shape:
        last_offset += step
        first_offset = max(0, last_offset - length)
        entries.append((0, producer_id, first_offset, last_offset, first_offset))
    found, problems = parse_txn_index(index_file(*entries) + bytes(odd), base_offset)
    assert found == entries
    assert len(problems) == (odd > 0)


@pytest.mark.parametrize("count", [1, 4095, 4096, 4097, 10_000])
def test_entries_one_by_one_with_their_positions(count: int) -> None:
    """Read in parts; a bad entry is skipped, and the positions of later entries are correct."""
    entries = [(0, 7, 10 + i, 10 + i, 10) for i in range(count)]
    bad = min(count, 5000)
    data = bytearray(index_file(*entries) + index_file((0, -1, 0, 0, 0)))
    data[34 * bad :] = index_file((0, -1, 0, 0, 0)) + data[34 * bad : -34]
    problems: list[TxnIndexProblem] = []
    found = list(iter_txn_index(data, 10, problems))
    assert [entry for _, entry in found] == entries
    assert [position for position, _ in found] == [34 * (i + (i >= bad)) for i in range(count)]
    assert [problem.position for problem in problems] == [34 * bad]

"""The walk over headers to the batch of an offset, compared with a scan of whole batches."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.fetch_filter import scan_log
from tests.unit.storage.client import data
from txnkafka._core.scan import find_batch

HEADER = 61
BASE = 1000
NOWHERE = (0, 0, 0)


def log_of(counts: list[tuple[int, int]]) -> bytes:
    """Encode batches with these numbers of records, each after this number of missing offsets."""
    content, offset = b"", BASE
    for count, gap in counts:
        content += data(count=count, base_offset=offset + gap)
        offset += gap + count
    return content


def legacy(offset: int, magic: int) -> bytes:
    payload = bytes([magic, 0]) + (bytes(8) if magic else b"") + struct.pack(">ii", -1, -1)
    return struct.pack(">qi", offset, 4 + len(payload)) + bytes(4) + payload


def found(content: bytes, offset: int, *, length: int | None = None, position: int = 0) -> tuple[int, ...]:
    length = len(content) if length is None else length
    end = position + len(content)
    return find_batch(bytearray(content[:length]), length=length, position=position, end=end, offset=offset)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), max_size=8),
    st.integers(-3, 120),
    st.integers(0, 2000),
    st.integers(0, 2**31),
)
def test_the_first_batch_that_ends_at_an_offset_or_behind(
    counts: list[tuple[int, int]], distance: int, length: int, position: int
) -> None:
    """The batch is found if all headers before it are in the buffer; else the walk returns where to
    continue."""
    content, offset = log_of(counts), BASE + distance
    headers, _, _ = scan_log(content)
    answer = found(content, offset, length=min(length, len(content)), position=position)
    behind = [header for header in headers if header.last_offset >= offset]
    wanted = behind[0] if behind else None
    if answer[1]:
        assert wanted is not None
        assert answer == (position + wanted.position, wanted.size, wanted.base_offset, wanted.last_offset)
        return
    stopped = answer[0] - position
    assert stopped in [header.position for header in headers] + [len(content)]
    assert wanted is None or stopped <= wanted.position
    assert stopped + HEADER > length or stopped == len(content)


@given(st.binary(max_size=200), st.integers(-(2**63), 2**63 - 1))
def test_foreign_bytes_are_read_within_their_bounds(content: bytes, offset: int) -> None:
    position, size, base_offset, last_offset = found(content, offset)
    assert 0 <= position <= len(content)
    if size:
        assert position + size <= len(content)
        assert offset <= last_offset
        assert 0 <= base_offset <= last_offset


@pytest.mark.parametrize("magic", [0, 1])
def test_entries_of_old_magic_are_found_by_their_offset(magic: int) -> None:
    entries = [legacy(offset, magic) for offset in (3, 7)]
    size = len(entries[0])
    assert found(b"".join(entries), 4) == (size, size, 7, 7)
    assert found(b"".join(entries), 3) == (0, size, 3, 3)
    assert found(b"".join(entries), 8) == (2 * size, *NOWHERE)


@pytest.mark.parametrize(
    ("at", "value"),
    [(16, b"\x03"), (16, b"\xff"), (8, struct.pack(">i", 48)), (8, struct.pack(">i", 2**31 - 1)),
     (23, struct.pack(">i", -1)), (0, struct.pack(">q", -1)), (0, struct.pack(">q", 2**63 - 1))],
)  # fmt: skip
def test_the_walk_stops_in_front_of_what_is_no_batch(at: int, value: bytes) -> None:
    first, second = bytes(data()), bytearray(data(base_offset=2))
    second[at : at + len(value)] = value
    assert found(first + second, 2) == (len(first), *NOWHERE)
    assert found(first + second, 1)[:2] == (0, len(first))


def test_zeros_of_a_preallocated_file_are_no_batch() -> None:
    content = bytearray(data()) + bytes(100)
    size = len(content) - 100
    for end in (size, len(content)):
        stopped = find_batch(content, length=len(content), position=0, end=end, offset=9)
        assert stopped == (size, *NOWHERE)


def test_no_byte_after_the_buffer_is_read() -> None:
    content = bytearray(data())
    assert find_batch(content, length=10**6, position=0, end=10**6, offset=9)[0] == len(content)

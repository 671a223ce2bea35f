"""Producer snapshots: the specification's example, refused files, and that all damage is detected."""

from __future__ import annotations

import contextlib
import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import sampled
from tests.models.producer_state import write_snapshot
from txnkafka._core.producer_table import ProducerTable
from txnkafka.errors import CorruptFileError
from txnkafka.model import ProducerStateEntry
from txnkafka.storage.formats import parse_producer_snapshot

SPEC_EXAMPLE = bytes.fromhex(
    "00014929a1bf00000001000000000000000000 03ffffffffffffffffffffffff00000000000001a1fd5bc1fc00000000"
    "ffffffffffffffff".replace(" ", "")
)
ENTRY = ProducerStateEntry(7, 3, 2, 1700000000000, 40, 12, 44, 4)
OTHER = ProducerStateEntry(8, 0, -1, 1700000000001, -1, 2, 30, 5)

entries = st.builds(
    ProducerStateEntry,
    st.integers(0, 2**63 - 1),
    st.integers(-1, 2**15 - 1),
    st.integers(-1, 2**31 - 1),
    st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**31 - 1),
    st.integers(-1, 2**63 - 1),
    st.integers(0, 2**31 - 1),
)


def test_example_of_the_specification() -> None:
    assert parse_producer_snapshot(SPEC_EXAMPLE) == [(0, 3, 0, 1795252011516, -1, -1, -1, 0)]


def test_empty_state() -> None:
    assert parse_producer_snapshot(write_snapshot([])) == []
    assert len(write_snapshot([])) == 10


def test_first_sequence_runs_backwards_around_the_circle() -> None:
    assert ENTRY.first_sequence == 8
    assert OTHER.first_sequence == 2**31 - 3
    assert ENTRY._replace(last_sequence=-1).first_sequence == -1


@given(st.lists(entries, unique_by=lambda entry: entry.producer_id, max_size=6))
def test_what_was_written_is_read(written: list[ProducerStateEntry]) -> None:
    assert parse_producer_snapshot(memoryview(write_snapshot(written))) == written


@pytest.mark.parametrize("size", range(102))
def test_cut_off_anywhere(size: int) -> None:
    data = write_snapshot([ENTRY, OTHER])
    assert len(data) == 102
    with pytest.raises(CorruptFileError):
        parse_producer_snapshot(data[:size])


@pytest.mark.parametrize("bit", sampled(range(102 * 8), every=11))
def test_every_bit_counts(bit: int) -> None:
    data = bytearray(write_snapshot([ENTRY, OTHER]))
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptFileError):
        parse_producer_snapshot(data)


@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_else(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        parse_producer_snapshot(data)


@given(st.binary(max_size=150), st.sampled_from([0, 1, 2]), st.integers(-2, 4))
def test_random_content_with_a_right_checksum(content: bytes, version: int, count: int) -> None:
    content = struct.pack(">i", count) + content
    with contextlib.suppress(CorruptFileError):
        found = parse_producer_snapshot(struct.pack(">hI", version, crc32c(content)) + content)
        assert (version, count) == (1, len(found))


@pytest.mark.parametrize(
    ("rows", "version", "text"),
    [
        ([ENTRY], 0, "version 0 is not known"),
        ([ENTRY], 99, "version 99 is not known"),
        ([ENTRY, ENTRY], 1, "a producer is in the snapshot twice"),
        ([ENTRY._replace(producer_id=-1)], 1, "producer -1 has values that no log gives"),
        ([ENTRY._replace(current_txn_first_offset=-2)], 1, "producer 7 has values that no log gives"),
        ([ENTRY._replace(last_sequence=-2)], 1, "producer 7 has values that no log gives"),
        ([ENTRY._replace(last_offset=-2)], 1, "producer 7 has values that no log gives"),
        ([ENTRY._replace(offset_delta=-1)], 1, "producer 7 has values that no log gives"),
    ],
)
def test_invalid_with_a_right_checksum(rows: list[ProducerStateEntry], version: int, text: str) -> None:
    with pytest.raises(CorruptFileError, match=text):
        parse_producer_snapshot(write_snapshot(rows, version))


@pytest.mark.parametrize(
    ("entry", "end_offset"),
    [(ENTRY, ENTRY.last_offset), (ENTRY._replace(current_txn_first_offset=2**61), 2**61)],
)
def test_nothing_is_at_or_above_the_offset_of_the_snapshot(
    entry: ProducerStateEntry, end_offset: int
) -> None:
    content = write_snapshot([entry])
    text = f"producer 7 has offset {end_offset}, the snapshot ends at offset {end_offset} .position 10"
    with pytest.raises(CorruptFileError, match=text):
        parse_producer_snapshot(content, end_offset)
    assert parse_producer_snapshot(content, end_offset + 1) == [entry]
    table = ProducerTable()
    with pytest.raises(CorruptFileError, match=text):
        table.load(content, now_ms=0, expiration_ms=2**62, end_offset=end_offset)
    assert not len(table)
    table.load(content, now_ms=0, expiration_ms=2**62, end_offset=end_offset + 1)
    assert table.entries() == [entry]


@pytest.mark.parametrize("count", [-1, 0, 2, 2**31 - 1, -(2**31)])
def test_a_wrong_count(count: int) -> None:
    content = struct.pack(">i", count) + write_snapshot([ENTRY])[10:]
    with pytest.raises(CorruptFileError, match=f"^{count} producers do not fill 56 bytes"):
        parse_producer_snapshot(struct.pack(">hI", 1, crc32c(content)) + content)

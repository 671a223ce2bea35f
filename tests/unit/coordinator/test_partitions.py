"""Which partition of a coordinator's topic an id belongs to."""

from __future__ import annotations

import tracemalloc
from struct import unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka.coordinator import partition_for, partitions, string_hash


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("shop", 3529462),
        ("transactional-id", 510590431),
        ("\U0001f600", 1772899),
        ("\u00fcn\u00efcode-\u2603", 1471483744),
        ("polygenelubricants", 0),
    ],
)
def test_string_hash(text: str, expected: int) -> None:
    """What Java's ``Utils.abs(text.hashCode())`` gives; the last text's hash is the smallest int."""
    assert string_hash(text) == expected


def hash_code(text: str) -> int:
    """``String.hashCode`` as its documentation defines it."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    units = unpack(f">{len(encoded) // 2}H", encoded)
    powers = (pow(31, len(units) - 1 - i, 1 << 32) for i in range(len(units)))
    total = sum(unit * power for unit, power in zip(units, powers, strict=True)) % (1 << 32)
    return total - (1 << 32) if total >= 1 << 31 else total


@given(st.text(st.characters(exclude_categories=())), st.integers(1, 300))
def test_the_hash_of_any_text_is_that_of_java(text: str, times: int) -> None:
    """Short or long, also with half a surrogate pair."""
    code = hash_code(text * times)
    assert string_hash(text * times) == (0 if code == -(1 << 31) else abs(code))


@pytest.mark.parametrize("character", ["\0", "\uffff", "\U0010ffff"])
def test_the_hash_of_long_texts(character: str) -> None:
    """Of all lengths around a multiple of those that are added up together."""
    for length in (*range(120, 140), *range(250, 260), 1023, 1024, 1025):
        assert string_hash("x" + character * length) == abs(hash_code("x" + character * length))


def test_long_ids_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client may send any id: 16,384 of the longest take two gigabytes. An id of this test takes 130 KB."""
    monkeypatch.setattr(partitions, "string_hash", lambda _: 7)  # slow while memory is traced
    tracemalloc.start()
    try:
        for number in range(20):
            partition_for(f"\U0001f600{'x' * 32_700}{number}", 50)
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_busy_id_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    monkeypatch.setattr(partitions, "string_hash", lambda text: hashed.append(text) or 7)
    assert {partition_for("is hashed once", 50) for _ in range(3)} == {7}
    assert hashed == ["is hashed once"]


def test_the_partition_is_the_rest_of_the_hash() -> None:
    assert [partition_for("transactional-id", count) for count in (1, 4, 50)] == [0, 3, 31]

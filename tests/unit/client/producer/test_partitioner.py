"""Partitions of keys and of records without keys. The hashes are from Kafka's ``UtilsTest.testMurmur2``."""

from __future__ import annotations

from array import array
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnkafka._core.key_partition import (
    counting_order,
    gather,
    gather_numbers,
    murmur2,
    partition_of,
    partitions_of,
)
from txnkafka.client.producer.partitioner import StickyPartition, chosen

KEYS = st.lists(st.none() | st.binary(max_size=20), max_size=40)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hashes_are_javas(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected
    assert partition_of(key, 7) == (expected & 0x7FFFFFFF) % 7


def test_keys_of_other_types() -> None:
    assert (
        partition_of(bytearray(b"abc"), 7) == partition_of(memoryview(b"abc"), 7) == partition_of(b"abc", 7)
    )
    assert partition_of(bytearray(), 7) == partition_of(b"", 7)
    with pytest.raises(TypeError, match="the key must be bytes or None, not str: encode it"):
        partition_of("abc", 7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="bytes-like"):
        partition_of(5, 7)  # type: ignore[arg-type]


def columns(keys: list[bytes | None]) -> tuple[array[int], bytes, bytes]:
    offsets, bits = [0], bytearray((len(keys) + 7) // 8)
    for number, key in enumerate(keys):
        offsets.append(offsets[-1] + len(key or b""))
        if key is not None:
            bits[number >> 3] |= 1 << (number & 7)
    return array("q", offsets), b"".join(key or b"" for key in keys), bytes(bits)


@given(KEYS, st.integers(1, 9))
def test_a_column_of_keys_gets_the_partitions_of_its_keys(keys: list[bytes | None], count: int) -> None:
    offsets, data, validity = columns(keys)
    out = array("i", [99] * len(keys))
    for places in (offsets, array("i", offsets)):
        partitions_of(places, data, validity, count, 5, out)
        assert list(out) == [5 if key is None else partition_of(key, count) for key in keys]


@given(KEYS, st.data())
def test_a_sorted_column_has_the_same_values(keys: list[bytes | None], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 5))
    numbers = array(
        "i", data.draw(st.lists(st.integers(0, count - 1), min_size=len(keys), max_size=len(keys)))
    )
    order, bounds = array("q", bytes(8 * len(keys))), array("q", bytes(8 * (count + 1)))
    counting_order(numbers, count, order, bounds)
    assert list(order) == sorted(range(len(keys)), key=lambda i: (numbers[i], i))
    assert list(bounds) == [sum(1 for each in numbers if each < number) for number in range(count + 1)]
    offsets, content, validity = columns(keys)
    places, gathered, bits = gather(offsets, content, validity, order)
    found = memoryview(places).cast("q")
    assert bits is not None
    valid = [bool(bits[i >> 3] >> (i & 7) & 1) for i in range(len(keys))]
    assert [bytes(gathered[found[i] : found[i + 1]]) if valid[i] else None for i in range(len(keys))] == [
        keys[i] for i in order
    ]
    assert list(memoryview(gather_numbers(offsets[:-1], order)).cast("q")) == [offsets[i] for i in order]


def test_wrong_columns_are_refused() -> None:
    out = array("i", [0, 0])
    for offsets in (array("q", [0, 5, 9]), array("q", [0, 3, 2]), array("q", [-1, 2, 3])):
        with pytest.raises(ValueError, match="go back or past the end"):
            partitions_of(offsets, b"abcd", None, 3, 0, out)
        with pytest.raises(ValueError, match="go back or past the end"):
            gather(offsets, b"abcd", None, array("q", [1, 0]))
    with pytest.raises(ValueError, match="bitmap"):
        partitions_of(array("q", [0, 1, 2]), b"ab", b"", 3, 0, out)
    with pytest.raises(ValueError, match="room for 2 of 3"):
        partitions_of(array("q", [0, 1, 2, 3]), b"abc", None, 3, 0, out)
    with pytest.raises(ValueError, match="has the number 2"):
        gather(array("q", [0, 1, 2]), b"ab", None, array("q", [2]))
    with pytest.raises(ValueError, match="has the place -1"):
        gather_numbers(array("q", [0]), array("q", [-1]))
    with pytest.raises(ValueError, match="record 1 has partition 3; the topic has 0 to 2"):
        counting_order(array("i", [0, 3]), 3, array("q", [0, 0]), array("q", [0] * 4))
    with pytest.raises(ValueError, match="do not fit 2 records"):
        counting_order(array("i", [0, 1]), 3, array("q", [0]), array("q", [0] * 4))
    with pytest.raises(ValueError, match="at least one partition"):
        partition_of(b"a", 0)


def test_partitions_with_shorter_queues_are_chosen_more_often() -> None:
    # as in the example of KIP-794: queues of 0, 3 and 1 batches have the weights 4, 1 and 3
    found = Counter(chosen([(0, 0), (1, 3), (2, 1)], lambda _: point) for point in range(8))  # noqa: B023
    assert found == {0: 4, 1: 1, 2: 3}


def test_a_partition_is_kept_for_the_bytes_of_a_batch() -> None:
    turn = iter(range(100))
    sticky = StickyPartition(100, lambda: [(next(turn), 0)])
    assert sticky.number == 0
    sticky.filled(99)
    assert sticky.number == 0
    sticky.filled(1)
    assert sticky.number == 1

"""Which batch is damaged when offsets are out of order."""

from __future__ import annotations

import pytest

from tests.unit.logdir.logs import batch
from txnkafka._core.scan import scan
from txnkafka.storage.formats.order import misplaced_batches, repeated_batches


@pytest.mark.parametrize(
    ("offsets", "start", "misplaced"),
    [
        ([0, 2, 4], 0, []),
        ([0, 2, 10, 12], 0, []),  # a gap is legal
        ([0, 66, 4, 6], 0, [1]),  # the second is too high
        ([64, 2, 4], 0, [0]),
        ([0, 2, 4, 0], 0, [3]),  # the last is too low
        ([0, 2, 4, 1, 6], 0, [3]),
        ([0, 2, 2, 4], 0, []),  # an exact repetition
        ([0, 2], 5, [0, 1]),  # below the segments before
        ([0, 66, 130, 6, 8], 0, [3, 4]),  # two in a row confirm each other
    ],
)
def test_the_batch_whose_removal_restores_the_order(
    offsets: list[int], start: int, misplaced: list[int]
) -> None:
    assert misplaced_batches(scan(b"".join(batch(offset) for offset in offsets)), start) == misplaced


def test_of_two_batches_that_overlap_the_one_with_the_wrong_crc_is_damaged() -> None:
    index = scan(b"".join(batch(offset) for offset in [0, 2, 3, 5, 7]))
    assert misplaced_batches(index, 0) == [2]
    assert misplaced_batches(index, 0, is_intact=lambda _, number: number != 1) == [1]


def test_a_batch_that_repeats_the_one_before() -> None:
    index = scan(batch(0) + batch(0) + batch(0, 1) + batch(2) + batch(2) + batch(2))
    assert repeated_batches(index) == {1, 4, 5}
    assert repeated_batches(index, index[0]) == {0, 1, 4, 5}
    assert repeated_batches(index, index[3]) == {1, 4, 5}

"""Distributions, compared with the numbers themselves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from txnkafka.logdir.distribution import Distribution

NUMBERS = st.lists(st.one_of(st.integers(0, 600), st.integers(0, 1 << 50)), min_size=1, max_size=80)


@given(NUMBERS, NUMBERS)
def test_exact_but_for_percentiles_which_are_a_little_above(first: list[int], second: list[int]) -> None:
    found = Distribution()
    found.add(first)
    found.add(second)
    numbers = sorted(first + second)
    shown = found.as_dict()
    assert (found.count, found.total) == (len(numbers), sum(numbers))
    assert (shown["min"], shown["max"]) == (numbers[0], numbers[-1])
    assert shown["mean"] == round(sum(numbers) / len(numbers), 1)
    for percent in (1, 50, 99, 100):
        exact = numbers[-(-len(numbers) * percent // 100) - 1]
        answer = found.percentile(percent)
        assert answer is not None
        assert exact <= answer <= exact * (1 + 1 / 128)
        assert answer == exact or exact >= 256


def test_of_nothing() -> None:
    empty = Distribution()
    empty.add([])
    assert empty.as_dict() == dict.fromkeys(("min", "mean", "p50", "p99", "max"))


def test_memory_does_not_grow_with_the_numbers() -> None:
    found = Distribution()
    for start in range(0, 1 << 20, 1 << 14):
        found.add(range(start, start + (1 << 14)))
    assert len(found._buckets) <= 256 + 12 * 128


def test_what_is_below_0_counts_as_0() -> None:
    found = Distribution()
    found.add([-5, 3])
    assert (found.minimum, found.total) == (0, 3)

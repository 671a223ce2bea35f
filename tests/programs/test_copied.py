"""The comparison notices each way in which a copy is not exactly once."""

from __future__ import annotations

import json

import pytest

from tests.programs.copied import distinct, key_of, value_of, wrong

NUMBERS = range(30)
COPIES = [value_of(number) for number in NUMBERS]


def counted(*pairs: tuple[int, int]) -> list[str]:
    return [json.dumps({"id": number, "count": count}) for number, count in pairs]


def test_a_copy_in_any_order() -> None:
    assert list(wrong(NUMBERS, reversed(COPIES))) == []


@pytest.mark.parametrize(
    ("copies", "difference"),
    [
        (COPIES[1:], "1 lost: [0]"),
        ([*COPIES, COPIES[7]], "1 repeated: [7]"),
        ([*COPIES, value_of(-7)], "1 that were never committed: [-7]"),
        ([], "30 lost: [0, 1, 2, 3, 4]"),
    ],
    ids=["lost", "repeated", "of an aborted transaction", "nothing"],
)
def test_a_copy_that_is_not_exactly_once(copies: list[str], difference: str) -> None:
    assert list(wrong(NUMBERS, copies)) == [difference]


def test_repetitions_are_no_progress() -> None:
    assert distinct([*COPIES, COPIES[0], COPIES[0]]) == len(COPIES)


def test_counts_of_each_key() -> None:
    assert key_of(3) == key_of(13)
    assert list(wrong([3, 4, 13], counted((3, 1), (4, 1), (13, 2)))) == []


@pytest.mark.parametrize("second", [1, 3], ids=["state that was lost", "state of an aborted transaction"])
def test_a_state_that_is_not_exactly_once(second: int) -> None:
    found = list(wrong([3, 13], counted((3, 1), (13, second))))
    assert found == [f"counts of k3 are [{second}] where 2 is due"]

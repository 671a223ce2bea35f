"""The checker of the kill tests finds each kind of wrong log."""

from __future__ import annotations

import pytest

from tests.server.transaction_history import Outcome, Transaction, problems

HISTORY = {
    "a": [
        Transaction([(0, "a:0"), (1, "a:1"), (0, "a:2")], Outcome.COMMITTED),
        Transaction([(0, "a:3"), (1, "a:4")], Outcome.ABORTED),
        Transaction([(0, "a:5"), (1, "a:6")], Outcome.UNKNOWN),
    ],
    "b": [Transaction([(0, "b:0")], Outcome.COMMITTED)],
}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["a:0", "a:2", "b:0"], ["a:1"]),
        (["b:0", "a:0", "a:2", "a:5"], ["a:1", "a:6"]),
        (["a:0", "b:0", "a:2"], ["a:1"]),
    ],
)
def test_a_right_log(first: list[str], second: list[str]) -> None:
    assert list(problems(HISTORY, {0: first, 1: second})) == []


def test_a_right_log_of_long_transactions() -> None:
    values = [f"a:{number}" for number in range(40)]
    halves = ([(0, value) for value in half] for half in (values[:20], values[20:]))
    sent = [Transaction(half, Outcome.COMMITTED) for half in halves]
    assert list(problems({"a": sent}, {0: values})) == []


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (["a:0", "a:2"], ["a:1"], "b, transaction 0: committed, and only"),
        (["a:0", "a:2", "b:0"], [], "a, transaction 0: committed, and only"),
        (["a:0", "a:2", "b:0", "a:3"], ["a:1", "a:4"], "a, transaction 1: aborted, and"),
        (["a:0", "a:2", "b:0", "a:5"], ["a:1"], "a, transaction 2: only ['a:5'] of"),
        (["a:0", "a:2", "b:0", "a:0"], ["a:1"], "partition 0: a:0 comes 2 times"),
        (["a:2", "a:0", "b:0"], ["a:1"], "partition 0: a:0 comes behind a:2"),
        (["a:5", "a:0", "a:2", "b:0"], ["a:1", "a:6"], "partition 0: a:0 comes behind a:5"),
        (["a:0", "a:2", "b:0", "c:0"], ["a:1"], "partition 0: nobody sent c:0"),
        (["a:0", "a:2"], ["a:1", "b:0"], "b, transaction 0: b:0 is in partition 1, not in 0"),
    ],
)
def test_a_wrong_log(first: list[str], second: list[str], said: str) -> None:
    found = list(problems(HISTORY, {0: first, 1: second}))
    assert any(each.startswith(said) for each in found), found

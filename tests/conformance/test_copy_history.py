"""The checker of copies finds each kind of wrong run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.conformance.copy_history import Copied, Copying, Seen, journal, wrong
from tests.server.transaction_history import Outcome

JOURNAL = """\
1000000000 begin 0:a:1.1/x0 0:a:1.1/x1 1:a:1.1/y0
1500000000 error the line is for people
2000000000 decide
3000000000 committed
4000000000 begin 0:a:1.2/x2
5000000000 aborted
6000000000 begin 0:a:2.1/x2
7000000000 decide
8000000000 begin 0:a:3.1/x2
8500000000 decide
"""
EVERYTHING = {
    0: [(0, "a:1.1/x0"), (1, "a:1.1/x1"), (3, "a:1.2/x2"), (5, "a:2.1/x2"), (7, "a:3.1/x2")],
    1: [(0, "a:1.1/y0")],
}
ABORTED = ("a:1.2/x2", "a:2.1/x2")


def seen(records: Mapping[int, Sequence[tuple[int, str]]], at: float = 9.0) -> dict[int, list[Seen]]:
    return {partition: [Seen(*record, at) for record in found] for partition, found in records.items()}


def run(**changes: Any) -> Copied:
    """A right run, but for the changes; readers see what the log has unless changes say otherwise."""
    everything = changes.get("everything", EVERYTHING)
    committed = changes.get(
        "committed",
        {
            partition: [each for each in found if each[1] not in ABORTED]
            for partition, found in everything.items()
        },
    )
    right = Copied(
        sent={0: ["x0", "x1", "x2"], 1: ["y0"]},
        inputs={0: [(0, "x0"), (1, "x1"), (2, "x2")], 1: [(0, "y0")]},
        copiers={"a": journal(JOURNAL.splitlines())},
        committed=committed,
        everything=everything,
        committed_reader=seen(committed),
        everything_reader=seen(everything),
        offsets={0: 3, 1: 1},
    )
    return right._replace(**changes)


def test_a_right_run() -> None:
    assert list(wrong(run())) == []


def test_a_journal() -> None:
    first, second, third, fourth = journal(JOURNAL.splitlines())
    assert first == Copying([(0, "a:1.1/x0"), (0, "a:1.1/x1"), (1, "a:1.1/y0")], Outcome.COMMITTED, 2.0)
    assert second.outcome is Outcome.ABORTED
    assert third.outcome is fourth.outcome is Outcome.UNKNOWN
    assert [each.decided_at for each in (third, fourth)] == [7.0, 8.5]


def committed(
    first: Sequence[str], second: Sequence[str] = ("a:1.1/y0",)
) -> dict[int, list[tuple[int, str]]]:
    return {0: list(enumerate(first)), 1: list(enumerate(second))}


X0, X1, X2 = "a:1.1/x0", "a:1.1/x1", "a:3.1/x2"
RIGHT = committed([X0, X1, X2])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sent": {0: ["x0", "x1", "x2", "x3"], 1: ["y0"]}}, "input 0: 1 lost, ['x3']"),
        ({"sent": {0: ["x0", "x1"], 1: ["y0"]}}, "input 0: 1 that nobody wrote, ['x2']"),
        ({"committed": committed([X0, X1])}, "copy of partition 0: 1 lost, ['x2']"),
        ({"committed": committed([X0, X1, X2], [])}, "a, transaction 0: committed, and only"),
        ({"committed": committed([X0, X1, "a:2.1/x2", X2])}, "copy of partition 0: 1 come twice"),
        ({"committed": committed([X0, X1, X2, X2])}, "partition 0: a:3.1/x2 comes 2 times"),
        ({"committed": committed([X1, X0, X2])}, "copy of partition 0: another order"),
        ({"committed": committed([X0, X1, "a:1.2/x2"])}, "a, transaction 1: aborted, and"),
        ({"committed": committed([X0, X1, "b:1.1/x2"])}, "partition 0: nobody sent b:1.1/x2"),
        ({"committed_reader": seen(committed([X0, X1, "a:1.2/x2", X2]))}, "the read_committed reader has"),
        ({"committed_reader": seen(committed([X0, X1]))}, "the read_committed reader has seen"),
        ({"everything_reader": seen(RIGHT)}, "the read_uncommitted reader has seen another log of"),
        ({"committed_reader": seen(RIGHT, 8.0)}, "partition 0: a:3.1/x2 was seen before its"),
        ({"offsets": {0: 2, 1: 1}}, "the group has committed {0: 2, 1: 1}, copied is up to {0: 3, 1: 1}"),
        ({"offsets": {0: 3}}, "the group has committed {0: 3}"),
    ],
)  # fmt: skip
def test_a_wrong_run(changes: Mapping[str, Any], said: str) -> None:
    found = list(wrong(run(**changes)))
    assert any(each.startswith(said) for each in found), found

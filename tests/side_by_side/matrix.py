"""Every request in every state of a transactional id: versions, epochs, sequences, isolation.

A case is a list of steps: those that lead to the state, those that are tried there, and those that show the
outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, takewhile
from typing import Final, NamedTuple

from tests.side_by_side.story import Step

__all__ = ["EXHAUSTED", "STATES", "Case", "cases", "slow_cases"]

INIT: Final = Step("init", 5, "~a")
SETTLED: Final = Step("describe", 0)  # both have completed what was ended


class Case(NamedTuple):
    """A state and one thing that is done there."""

    state: str
    steps: tuple[Step, ...]

    @property
    def before(self) -> tuple[Step, ...]:
        """The steps before the one that waits for the state."""
        return tuple(takewhile(lambda step: "until" not in step.options, self.steps))


def _produce(version: int, **options: object) -> Step:
    return Step("produce", version, "~a", 0, {"value": "first", **options})


_OLD: Final = (INIT, Step("add", 3, "~a", 0, {"partitions": [0]}), _produce(11))
_NEW: Final = (INIT, _produce(12))
STATES: Final[dict[str, tuple[Step, ...]]] = {
    "unknown": (),
    "empty": (INIT,),
    "ongoing, version 1": _OLD,
    "ongoing, version 2": _NEW,
    "added, nothing written": (INIT, Step("add", 3, "~a", 0, {"partitions": [0, 1]})),
    "preparing to commit, version 1": (*_OLD, Step("end", 4, "~a")),
    "preparing to abort, version 2": (*_NEW, Step("end", 5, "~a", 0, {"commit": False})),
    "committed, version 1": (*_OLD, Step("end", 4, "~a"), SETTLED),
    "aborted, version 1": (*_OLD, Step("end", 4, "~a", 0, {"commit": False}), SETTLED),
    "committed, version 2": (*_NEW, Step("end", 5, "~a"), SETTLED),
    "aborted, version 2": (*_NEW, Step("end", 5, "~a", 0, {"commit": False}), SETTLED),
    "fenced while ongoing": (*_NEW, INIT),
    "ended by an administrator": (*_NEW, Step("marker", 1, "~a", 0, {"partitions": [0]})),
}
OUTCOME: Final = (
    SETTLED,
    Step("producers", 0),
    Step("fetch", 12, options={"partitions": [0, 1]}),
    Step("times", 8, options={"time": -1}),
)
_DELTAS: Final = (0, -1, 1)
_SEQUENCES: Final = ("next", "duplicate", "gap", "zero", "wrap")
_TIMES: Final = (-1, -2, -3, -4, -5, -6, -7, 0, 1_600_000_000_000, 1_600_000_000_001)


def slow_cases() -> Iterator[Case]:
    """A part of the cases in states that brokers come to by themselves after some time."""
    short = Step("init", 5, "~a", 0, {"timeout": 2000})
    old = Step("add", 3, "~a", 0, {"partitions": [0]}), _produce(11)
    for state, steps in (
        ("timed out, version 1", (short, *old, _until("CompleteAbort"))),
        ("timed out, version 2", (short, _produce(12), _until("CompleteAbort"))),
        ("expired", (*_NEW, Step("end", 5, "~a"), _until("'error_code': 105, 'transactional_id': '~a'"))),
    ):
        for writing in islice(_writings(), 0, None, 7):
            yield Case(state, (*steps, *writing, *OUTCOME))


def _until(text: str) -> Step:
    return Step("describe", 0, options={"until": text})


def cases() -> Iterator[Case]:
    """All of them, but for the slow ones."""
    for state, steps in STATES.items():
        yield Case(state, (*steps, *_readings()))
        for writing in _writings():
            yield Case(state, (*steps, *writing, *OUTCOME))
        for one in _refused():  # by us, and the brokers go different ways from there
            yield Case(state, (*steps, one))


def _exhausted(version: int, name: str) -> tuple[Step, ...]:
    """From the epoch 32764 on: to the end, over it, and retries on both sides of it."""
    end = Step("end", version, name)
    turn = (
        Step("produce", 12 if version == 5 else 11, name), end, SETTLED, end._replace(delta=-1),
    )  # fmt: skip
    add = () if version == 5 else (Step("add", 3, name),)
    init = Step("init", 5, name)
    again = Step("init", 5, name, 0, {"again": True})
    turns = tuple(step for _ in range(4) for step in (*add, *turn, SETTLED, Step("producers", 0)))
    return (SETTLED, *turns, again, again, *add, turn[0], init, SETTLED, init, *OUTCOME)


EXHAUSTED: Final = {"~a": _exhausted(5, "~a"), "~b": _exhausted(4, "~b")}
"""By transactional id, which has had the epoch 32764 before."""


def _writings() -> Iterator[tuple[Step, ...]]:
    for version in range(6):
        yield (Step("init", version, "~a"),)
        for delta in (-2, *_DELTAS) if version >= 3 else ():
            yield (Step("init", version, "~a", delta, {"again": True}),)
    yield (Step("init", 5, "~a", 0, {"again": True, "alien": True}),)
    for version in range(6):
        for delta in _DELTAS:
            yield (Step("add", version, "~a", delta, {"partitions": [0]}),)
        for options in ({"alien": True}, {"partitions": [1, 7]}, {"partitions": []}, {"partitions": [1]}):
            yield (Step("add", version, "~a", 0, options),)
        for delta in _DELTAS if version >= 4 else ():
            yield (Step("add", version, "~a", delta, {"partitions": [0, 1], "verify": True}),)
    for version in range(5):
        for delta in _DELTAS:
            yield (Step("offsets", version, "~a", delta),)
    for version in range(6):
        for delta in (-2, *_DELTAS):
            for commit in (True, False):
                end = Step("end", version, "~a", delta, {"commit": commit})
                yield (end,)
        yield (Step("end", version, "~a", 0, {"alien": True}),)
        yield end._replace(delta=0), end._replace(delta=0), end._replace(delta=-1)
    yield from _produces()
    yield from _markers()


def _produces() -> Iterator[tuple[Step, ...]]:
    for version in range(3, 14):
        yield (Step("produce", version, "~a"),)
        yield (Step("produce", version, "~a", -1),)
    for version in (9, 11, 13):
        for sequence in _SEQUENCES:
            for delta in _DELTAS:
                one = Step("produce", version, "~a", delta, {"sequence": sequence})
                yield (one,)
        yield Step("produce", version, "~a", 0, {"partitions": [0, 1]}), Step("end", 5, "~a")
        for options in (
            {"alien": True},
            {"transactional": False},
            {"nameless": True},
            {"acks": 0},
            {"acks": 1},
            {"sequence": "wrap", "count": 3, "partitions": [1]},
        ):
            produced = Step("produce", version, "~a", 0, options)
            yield produced, produced


def _markers() -> Iterator[tuple[Step, ...]]:
    for version in (1, 2):
        for delta in (*_DELTAS, 2):
            for level in (0, 2) if version == 2 else (0,):
                for commit in (True, False):
                    yield (Step("marker", version, "~a", delta, {"level": level, "commit": commit}),)
        later = Step("marker", version, "~a", 0, {"partitions": [1], "coordinator": 1})
        yield later, later._replace(options={"partitions": [1]})
        yield (Step("marker", version, "~a", 0, {"alien": True, "partitions": [0, 7]}),)


def _refused() -> Iterator[Step]:
    for version in (3, 11, 13):
        yield Step("produce", version, "~a", 0, {"acks": 2})
    for version in (1, 2):
        yield Step("marker", version, "~a", 0, {"partitions": [1], "coordinator": -1})


def _readings() -> Iterator[Step]:
    for isolation in (0, 1):
        for version in range(4, 19):
            for options in ({"offset": 0}, {"offset": 1, "partitions": [0, 1]}, {"offset": 9}, {"bytes": 1}):
                yield Step("fetch", version, options={**options, "isolation": isolation})
        for version in range(1, 12):
            for time in _TIMES:
                yield Step("times", version, options={"time": time, "isolation": isolation})
    for version in range(2, 5):
        for epoch in (-1, 0, 1):
            yield Step("epochs", version, options={"epoch": epoch})
    yield Step("describe", 0)
    yield Step("producers", 0)
    for version in range(3):
        for states in ([], ["Ongoing"], ["Empty", "CompleteCommit", "CompleteAbort"], ["Nonsense"]):
            yield Step("list", version, options={"states": states})
        for options in ({"duration": 1000}, {"duration": 0}) if version >= 1 else ():
            yield Step("list", version, options=options)
        for pattern in ("~.*", "~b", "~a|x", "", "(", "~[ab]{1}") if version >= 2 else ():
            yield Step("list", version, options={"pattern": pattern})

"""Anomalies to plant into a sound history of members, and what is no anomaly."""

from __future__ import annotations

from collections.abc import Callable

from txnkafka.testing.simulation.anomalies import anomalies
from txnkafka.testing.simulation.history import (
    Commit,
    Group,
    History,
    LostMember,
    Ownership,
    Topic,
)

ZERO, ONE = ("a", 0), ("a", 1)


def sound() -> History:
    """M owns both partitions, N joins and waits; M gives up one, which N gets. Then M says nothing, and N
    has both; M joins again. Each commits what it owns, and -1 in the end, so that only members are judged."""
    history = History()
    history.topics = {"a": Topic("a", 2)}
    history.groups = {"g": Group("g", protocols=("consumer",))}
    committed(history, "", {ZERO: 0, ONE: 0}, 10, epoch=-1)
    beat(history, "M", 2, (), (ZERO, ONE), 100, is_joining=True)
    beat(history, "N", 3, (), (), 200, is_joining=True)
    beat(history, "M", 2, (ZERO, ONE), (ZERO,), 300)
    committed(history, "M", {ZERO: 1, ONE: 1}, 305, epoch=2)
    beat(history, "M", 3, (ZERO,), (ZERO,), 320)
    beat(history, "N", 3, (), (ONE,), 400)
    committed(history, "N", {ONE: 2}, 420, epoch=3)
    beat(history, "M", 3, (ZERO,), (ZERO,), 440)
    beat(history, "N", 4, (ONE,), (ZERO, ONE), 500)
    committed(history, "N", {ZERO: 3}, 520, epoch=4)
    beat(history, "N", 4, (ZERO, ONE), (ZERO, ONE), 600)
    beat(history, "M", 5, (), (), 620, is_joining=True)
    return history


def beat(
    history: History, member: str, epoch: int, owned: tuple[tuple[str, int], ...],
    assigned: tuple[tuple[str, int], ...], at_us: int, *, is_joining: bool = False,
) -> None:  # fmt: skip
    """A heartbeat that takes 10 microseconds to be answered."""
    history.ownerships.append(
        Ownership(
            member, "g", f"id of {member}", epoch, frozenset(owned), frozenset(assigned), at_us - 10, at_us,
            is_joining,
        )
    )  # fmt: skip


def committed(
    history: History, member: str, offsets: dict[tuple[str, int], int], at_us: int, *, epoch: int
) -> None:
    member_id = f"id of {member}" if member else ""
    history.commits.append(Commit(member, "g", epoch, member_id, None, offsets, -1, at_us, at_us + 2))


def names(history: History) -> set[str]:
    return {anomaly.name for anomaly in anomalies(history)}


def still_there(history: History) -> None:
    """M has a partition that N has got meanwhile."""
    beat(history, "M", 3, (ZERO,), (ZERO,), 560)


def given_twice(history: History) -> None:
    """N gets a partition before M has said that it has given it up."""
    beat(history, "N", 3, (), (ONE,), 250)


def older_epoch(history: History) -> None:
    beat(history, "N", 3, (ZERO, ONE), (ZERO, ONE), 700)


def joins_in_an_older_epoch(history: History) -> None:
    beat(history, "O", 3, (), (), 700, is_joining=True)


def of_the_expelled(history: History) -> None:
    committed(history, "M", {ZERO: 9}, 510, epoch=3)


def forgotten(history: History) -> None:
    history.lost_members.append(LostMember("M", "g", "id of M", 44_999))


PLANTED: list[tuple[str, Callable[[History], None]]] = [
    ("owned-by-two", still_there),
    ("owned-by-two", given_twice),
    ("epoch-went-back", older_epoch),
    ("epoch-went-back", joins_in_an_older_epoch),
    ("stale-commit", of_the_expelled),
    ("member-lost", forgotten),
]


def test_what_nobody_knows_is_no_anomaly() -> None:
    """A member that was not answered may be none any more; a refused commit counts for nothing; who has a
    partition again may commit it."""
    history = sound()
    committed(history, "M", {ZERO: 9}, 510, epoch=3)
    history.commits[-1].acked_us, history.commits[-1].is_refused = -1, True
    beat(history, "N", 5, (ONE,), (ONE,), 700)
    history.lost_members.append(LostMember("M", "g", "id of M", 45_000))
    beat(history, "M", 5, (), (ZERO,), 720)
    committed(history, "M", {ZERO: 9}, 730, epoch=5)
    assert anomalies(history) == []


def test_a_group_that_is_forgotten_begins_anew() -> None:
    history = sound()
    beat(history, "O", 1, (), (), 700, is_joining=True)
    assert names(history) == {"epoch-went-back"}
    history.groups["g"] = Group("g", may_expire=True, protocols=("consumer",))
    assert anomalies(history) == []
    history.groups["g"] = Group("g", protocols=("classic", "consumer"))
    assert anomalies(history) == []

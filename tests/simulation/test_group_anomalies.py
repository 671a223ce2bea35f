"""Anomalies to plant into a sound history of groups, and what is no anomaly."""

from __future__ import annotations

from collections.abc import Callable

from txnkafka.testing.simulation.anomalies import anomalies
from txnkafka.testing.simulation.history import (
    Assignment,
    Commit,
    FetchedOffset,
    Group,
    History,
    Outcome,
    Poll,
    Topic,
)

INPUT, OUTPUT = ("a", 0), ("o", 0)


def sound() -> History:
    """The group "copiers" copies the records 0 to 3 in two generations: 0 and 1 in transaction 0, committed;
    2 in transaction 1, which is aborted; 2 and 3 in transaction 2, committed. The group "readers" reads the
    input, and commits twice; "keeper" commits 7."""
    history = History()
    history.topics = {"a": Topic("a", 1), "o": Topic("o", 1)}
    history.groups = {
        "copiers": Group("copiers", copies_to="o"), "readers": Group("readers"), "keeper": Group("keeper")
    }  # fmt: skip
    for number in range(4):
        send = history.send("p", INPUT, b"k", -1, 10 * number)
        send.acked_us, send.offset = 10 * number + 1, number
    own(history, "copiers", 1, "x.0", 100)
    copy(history, "x.0", 1, [0, 1], 0, Outcome.COMMITTED, 110)
    fetched(history, "x.0", "copiers", 2, 150)
    own(history, "copiers", 2, "y.0", 200)
    fetched(history, "y.0", "copiers", 2, 205)
    copy(history, "y.0", 2, [2], 3, Outcome.ABORTED, 210)
    fetched(history, "y.0", "copiers", 2, 260)
    copy(history, "y.0", 2, [2, 3], 5, Outcome.COMMITTED, 270)
    for position, end, process, at_us in ((0, 2, "x.0", 105), (2, 4, "y.0", 265)):
        values = [(offset, offset) for offset in range(position, end)]
        history.polls.append(Poll(process, INPUT, True, position, end, values, at_us, True))
    own(history, "readers", 1, "r.0", 100)
    for position, end, at_us in ((0, 2, 120), (2, 4, 320)):
        values = [(offset, offset) for offset in range(position, end)]
        history.polls.append(Poll("r.0", INPUT, True, position, end, values, at_us, not position))
        committed(history, "r.0", "readers", 1, end, at_us + 10)
    committed(history, "k", "keeper", -1, 7, 50)
    fetched(history, "k", "keeper", 7, 70)
    everything = [(offset, offset) for offset in range(4)]
    for is_committed in (True, False):
        history.final[is_committed, INPUT] = list(everything)
    history.final[True, OUTPUT] = [(0, 4), (1, 5), (5, 7), (6, 8)]
    history.final[False, OUTPUT] = [(0, 4), (1, 5), (3, 6), (5, 7), (6, 8)]
    history.final_offsets = {("copiers", INPUT): 4, ("readers", INPUT): 4, ("keeper", INPUT): 7}
    return history


def own(
    history: History, group: str, generation: int, process: str, at_us: int, instance: str | None = None
) -> None:
    history.assignments.append(
        Assignment(process, group, generation, f"id of {process}", instance, (INPUT,), at_us)
    )


def committed(
    history: History, process: str, group: str, generation: int, offset: int, at_us: int,
    transaction: int = -1,
) -> Commit:  # fmt: skip
    member_id = f"id of {process}" if generation >= 0 else ""
    commit = Commit(
        process, group, generation, member_id, None, {INPUT: offset}, transaction, at_us, at_us + 5
    )
    history.commits.append(commit)
    return commit


def fetched(history: History, process: str, group: str, offset: int, at_us: int) -> None:
    history.fetched_offsets.append(FetchedOffset(process, group, INPUT, offset, True, at_us, at_us + 2))


def copy(
    history: History, process: str, generation: int, offsets: list[int], at: int, outcome: Outcome, at_us: int
) -> None:
    """A transaction of 40 microseconds, whose records begin at the offset ``at`` of the output."""
    transaction = history.begin(process, process[0], 7, len(history.transactions))
    for i, offset in enumerate(offsets):
        send = history.send(process, OUTPUT, b"k", transaction.number, at_us)
        send.source = INPUT, offset
        send.acked_us, send.offset = at_us + 5, at + i
    committed(history, process, "copiers", generation, offsets[-1] + 1, at_us + 10, transaction.number)
    transaction.outcome = outcome
    transaction.end_us = at_us + 30 if outcome is Outcome.COMMITTED else -1
    transaction.ended_us = at_us + 35


def names(history: History) -> set[str]:
    return {anomaly.name for anomaly in anomalies(history)}


def of_aborted(history: History) -> None:
    """The offset of the aborted transaction counts."""
    fetched(history, "z", "copiers", 3, 265)


def of_nobody(history: History) -> None:
    fetched(history, "z", "keeper", 99, 265)


def back(history: History) -> None:
    """After transaction 2, the offset is that of transaction 0 again."""
    fetched(history, "z", "copiers", 2, 400)


def gone(history: History) -> None:
    fetched(history, "k", "keeper", -1, 90)


def gone_in_the_end(history: History) -> None:
    history.final_offsets["keeper", INPUT] = -1


def pending(history: History) -> None:
    """While transaction 2 is open, and has sent its offsets."""
    fetched(history, "z", "copiers", 2, 290)


def of_an_older_generation(history: History) -> None:
    committed(history, "x.0", "copiers", 1, 4, 400)


def of_an_older_instance(history: History) -> None:
    for number, at_us in enumerate((400, 500)):
        own(history, "readers", 2, f"s.{number}", at_us, "instance")
    commit = committed(history, "s.0", "readers", 2, 4, 600)
    commit.instance_id = "instance"


def both(history: History) -> None:
    own(history, "copiers", 2, "z.0", 210)


def unread(history: History) -> None:
    """The reader has jumped."""
    history.polls[-1] = history.polls[-1]._replace(position=3, values=[(3, 3)], is_new=True)


def twice(history: History) -> None:
    copy(history, "y.0", 2, [3], 8, Outcome.COMMITTED, 400)
    for is_committed in (True, False):
        history.final[is_committed, OUTPUT].append((8, 9))


def missing(history: History) -> None:
    for key in ((True, OUTPUT), (False, OUTPUT)):
        history.final[key].remove((6, 8))


def of_nothing(history: History) -> None:
    """The input of a copy is not committed."""
    for is_committed in (True, False):
        history.final[is_committed, INPUT].remove((1, 1))


PLANTED: list[tuple[str, Callable[[History], None]]] = [
    ("phantom-offset", of_aborted),
    ("phantom-offset", of_nobody),
    ("lost-offset", back),
    ("lost-offset", gone),
    ("lost-offset", gone_in_the_end),
    ("unstable-offset", pending),
    ("zombie-commit", of_an_older_generation),
    ("zombie-commit", of_an_older_instance),
    ("two-owners", both),
    ("group-skip", unread),
    ("copied-twice", twice),
    ("not-copied", missing),
    ("not-copied", of_nothing),
]


def test_what_nobody_knows_is_no_anomaly() -> None:
    """A commit without an answer may count or not; so may those of a transaction without one."""
    history = sound()
    history.commits[-1].acked_us = -1
    history.final_offsets["keeper", INPUT] = -1
    history.fetched_offsets.pop()
    assert anomalies(history) == []
    history.transactions[2].outcome = Outcome.UNKNOWN
    fetched(history, "z", "copiers", 2, 400)
    fetched(history, "z", "copiers", 4, 410)
    assert anomalies(history) == []


def test_a_refused_commit_counts_for_nothing() -> None:
    history = sound()
    commit = committed(history, "k", "keeper", -1, 8, 80)
    commit.acked_us, commit.is_refused = -1, True
    assert anomalies(history) == []
    fetched(history, "k", "keeper", 8, 100)
    assert "phantom-offset" in names(history)


def test_a_group_that_forgets_may_begin_anew() -> None:
    """Its offset is gone, its generations begin with 1 again, and records are copied again."""
    history = sound()
    for plant in (gone, both, of_an_older_generation, twice):
        plant(history)
    assert names(history) >= {"lost-offset", "two-owners", "zombie-commit", "copied-twice"}
    history.groups = {name: group._replace(may_expire=True) for name, group in history.groups.items()}
    assert names(history) == set()

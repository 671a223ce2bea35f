"""Anomalies to plant into a sound history of producers and consumers, and what is no anomaly."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from txnkafka.testing.simulation.anomalies import anomalies
from txnkafka.testing.simulation.cycles import cycle
from txnkafka.testing.simulation.history import Ack, Fence, History, Outcome, Poll, Progress, Topic

P0, P1, COMPACTED, SHORT = ("a", 0), ("a", 1), ("c", 0), ("r", 0)


def sound() -> History:
    """Transaction 0 is committed in two partitions, 1 is aborted, 2 is committed; a record without
    transaction."""
    history = History()
    for topic in (Topic("a", 2), Topic("c", 1, is_compacted=True), Topic("r", 1, loses_old=True)):
        history.topics[topic.name] = topic
    offsets = {P0: 0, P1: 0}
    for number, outcome in enumerate((Outcome.COMMITTED, Outcome.ABORTED, Outcome.COMMITTED)):
        transaction = history.begin("x.0", "x", 7, number)
        for partition in (P0, P0, P1):
            send = history.send("x.0", partition, b"k", number, 100 * number)
            send.acked_us, send.offset = 100 * number + 10, offsets[partition]
            offsets[partition] += 1
        for partition in (P0, P1):
            offsets[partition] += 1  # the marker
        transaction.outcome, transaction.end_us, transaction.ended_us = (
            outcome,
            100 * number + 20,
            100 * number + 30,
        )
    plain = history.send("y", P1, b"k", -1, 310)
    plain.acked_us, plain.offset = 320, offsets[P1]
    visible = {P0: [(0, 0), (1, 1), (6, 6), (7, 7)], P1: [(0, 2), (4, 8), (6, 9)]}
    everything = {
        P0: [*visible[P0][:2], (3, 3), (4, 4), *visible[P0][2:]],
        P1: [(0, 2), (2, 5), (4, 8), (6, 9)],
    }
    for partition, values in visible.items():
        history.polls.append(
            Poll("rc", partition, True, 0, 3, values[:2] if partition == P0 else values[:1], 60, True)
        )
        history.polls.append(
            Poll("rc", partition, True, 3, 9, values[2:] if partition == P0 else values[1:], 400)
        )
        history.polls.append(Poll("ru", partition, False, 0, 9, everything[partition], 330, True))
        history.progress.append(Progress("rc", partition, 3, 3, 0, 60))
        history.progress.append(Progress("rc", partition, 9, 9, 0, 400))
        history.final[True, partition] = values
        history.final[False, partition] = everything[partition]
        history.log_starts[partition] = 0
    history.fences.append(Fence("x", 7, 0, 1))
    history.acks.append(Ack("EndTxn", 7, 0, 20))
    return history


def names(history: History) -> set[str]:
    return {anomaly.name for anomaly in anomalies(history)}


def replace(history: History, which: int, **changes: object) -> None:
    history.polls[which] = history.polls[which]._replace(**changes)  # type: ignore[arg-type]


def final(history: History, partition: tuple[str, int], values: list[tuple[int, int]]) -> None:
    history.final[True, partition] = values


def inconsistent(history: History) -> None:
    replace(history, 2, values=[(0, 0), (1, 1), (3, 4), (4, 3), (6, 6), (7, 7)])


def twice(history: History) -> None:
    final(history, P0, [*history.final[True, P0], (8, 7)])


def never_sent(history: History) -> None:
    final(history, P1, [*history.final[True, P1], (7, 99)])


def lost(history: History) -> None:
    for key in ((True, P1), (False, P1)):
        history.final[key] = [value for value in history.final[key] if value[1] != 9]


def elsewhere(history: History) -> None:
    history.sends[9].offset = 7


def aborted(history: History) -> None:
    final(history, P0, [(0, 0), (1, 1), (3, 3), (4, 4), (6, 6), (7, 7)])
    final(history, P1, [(0, 2), (2, 5), (4, 8), (6, 9)])


def undecided(history: History) -> None:
    """Nobody ever asked for its commit."""
    history.transactions[2].outcome, history.transactions[2].end_us = Outcome.OPEN, -1


def in_part(history: History) -> None:
    replace(history, 1, values=[(7, 7)])


def torn(history: History) -> None:
    history.transactions[2].outcome = Outcome.UNKNOWN
    final(history, P1, [(0, 2), (6, 9)])


def early(history: History) -> None:
    replace(history, 0, at_us=15)


def own(history: History) -> None:
    history.transactions[0].polls.append(1)


def circle(history: History) -> None:
    history.transactions[0].polls.append(6)
    history.transactions[2].polls.append(0)


def skipped(history: History) -> None:
    replace(history, 4, values=[(6, 9)])


def back(history: History) -> None:
    replace(history, 1, position=1, values=[(1, 1), (6, 6), (7, 7)])


def unordered(history: History) -> None:
    replace(history, 1, values=[(7, 7), (6, 6)])


def swapped(history: History) -> None:
    """The records of one process in another order."""
    for poll in (0, 2):
        replace(history, poll, values=[(0, 1), (1, 0), *history.polls[poll].values[2:]])
    for key in ((True, P0), (False, P0)):
        history.final[key] = [(0, 1), (1, 0), *history.final[key][2:]]


def late(history: History) -> None:
    """Record 9, sent when record 2 was acknowledged, is before it."""
    moved = {2: 6, 9: 0}
    for i, poll in enumerate(history.polls):
        if poll.partition == P1:
            values = sorted((moved.get(number, offset), number) for offset, number in poll.values)
            replace(history, i, values=values, position=0, end=9, is_new=True, at_us=900)
    for key in ((True, P1), (False, P1)):
        history.final[key] = sorted((moved.get(number, at), number) for at, number in history.final[key])


def zombie(history: History) -> None:
    history.fences.append(Fence("x", 7, 3, 500))
    history.acks.append(Ack("Produce", 7, 2, 600))


def backwards(history: History) -> None:
    history.progress.append(Progress("rc", P0, 9, 5, 0, 500))


def above(history: History) -> None:
    history.progress.append(Progress("rc", P0, 9, 10, 0, 500))


def shared_id(history: History) -> None:
    history.fences.append(Fence("z", 7, 9, 500))


PLANTED: list[tuple[str, Callable[[History], None]]] = [
    ("inconsistent-offsets", inconsistent),
    ("duplicate", twice),
    ("phantom", never_sent),
    ("lost-write", lost),
    ("wrong-offset", elsewhere),
    ("G1a", aborted),
    ("G1a", undecided),
    ("G1b", in_part),
    ("torn-transaction", torn),
    ("precommitted-read", early),
    ("precommitted-read", own),
    ("G1c", circle),
    ("poll-skip", skipped),
    ("nonmonotonic-poll", back),
    ("nonmonotonic-poll", unordered),
    ("nonmonotonic-send", swapped),
    ("realtime-append", late),
    ("zombie-ack", zombie),
    ("offsets-went-back", backwards),
    ("offsets-went-back", above),
    ("producer-id-twice", shared_id),
]


def test_what_nobody_knows_is_no_anomaly() -> None:
    """A commit without an answer may be there or not, as a whole; so may a record."""
    history = sound()
    history.transactions[2].outcome = Outcome.UNKNOWN
    history.sends[9].acked_us = -1
    assert anomalies(history) == []
    history.polls = [poll for poll in history.polls if poll.at_us < 100]
    final(history, P0, [(0, 0), (1, 1)])
    final(history, P1, [(0, 2)])
    assert anomalies(history) == []


@pytest.mark.parametrize(("partition", "is_lost"), [(COMPACTED, False), (SHORT, False), (P0, True)])
def test_what_a_topic_may_lose(partition: tuple[str, int], is_lost: bool) -> None:
    """An older record of a key, and what is below the log start."""
    history = sound()
    old, new = (history.send("y", partition, b"key", -1, 400 + i) for i in range(2))
    for i, send in enumerate((old, new)):
        send.acked_us, send.offset = 410, 20 + i
    for is_committed in (True, False):
        before = history.final.get((is_committed, partition), [])
        history.final[is_committed, partition] = [*before, (21, new.number)]
    history.log_starts[partition] = 21 if partition == SHORT else 0
    assert names(history) == ({"lost-write"} if is_lost else set())


def test_the_newest_record_of_a_key_is_never_lost() -> None:
    history = sound()
    send = history.send("y", COMPACTED, b"key", -1, 400)
    send.acked_us, send.offset = 410, 20
    history.final[True, COMPACTED] = []
    assert names(history) == {"lost-write"}


@pytest.mark.parametrize(("stable", "is_anomaly"), [(6, False), (7, True)])
def test_a_power_cut_restores_deleted_segments(stable: int, is_anomaly: bool) -> None:
    """The log start goes back, and the last stable offset with it if it was the log start."""
    history = sound()
    history.progress += [Progress("rc", SHORT, 9, stable, 6, 500), Progress("rc", SHORT, 9, 4, 4, 600)]
    assert names(history) == ({"offsets-went-back"} if is_anomaly else set())


def test_cycles() -> None:
    assert cycle({1: {2}, 2: {3}, 3: set(), 4: {1, 3}}) == []
    assert cycle({1: {2}, 2: {3}, 3: {4, 2}, 4: set()}) == [2, 3, 2]
    assert cycle({1: {1}}) == [1, 1]

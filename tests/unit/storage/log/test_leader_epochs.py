"""Leader epochs: assigned, truncated at both ends, and looked up for their end offsets."""

from __future__ import annotations

import pytest

from txnkafka.storage.formats import EpochEntry
from txnkafka.storage.log.leader_epochs import LeaderEpochs

ENTRIES = [(2, 10), (3, 20), (7, 40)]


def epochs() -> LeaderEpochs:
    return LeaderEpochs([EpochEntry(*entry) for entry in ENTRIES])


@pytest.mark.parametrize(
    ("epoch", "offset", "entries"),
    [
        (7, 50, ENTRIES),
        (8, 50, [*ENTRIES, (8, 50)]),
        (8, 30, [(2, 10), (3, 20), (8, 30)]),
        (3, 50, [(2, 10), (3, 50)]),
        (9, 0, [(9, 0)]),
        (-1, 50, ENTRIES),
    ],
)
def test_an_epoch_is_noted(epoch: int, offset: int, entries: list[tuple[int, int]]) -> None:
    """Entries that contradict the new one are removed."""
    found = epochs()
    assert found.assign(epoch, offset) == (entries != ENTRIES)
    assert found.entries == entries


@pytest.mark.parametrize(
    ("offset", "entries"),
    [(41, ENTRIES), (40, ENTRIES[:2]), (20, ENTRIES[:1]), (10, []), (0, [])],
)
def test_a_cut_at_the_end(offset: int, entries: list[tuple[int, int]]) -> None:
    found = epochs()
    assert found.truncate_from_end(offset) == (entries != ENTRIES)
    assert found.entries == entries


@pytest.mark.parametrize(
    ("offset", "entries"),
    [
        (0, ENTRIES),
        (10, ENTRIES),
        (11, [(2, 11), *ENTRIES[1:]]),
        (20, ENTRIES[1:]),
        (45, [(7, 45)]),
    ],
)
def test_a_cut_at_the_beginning(offset: int, entries: list[tuple[int, int]]) -> None:
    found = epochs()
    assert found.truncate_from_start(offset) == (entries != ENTRIES)
    assert found.entries == entries


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(7, (7, 60)), (3, (3, 40)), (5, (3, 40)), (2, (2, 20)), (1, None), (8, None)],
)
def test_where_an_epoch_ends(epoch: int, answer: tuple[int, int] | None) -> None:
    """The log ends at 60. The answer for an unknown later epoch is None."""
    assert epochs().end_offset_for(epoch, 60) == answer
    assert LeaderEpochs().end_offset_for(epoch, 60) is None

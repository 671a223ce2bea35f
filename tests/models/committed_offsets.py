"""The content of ``__consumer_offsets``, by definition instead of by replay.

Of a key's records after its last tombstone, those count that were written outside of a transaction or in one
that committed; the last of them is the committed offset. The pending offset of a producer is the last one of
its open transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Commit", "End", "Event", "Tombstone", "committed", "pending"]


class Commit(NamedTuple):
    """An offset committed for a key; ``producer_id`` -1: outside of any transaction."""

    key: int
    offset: int
    producer_id: int = -1


class Tombstone(NamedTuple):
    """A deletion of the key's offset."""

    key: int


class End(NamedTuple):
    """An end marker."""

    producer_id: int
    commit: bool


Event = Commit | Tombstone | End


def _candidates(events: Sequence[Event], key: int) -> list[tuple[int, Commit]]:
    """Return the commits of a key after its last tombstone, with their indexes."""
    tombstones = [i for i, event in enumerate(events) if event == Tombstone(key)]
    begin = tombstones[-1] if tombstones else 0
    found = [(i, event) for i, event in enumerate(events) if isinstance(event, Commit) and event.key == key]
    return [(i, event) for i, event in found if i >= begin]


def _end(events: Sequence[Event], i: int, producer_id: int) -> End | None:
    """Return the first end marker of a producer after index ``i``."""
    ends = [event for event in events[i:] if isinstance(event, End) and event.producer_id == producer_id]
    return ends[0] if ends else None


def committed(events: Sequence[Event], key: int) -> int | None:
    """Return the committed offset of a key; None when there is none."""
    counting = [
        event.offset
        for i, event in _candidates(events, key)
        if event.producer_id == -1 or _end(events, i, event.producer_id) == End(event.producer_id, True)
    ]
    return counting[-1] if counting else None


def pending(events: Sequence[Event], key: int) -> dict[int, int]:
    """Return the undecided offsets of a key by producer id."""
    return {
        event.producer_id: event.offset
        for i, event in _candidates(events, key)
        if event.producer_id != -1 and _end(events, i, event.producer_id) is None
    }

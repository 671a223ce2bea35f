"""Compares the records that a program has committed with the records that it was given. Knows no broker."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

__all__ = ["KEYS", "distinct", "key_of", "value_of", "wrong"]

KEYS = 10


def key_of(number: int) -> str:
    """The key of an input record."""
    return f"k{number % KEYS}"


def value_of(number: int) -> str:
    """The value of an input record. A program adds a field ``count`` if it counts the records of each key."""
    return json.dumps({"id": number})


def distinct(copies: Iterable[str]) -> int:
    """Return the number of different records among the copies."""
    return len({json.loads(copy)["id"] for copy in copies})


def wrong(numbers: Sequence[int], copies: Iterable[str]) -> Iterator[str]:
    """Yield each difference from exactly once.

    ``numbers`` are the committed inputs; ``copies`` are the committed values of the program, in the order of
    each partition of its topic. The counts of a key must be 1, 2, 3, … in this order: a state that was
    restored from an older moment, or that an aborted transaction has changed, breaks the sequence.
    """
    found = [json.loads(copy) for copy in copies]
    times = Counter(each["id"] for each in found)
    if lost := [number for number in numbers if not times[number]]:
        yield f"{len(lost)} lost: {lost[:5]}"
    if foreign := sorted(times.keys() - set(numbers)):
        yield f"{len(foreign)} that were never committed: {foreign[:5]}"
    if repeated := [number for number in numbers if times[number] > 1]:
        yield f"{len(repeated)} repeated: {repeated[:5]}"
    counts: dict[str, list[int]] = defaultdict(list)
    for each in found:
        if "count" in each:
            counts[key_of(each["id"])].append(each["count"])
    for key, sequence in counts.items():
        if sequence != list(range(1, len(sequence) + 1)):
            at = next(at for at, count in enumerate(sequence) if count != at + 1)
            yield f"counts of {key} are {sequence[at : at + 5]} where {at + 1} is due"

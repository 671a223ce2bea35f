"""What a power cut may leave on a disk, state by state, for every moment of what was done to it.

A state has a name by which it can be made again: ``17/25 torn 14 61, names first 2`` is the one behind 17 of
25 changes in which change 14 ends after 61 bytes and of the unsynced changes of names the first two are made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from txnkafka.testing.disk import Disk
from txnkafka.testing.losses import Choice, Losses
from txnkafka.testing.memory_files import MemoryFiles
from txnkafka.testing.unsynced import Unsynced

__all__ = ["CrashState", "crash_state", "crash_states"]

GOLDEN_RATIO = 0.6180339887498949


class CrashState(NamedTuple):
    """A disk after a power cut behind the first ``changes`` changes. ``kind`` is what it lost, in general.

    ``MemoryFiles(clock, state.disk)`` are its files; what recovery does to them can be cut off again.
    """

    name: str
    kind: str
    changes: int
    disk: Disk


def crash_states(
    files: MemoryFiles,
    *,
    limit: int | None = None,
    seed: int = 0,
    begin: int = 0,
    news: Collection[int] = (),
) -> Iterator[CrashState]:
    """The states that a power cut may leave during what was done to ``files``, from change number ``begin``
    on; those that look alike once.

    At most ``limit`` of them, spread over all; another ``seed`` takes others. Most states end in the middle
    of one write: of the others, in which whole writes and names are missing, up to two thirds of the limit
    are taken. ``news`` are numbers of changes behind which more is expected of a disk: from there on, what
    was seen before counts anew.
    """
    taken = _Taken(files, limit, seed, begin)
    at = -1
    seen: set[int] = set()
    for changes, losses, writes, names in _choices(files, begin):
        if changes in news and changes != at:
            seen.clear()
        at = changes
        if taken.takes(writes):
            disk, mark = losses.disk(writes, names)
            if mark not in seen:
                seen.add(mark)
                kind = f"{writes[0]}, names {names[0]}"
                yield CrashState(_name(files, changes, writes, names), kind, changes, disk)


class _Taken:
    """Which of the choices are taken, asked in their order."""

    def __init__(self, files: MemoryFiles, limit: int | None, seed: int, begin: int) -> None:
        self._wanted: list[Iterator[int]] = [iter(range(1 << 62)), iter(range(1 << 62))]
        if limit is not None:
            totals = Counter(_is_torn(writes) for _, _, writes, _ in _choices(files, begin))
            whole = min(totals[False], max(limit - totals[True], limit * 2 // 3))
            self._wanted = [
                _spread(total, share, seed) if share < total else iter(range(total))
                for total, share in ((totals[False], whole), (totals[True], limit - whole))
            ]
        self._following = [next(each, -1) for each in self._wanted]
        self._asked = [0, 0]

    def takes(self, writes: Choice) -> bool:
        """Whether the next choice is taken."""
        which = int(_is_torn(writes))
        is_next = self._asked[which] == self._following[which]
        self._asked[which] += 1
        if is_next:
            self._following[which] = next(self._wanted[which], -1)
        return is_next


def _is_torn(writes: Choice) -> bool:
    return writes[2] != -1


def crash_state(files: MemoryFiles, name: str) -> CrashState:
    """The state of this name, of the same changes. Raises ValueError when there is none."""
    for changes, losses, writes, names in _choices(files):
        if _name(files, changes, writes, names) == name:
            disk, _ = losses.disk(writes, names)
            return CrashState(name, f"{writes[0]}, names {names[0]}", changes, disk)
    raise ValueError(f"{len(files.journal)} changes have no crash state {name!r}")


def _choices(files: MemoryFiles, begin: int = 0) -> Iterator[tuple[int, Losses, Choice, Choice]]:
    """Every choice of what is missing, behind every number of changes from ``begin`` on."""
    unsynced = Unsynced(files.base)
    for number in range(len(files.journal) + 1):
        if number > 0:
            unsynced.make(files.journal[number - 1])
        if number < begin:
            continue
        losses = Losses(unsynced)
        for writes, names in losses.choices():
            yield number, losses, writes, names


def _name(files: MemoryFiles, changes: int, writes: Choice, names: Choice) -> str:
    return f"{changes}/{len(files.journal)} {_words(writes)}, names {_words(names)}"


def _words(choice: Choice) -> str:
    return " ".join(str(each) for each in choice if each != -1)


def _spread(total: int, limit: int, seed: int) -> Iterator[int]:
    """Some ``limit`` of ``total`` numbers in order, one at a random place of each stretch; repeatable."""
    last = -1
    for stretch in range(limit):
        number = int((stretch + (seed + stretch) * GOLDEN_RATIO % 1) * total / limit)
        if number > last:
            last = number
            yield number

"""Enumerates the disk states that a power cut may leave, at every moment of a sequence of changes.

A state can be recreated from its name: in ``17/25 torn 14 61, names first 2``, 17 of 25 changes were made,
change 14 ends after 61 bytes, and only the first two unsynced changes of names are on the disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from txnkafka.testing.disk import Disk
from txnkafka.testing.losses import Choice, Losses
from txnkafka.testing.memory_files import MemoryFiles
from txnkafka.testing.unsynced import Unsynced

GOLDEN_RATIO = 0.6180339887498949


class CrashState(NamedTuple):
    """A disk after a power cut that follows the first ``changes`` changes. ``kind`` is the kind of loss.

    ``MemoryFiles(clock, state.disk)`` are its files; recovery on these can be interrupted in the same way."""

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
    """Yield the states that a power cut may leave after each change to ``files``, from change number
    ``begin`` on; equal disks are yielded once.

    At most ``limit`` states are selected, spread over all; another ``seed`` selects others. Most states end
    within one write; up to two thirds of the limit are reserved for states in which whole writes and names
    are missing. ``news`` are numbers of changes after which a disk must satisfy more: from there on, a disk
    equal to an earlier one is yielded again."""
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
    """Selects some of the choices, which are passed in order."""

    def __init__(self, files: MemoryFiles, limit: int | None, seed: int, begin: int) -> None:
        self._wanted: list[Iterator[int]] = [iter(range(1 << 62)), iter(range(1 << 62))]
        if limit is not None:
            totals = Counter(_is_torn(writes) for _, _, writes, _ in _choices(files, begin))
            whole = min(totals[False], max(limit - totals[True], limit * 2 // 3))
            self._wanted = [
                _spread(total, share, seed) if share < total else iter(range(total))
                for total, share in ((totals[False], whole), (totals[True], limit - whole))
            ]
        self._following = [next(numbers, -1) for numbers in self._wanted]
        self._asked = [0, 0]

    def takes(self, writes: Choice) -> bool:
        """Return True if the next choice is selected."""
        which = int(_is_torn(writes))
        is_next = self._asked[which] == self._following[which]
        self._asked[which] += 1
        if is_next:
            self._following[which] = next(self._wanted[which], -1)
        return is_next


def _is_torn(writes: Choice) -> bool:
    return writes[2] != -1


def crash_state(files: MemoryFiles, name: str) -> CrashState:
    """Return the state with this name, for the same changes. Raises ValueError for an unknown name."""
    for changes, losses, writes, names in _choices(files):
        if _name(files, changes, writes, names) == name:
            disk, _ = losses.disk(writes, names)
            return CrashState(name, f"{writes[0]}, names {names[0]}", changes, disk)
    raise ValueError(f"{len(files.journal)} changes have no crash state {name!r}")


def _choices(files: MemoryFiles, begin: int = 0) -> Iterator[tuple[int, Losses, Choice, Choice]]:
    """Yield every choice of losses after every number of changes from ``begin`` on."""
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
    return " ".join(str(part) for part in choice if part != -1)


def _spread(total: int, limit: int, seed: int) -> Iterator[int]:
    """Yield about ``limit`` of ``total`` numbers in order, one at random from each of equal ranges;
    deterministic for a seed."""
    last = -1
    for stretch in range(limit):
        number = int((stretch + (seed + stretch) * GOLDEN_RATIO % 1) * total / limit)
        if number > last:
            last = number
            yield number

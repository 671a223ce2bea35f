"""The staging protocol: a job is divided into numbered parts, each of which takes effect exactly once,
whatever crashes on the way and however often a part is made.

    staged/N-X/…       what attempt X at part N wrote
    staged/N-X.json    the record of the attempt: all of it is there and synced
    units/N.json       the same record: part N counts

A part counts from the moment its record is renamed from ``staged`` to ``units``. What counting means (files
move to where readers look, batches are appended) is done after that, by whoever finds that a part counts: so
that step must be one that can be repeated. What lies in ``staged`` has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from txnkafka.env import DataFiles, make_directories, remove_tree

__all__ = ["StagedPart", "StagingArea"]

RECORD_LIMIT = 1 << 31


class StagedPart(Protocol):
    """The record of an attempt: the number of its part and the attempt's name."""

    @property
    def number(self) -> int: ...
    @property
    def name(self) -> str: ...


Part = TypeVar("Part", bound=StagedPart)


class StagingArea(Generic[Part]):
    """The parts of one job in ``folder``; ``parse`` makes a part of the bytes that record_attempt was given.

    One process at a time counts parts; attempts are made anywhere, in ``staging``.
    """

    def __init__(self, files: DataFiles, folder: str, parse: Callable[[bytes], Part]) -> None:
        self.staging = files.join(folder, "staged")
        self._counting = files.join(folder, "units")
        self._files = files
        self._parse = parse

    def create(self) -> None:
        """Make the directories."""
        for folder in (self.staging, self._counting):
            make_directories(self._files, folder)

    def staged(self) -> Iterator[Part]:
        """The complete attempts at parts that do not count yet; of some parts there may be several."""
        for entry in self._files.list(self.staging):
            if entry.name.endswith(".json"):
                yield self._read(self.staging, entry.name)

    def counted(self) -> Iterator[Part]:
        """The parts that count, by number."""
        for entry in self._files.list(self._counting):
            yield self._read(self._counting, entry.name)

    def _read(self, folder: str, name: str) -> Part:
        return self._parse(self._files.read(self._files.join(folder, name), RECORD_LIMIT))

    def count(self, part: Part) -> None:
        """Make a staged part count, durably. At most one attempt at a part may be counted."""
        source = self._files.join(self.staging, f"{part.name}.json")
        self._files.rename(source, self._files.join(self._counting, f"{part.number:08}.json"))
        self._files.sync_directory(self._counting)

    def clear(self) -> None:
        """Remove the attempts, as far as nobody writes there any more: a late one has no effect."""
        with suppress(OSError):
            remove_tree(self._files, self.staging)

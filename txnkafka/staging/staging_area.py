"""The staging protocol: a job is divided into numbered parts, each of which takes effect exactly once,
whatever crashes on the way and however often a part is made.

    staged/N-X/…       the files of attempt X at part N
    staged/N-X.json    the record of the attempt: its files are complete and synced
    units/N.json       the same record: part N counts

A part counts from the moment its record is renamed from ``staged`` to ``units``. The effect of the part
(files move to where readers look, batches are appended) follows, and is repeated by a later run after a
crash, so it must be idempotent. Files in ``staged`` have no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from txnkafka.env import DataFiles, make_directories, remove_tree

RECORD_LIMIT = 1 << 31


class StagedPart(Protocol):
    """The record of an attempt: the number of its part and the attempt's name."""

    @property
    def number(self) -> int: ...
    @property
    def name(self) -> str: ...


Part = TypeVar("Part", bound=StagedPart)


class StagingArea(Generic[Part]):
    """The parts of one job in ``folder``; ``parse`` parses the bytes that were given to record_attempt.

    Only one process at a time may count parts; attempts may be made anywhere, in ``staging``."""

    def __init__(self, files: DataFiles, folder: str, parse: Callable[[bytes], Part]) -> None:
        self.staging = files.join(folder, "staged")
        self._counting = files.join(folder, "units")
        self._files = files
        self._parse = parse

    def create(self) -> None:
        """Create the directories."""
        for folder in (self.staging, self._counting):
            make_directories(self._files, folder)

    def staged(self) -> Iterator[Part]:
        """Yield the complete attempts at parts that do not count yet; a part may have several."""
        for entry in self._files.list(self.staging):
            if entry.name.endswith(".json"):
                yield self._read(self.staging, entry.name)

    def counted(self) -> Iterator[Part]:
        """Yield the parts that count, by number."""
        for entry in self._files.list(self._counting):
            yield self._read(self._counting, entry.name)

    def _read(self, folder: str, name: str) -> Part:
        return self._parse(self._files.read(self._files.join(folder, name), RECORD_LIMIT))

    def count(self, part: Part) -> None:
        """Count a staged part, durably. At most one attempt at a part may be counted."""
        source = self._files.join(self.staging, f"{part.name}.json")
        self._files.rename(source, self._files.join(self._counting, f"{part.number:08}.json"))
        self._files.sync_directory(self._counting)

    def clear(self) -> None:
        """Remove the attempts; a late attempt that is still being written has no effect."""
        with suppress(OSError):
            remove_tree(self._files, self.staging)

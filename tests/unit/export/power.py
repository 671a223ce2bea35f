"""A disk with power cuts, which lose some or all of the unsynced data."""

from __future__ import annotations

import random
import shutil
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from tests.unit.export.outputs import StoppingFile, StoppingOutput

__all__ = ["PowerCut"]


class PowerCut(StoppingOutput):
    """Records what was not synced; ``cut`` removes some of it.

    Names in a directory are lost in reverse order, as with a journal; the content of an unsynced file is
    truncated anywhere.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._names: dict[str, list[Callable[[], None]]] = defaultdict(list)
        self._synced: set[int] = set()

    def make_directory(self, path: str) -> None:
        super().make_directory(path)
        self._names[folder(path)].append(lambda: shutil.rmtree(path, ignore_errors=True))

    def create(self, path: str) -> StoppingFile:
        file = super().create(path)
        self._names[folder(path)].append(lambda: Path(path).unlink(missing_ok=True))
        return file

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        self._names[folder(target)].append(lambda: undo(source, target))

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        self._names.pop(path, None)

    def synced(self, path: str) -> None:
        self._synced.add(Path(path).stat().st_ino)

    def cut(self, root: Path, chance: random.Random) -> None:
        """Change the files under ``root`` to a state that may be found after a power cut."""
        for names in self._names.values():
            for take_back in reversed(names[chance.randint(0, len(names)) :]):
                take_back()
        for path in root.rglob("*"):
            if path.is_file() and path.stat().st_ino not in self._synced:
                with path.open("r+b") as file:
                    file.truncate(chance.randint(0, path.stat().st_size))


def folder(path: str) -> str:
    return path.rpartition("/")[0]


def undo(source: str, target: str) -> None:
    if Path(target).exists() and Path(source).parent.exists():
        Path(target).rename(source)

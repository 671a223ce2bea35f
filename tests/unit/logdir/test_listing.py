"""A directory is listed while its broker replaces segments: before each name, before each size."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.unit.logdir.logs import batch, write_log
from txnkafka.env import DirectoryEntry, LocalFileSystem
from txnkafka.errors import LogDirError
from txnkafka.logdir.partition_files import list_partition

FIRST, SECOND, LAST, NEXT = (f"{base:020d}.log" for base in (0, 2, 4, 6))

Step = Callable[[Path], object]


def written(path: Path) -> None:
    write_log(path.parent, path.name, {0: [batch(0)], 2: [batch(2)], 4: [batch(4)]})
    (path / f"{FIRST}.cleaned").write_bytes(batch(0) + batch(2))


def renamed(name: str, suffix: str, new_suffix: str) -> Step:
    return lambda path: os.rename(path / f"{name}{suffix}", path / f"{name}{new_suffix}")


# org.apache.kafka.storage.internals.log.LocalLog.replaceSegments; then the last batch, and a roll
STEPS: list[Step] = [
    renamed(FIRST, ".cleaned", ".swap"),
    renamed(SECOND, "", ".deleted"),
    renamed(FIRST, "", ".deleted"),
    renamed(FIRST, ".swap", ""),
    lambda path: (path / LAST).write_bytes(batch(4) + batch(5)),
    lambda path: (path / NEXT).write_bytes(batch(6)),
]


def sizes(path: Path) -> list[tuple[int, int]]:
    return [(each.base_offset, each.size) for each in list_partition(LocalFileSystem(), str(path)).segments]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> list[list[tuple[int, int]]]:
    """Return the segments that the directory has after any number of steps."""
    path = tmp_path_factory.mktemp("quiet") / "t-0"
    written(path)
    found = [sizes(path)]
    for step in STEPS:
        step(path)
        found.append(sizes(path))
    return found


@contextmanager
def listed(
    scandir: Callable[[str], AbstractContextManager[Iterator[os.DirEntry[str]]]],
    steps: list[Step],
    before_size: int,
    count: int,
    path: str,
) -> Iterator[Iterator[os.DirEntry[str]]]:
    """List the names. ``count`` steps are taken before the size of a certain file is read, the others when
    the listing has ended."""
    with scandir(path) as entries:
        names = sorted(entries, key=lambda entry: entry.name)

    def found() -> Iterator[os.DirEntry[str]]:
        for number, entry in enumerate(names):
            if number == before_size:
                take(steps, count, Path(path))
            yield entry

    yield found()
    take(steps, len(steps), Path(path))


def take(steps: list[Step], count: int, path: Path) -> None:
    for _ in range(min(count, len(steps))):
        steps.pop(0)(path)


@pytest.mark.parametrize("names_after", range(len(STEPS) + 1))
def test_a_listing_during_a_swap_and_a_roll_is_one_that_was_there(
    tmp_path: Path, names_after: int, sound: list[list[tuple[int, int]]]
) -> None:
    """The names are read after ``names_after`` steps."""
    scandir = os.scandir
    for before_size in range(7):
        for count in range(len(STEPS) + 1 - names_after):
            path = tmp_path / f"{before_size}-{count}" / "t-0"
            written(path)
            steps = list(STEPS)
            take(steps, names_after, path)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(os, "scandir", partial(listed, scandir, steps, before_size, count))
                assert sizes(path) in sound


def test_a_directory_that_never_rests_is_an_error(tmp_path: Path) -> None:
    class Restless(LocalFileSystem):
        number = 0

        def list(self, path: str) -> list[DirectoryEntry]:
            self.number += 1
            return [DirectoryEntry(f"{self.number:020d}.log", False, 0, 0)]

    with pytest.raises(LogDirError, match="t-0 changes faster than it can be listed"):
        list_partition(Restless(), str(tmp_path / "t-0"))

"""``SimulatedFiles``: files in memory whose calls fail, or kill the process, on request; and their state
after a power cut."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from txnkafka.testing.disk import EMPTY_DISK, Disk
from txnkafka.testing.memory_files import MemoryFile, MemoryFiles
from txnkafka.testing.unsynced import Unsynced

if TYPE_CHECKING:
    from txnkafka.env import Random
    from txnkafka.testing.unsynced import Numbered

CALLS: Final = ("write", "sync", "sync", "sync", "create", "rename", "sync_directory", "read")
"""The calls that may fail; repetitions make a call more likely."""
BLOCKS: Final = (1, 512, 4_096)
"""Block sizes, in bytes, for the allocation of a file's disk space."""
_SECTOR_BYTES: Final = 512


class Died(BaseException):
    """Raised when the process dies in a call; no code of the process may continue or catch this."""


class SimulatedFiles(MemoryFiles):
    """``failing`` is the call that fails once with EIO, after ``spared`` successful calls; a sync fails only
    for a file whose path contains ``failing_in``. After a failed sync, the system has dropped unwritten data
    if it ``drops_unsynced``; otherwise the next sync writes it. While the disk ``is_full``, writes fail with
    ENOSPC, every other one after half of its bytes, unless they end in the file's last block of
    ``block_bytes``. ``failures`` counts both kinds.

    The process dies in the change number ``dies_in`` from now on (0: none). ``settled`` is the number of
    changes that were certainly begun before a power cut."""

    def __init__(self, base: Disk = EMPTY_DISK) -> None:
        super().__init__(None, base)
        self.failing: str | None = None
        self.failing_in = ""
        self.spared = 0
        self.drops_unsynced = True
        self.is_full = False
        self.block_bytes = BLOCKS[0]
        self.dies_in = 0
        self.failures = 0
        self.settled = 0

    def unlock_all(self) -> None:
        """Release the locks of a dead process."""
        self._locked.clear()
        self.dies_in = 0

    def content(self, inode: int) -> bytes | bytearray:
        if self.failing == "read":
            self._fail("read", "")
        return self._contents[inode]

    def write(self, file: MemoryFile, position: int, written: bytes) -> None:
        if self.dies_in:
            self._come_nearer()
        if self.is_full and not self._has_room(position, len(written)):
            self.failures += 1
            if self.failures % 2:
                super().write(file, position, written[: len(written) // 2])
            raise OSError(errno.ENOSPC, "no space left on device (simulated)", file.path)
        if self.failing == "write":
            self._fail("write", file.path)
        super().write(file, position, written)

    def sync(self, file: MemoryFile, failed: bool = False) -> None:
        if self.dies_in:
            self._come_nearer()
        if self.failing == "sync" and self.failing_in in file.path:
            if not self.spared and self.drops_unsynced:
                super().sync(file, failed=True)
            self._fail("sync", file.path)
        super().sync(file, failed)

    def rename(self, source: str, target: str) -> None:
        if self.dies_in:
            self._come_nearer()
        if self.failing == "rename":
            self._fail("rename", target)
        super().rename(source, target)

    def sync_directory(self, path: str) -> None:
        if self.dies_in:
            self._come_nearer()
        if self.failing == "sync_directory":
            self._fail("sync_directory", path)
        super().sync_directory(path)

    def create(self, path: str) -> MemoryFile:
        if self.dies_in:
            self._come_nearer()
        if self.failing == "create":
            self._fail("create", path)
        return super().create(path)

    def remove(self, path: str) -> None:
        if self.dies_in:
            self._come_nearer()
        super().remove(path)

    def truncate(self, file: MemoryFile, size: int) -> None:
        if self.dies_in:
            self._come_nearer()
        super().truncate(file, size)

    def _come_nearer(self) -> None:
        """Count down to the death of the process; the change that kills it is its last."""
        if self.dies_in == 1:
            raise Died
        self.dies_in -= 1

    def _has_room(self, position: int, size: int) -> bool:
        return -position % self.block_bytes >= size

    def _fail(self, call: str, path: str) -> None:
        if self.spared:
            self.spared -= 1
            return
        self.failing = None
        self.failures += 1
        raise OSError(errno.EIO, f"input/output error of {call} (simulated)", path)


def power_cut(files: SimulatedFiles, random: Random) -> Disk:
    """Return the disk after a power cut: all synced changes, and some of the rest. Changes whose calls have
    not returned may be missing."""
    unsynced = Unsynced(files.base)
    changes = random.randint(files.settled, len(files.journal)) if random.random() < 0.5 else None
    for change in files.journal[:changes]:
        unsynced.make(change)
    mode = random.random()
    contents = dict(unsynced.contents)
    for inode in sorted(unsynced.writes):
        contents[inode] = unsynced.content(inode, _losses(unsynced.uncertain(inode), random, mode))
    names = unsynced.names_after(_renamed(unsynced.renamed, random))
    return Disk(contents, names, dict(unsynced.modified_ms), unsynced.next_inode)


def _losses(writes: list[Numbered], random: Random, mode: float) -> dict[int, bytes | None]:
    """Return the replacements of a file's unsynced writes on the disk; other writes are complete."""
    if mode < 0.2:
        return {}
    if mode < 0.4 or random.random() < 0.3:
        return {number: None for number, _ in writes}
    found: dict[int, bytes | None] = {}
    kept = random.random()
    for number, change in writes:
        if random.random() < kept:
            continue
        content, kind = change.content, random.randrange(4)
        end = random.randrange(len(content) + 1) if len(content) < _SECTOR_BYTES else _SECTOR_BYTES
        if kind == 0 or change.kind == "truncate":
            found[number] = None
        elif kind == 1:
            found[number] = bytes(len(content))
        elif kind == 2:
            found[number] = content[:end]
        else:
            found[number] = content[:end] + bytes(len(content) - end)
    return found


def _renamed(changes: list[Numbered], random: Random) -> list[Numbered]:
    """Return the changes of names that are on the disk."""
    kind = random.randrange(5)
    if kind == 0 or not changes:
        return changes
    if kind == 1:
        return []
    if kind == 2:
        return changes[: random.randrange(len(changes))]
    if kind == 3:
        missing = random.randrange(len(changes))
        return changes[:missing] + changes[missing + 1 :]
    directory = random.choice(changes)[1].directory
    return [numbered for numbered in changes if numbered[1].directory != directory]

"""An open file of MemoryFiles, and a lock there."""

from __future__ import annotations

import errno
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from txnkafka.env import Bytes
    from txnkafka.testing.memory_files import MemoryFiles

__all__ = ["MemoryFile", "MemoryLock"]


class MemoryFile:
    """An open file."""

    def __init__(self, files: MemoryFiles, inode: int, path: str, *, writable: bool = True) -> None:
        self.inode = inode
        self.path = path
        self._files: MemoryFiles | None = files
        self._writable = writable

    def size(self) -> int:
        return len(self._open().content(self.inode))

    def read_into(self, buffer: memoryview, position: int) -> int:
        part = self._open().content(self.inode)[position : position + len(buffer)]
        buffer[: len(part)] = part
        return len(part)

    def read_ahead(self, position: int, length: int) -> None:
        """Do nothing: all bytes are in memory."""

    def map(self, size: int) -> None:
        return None

    def fileno(self) -> int:
        raise io.UnsupportedOperation("a file in memory has no descriptor")

    def write(self, position: int, parts: Sequence[Bytes]) -> None:
        if written := b"".join(parts):
            self._open(to_write=True).write(self, position, written)

    def truncate(self, size: int) -> None:
        self._open(to_write=True).truncate(self, size)

    def sync(self) -> None:
        self._open(to_write=True).sync(self)

    def fail_sync(self) -> None:
        """Record a sync whose failure the system has reported."""
        self._open(to_write=True).sync(self, failed=True)

    def close(self) -> None:
        self._files = None

    def _open(self, to_write: bool = False) -> MemoryFiles:
        if self._files is None or (to_write and not self._writable):
            raise OSError(errno.EBADF, "not open to do that", self.path)
        return self._files


class MemoryLock:
    """A lock on a file; ``locked`` has the inodes of all locked files."""

    def __init__(self, locked: set[int], inode: int) -> None:
        self._locked: set[int] | None = locked
        self._inode = inode

    def close(self) -> None:
        if self._locked is not None:
            self._locked.remove(self._inode)
            self._locked = None

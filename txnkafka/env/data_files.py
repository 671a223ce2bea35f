"""Files that are written: a data directory of our own, an export. The protocols, and the machine's own files.

What must survive a power cut is synced, and so is the directory that names it: a name that was not synced
may be gone, an old name may be back. Every change of the disk is one call here, so that a test can stop
before any of them, let any of them fail, and know what a power cut may leave. Calls raise OSError.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Sequence
from typing import Protocol

from txnkafka.env.file_lock import FileLock, lock_file
from txnkafka.env.filesystem import FileSystem, LocalFile, LocalFileSystem, ReadableFile

__all__ = ["Bytes", "DataFile", "DataFiles", "LocalDataFiles", "Lock"]

Bytes = bytes | bytearray | memoryview  # a memoryview of single bytes
PARTS_LIMIT = os.sysconf("SC_IOV_MAX")  # of one system call


class DataFile(ReadableFile, Protocol):
    """A file that is open to read and to write. Nothing is synced by closing it."""

    def fileno(self) -> int:
        """The descriptor, for calls like sendfile. Raises io.UnsupportedOperation, an OSError, where the file
        has none."""
        ...

    def write(self, position: int, parts: Sequence[Bytes]) -> None:
        """Write the parts one behind the other from ``position`` on, in one call where the system takes
        them at once. After an OSError the file may hold any part of them."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file, or fill it up with zeros, to ``size`` bytes."""
        ...

    def sync(self) -> None:
        """Wait until content and size are on the disk; the name is not. After an OSError nobody knows what
        is there, and a second try may succeed without having written anything."""
        ...


class Lock(Protocol):
    """A lock that is held until it is closed, or the process ends."""

    def close(self) -> None:
        """Let others have it."""
        ...


class DataFiles(FileSystem, Protocol):
    """Where files are written."""

    def create(self, path: str) -> DataFile:
        """A new file; raises FileExistsError."""
        ...

    def open_to_write(self, path: str) -> DataFile:
        """Open a regular file to read and to write; not through a link."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Give a file or a directory another name, in one step; a file that had it before is gone."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, a link or an empty directory."""
        ...

    def make_directory(self, path: str) -> None:
        """Make one directory; raises FileExistsError."""
        ...

    def sync_directory(self, path: str) -> None:
        """Wait until the names in a directory are on the disk."""
        ...

    def lock(self, path: str) -> Lock | None:
        """Lock a file, which is made if need be; None when another process or this one has the lock. A child
        of this process does not have it."""
        ...

    def set_modified_ms(self, path: str, ms: int) -> None:
        """Say when a file was written last."""
        ...


class LocalDataFile(LocalFile):
    """A file opened by LocalDataFiles."""

    def __init__(self, path: str, flags: int = 0) -> None:
        super().__init__(path, os.O_RDWR | os.O_NOFOLLOW | flags)
        self._process = os.getpid()

    def fileno(self) -> int:
        if self._descriptor < 0:
            raise OSError(errno.EBADF, "the file is closed", self._path)
        return self._descriptor

    def write(self, position: int, parts: Sequence[Bytes]) -> None:
        wanted = sum(map(len, parts))
        while wanted > 0:
            taken = parts if len(parts) <= PARTS_LIMIT else parts[:PARTS_LIMIT]
            try:
                count = os.pwritev(self._to_write(), taken, position)
            except OSError as error:
                raise self._named(error) from None
            if count == wanted:
                return
            if count == 0 and any(map(len, taken)):
                raise OSError(errno.EIO, f"nothing was written at position {position}", self._path)
            position += count
            wanted -= count
            parts = _behind(parts, count)

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._to_write(), size)
        except OSError as error:
            raise self._named(error) from None

    def sync(self) -> None:
        try:
            _sync(self._to_write())
        except OSError as error:
            raise self._named(error) from None

    def _to_write(self) -> int:
        if self._process != os.getpid():
            raise RuntimeError(f"{self._path} was opened before a fork: only the parent may write it")
        if self._descriptor < 0:
            raise OSError(errno.EBADF, "the file is closed")
        return self._descriptor

    def _named(self, error: OSError) -> OSError:
        return OSError(error.errno, error.strerror, self._path)


class LocalDataFiles(LocalFileSystem):
    """The machine's own files."""

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)  # a link to nothing has the name, too

    def create(self, path: str) -> LocalDataFile:
        return LocalDataFile(path, os.O_CREAT | os.O_EXCL)

    def open_to_write(self, path: str) -> LocalDataFile:
        return LocalDataFile(path)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def remove(self, path: str) -> None:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            os.rmdir(path)
        else:
            os.unlink(path)

    def make_directory(self, path: str) -> None:
        os.mkdir(path)

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, path: str) -> FileLock | None:
        return lock_file(path)

    def set_modified_ms(self, path: str, ms: int) -> None:
        os.utime(path, ns=(ms * 1_000_000, ms * 1_000_000), follow_symlinks=False)


def _behind(parts: Sequence[Bytes], count: int) -> Sequence[Bytes]:
    """What is left of the parts behind the first ``count`` bytes."""
    for number, part in enumerate(parts[:PARTS_LIMIT]):
        if count < len(part):
            return [memoryview(part)[count:], *parts[number + 1 :]]
        count -= len(part)
    return parts[PARTS_LIMIT:]


def _sync(descriptor: int) -> None:
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # fsync there leaves it in the drive's cache
    else:
        os.fdatasync(descriptor)

"""Writable files (data directories, exports): the protocols, and the implementation for local files.

To survive a power cut, both the data and the directory with its name must be synced: otherwise a new name may
be lost, or an old name reappear. Every change of the disk is one call here, so that a test can stop before
any call, make any call fail, and compute the possible states after a power cut. Calls raise OSError.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple, Protocol

from txnkafka.env.file_lock import FileLock, is_file_locked_here, lock_file, locking_process
from txnkafka.env.filesystem import FileSystem, LocalFile, LocalFileSystem, ReadableFile

Bytes = bytes | bytearray | memoryview  # a memoryview must have items of one byte
PARTS_LIMIT = os.sysconf("SC_IOV_MAX")  # parts per system call


class DataFile(ReadableFile, Protocol):
    """A file that is open for reading and writing. Closing it does not sync it."""

    def fileno(self) -> int:
        """Return the descriptor, for calls like sendfile. Raises io.UnsupportedOperation, an OSError, if the
        file has no descriptor."""
        ...

    def write(self, position: int, parts: Sequence[Bytes]) -> None:
        """Write the parts consecutively from ``position`` on, in one system call if possible. After an
        OSError the file may contain any part of the bytes."""
        ...

    def truncate(self, size: int) -> None:
        """Truncate the file, or extend it with zeros, to ``size`` bytes."""
        ...

    def sync(self) -> None:
        """Sync content and size to the disk, but not the name. After an OSError the content on the disk is
        unknown, and another call may succeed although it writes nothing."""
        ...


class Volume(NamedTuple):
    """The absolute ``path`` of a directory; the total and usable bytes of its file system, -1 if unknown."""

    path: str
    total_bytes: int = -1
    usable_bytes: int = -1


class Lock(Protocol):
    """A lock that lasts until it is closed or the process ends."""

    def close(self) -> None:
        """Release the lock."""
        ...


class DataFiles(FileSystem, Protocol):
    """A file system for writing."""

    def create(self, path: str) -> DataFile:
        """Create and open a new file. Raises FileExistsError."""
        ...

    def open_to_write(self, path: str) -> DataFile:
        """Open a regular file for reading and writing; links are not followed."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Rename a file or a directory atomically; a file with the new name is replaced."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, a link or an empty directory."""
        ...

    def make_directory(self, path: str) -> None:
        """Create one directory. Raises FileExistsError."""
        ...

    def sync_directory(self, path: str) -> None:
        """Sync the names in a directory to the disk."""
        ...

    def sync_file_system(self, path: str) -> bool:
        """Sync the whole file system of ``path``, contents and names. Returns False without syncing if the
        system lacks such a call, or if the call hides errors."""
        ...

    def lock(self, path: str) -> Lock | None:
        """Lock a file, creating it if necessary; return None when this or another process has the lock. A
        forked child does not inherit the lock."""
        ...

    def is_locked_here(self, path: str) -> bool:
        """Return True if this process has locked a file."""
        ...

    def locking_process(self, path: str) -> int | None:
        """Return the id of the process that has locked a file; None if unknown."""
        ...

    def set_modified_ms(self, path: str, ms: int) -> None:
        """Set the modification time of a file."""
        ...

    def volume(self, path: str) -> Volume:
        """Return the place and the free space of a directory."""
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
    """The local file system, for writing."""

    def __repr__(self) -> str:
        return "LocalDataFiles()"

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)  # a dangling link also occupies the name

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

    def sync_file_system(self, path: str) -> bool:
        syncfs = _syncfs()
        if syncfs is None:
            return False
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            code = syncfs(descriptor)
            if code:
                raise OSError(code, os.strerror(code), path)
        finally:
            os.close(descriptor)
        return True

    def lock(self, path: str) -> FileLock | None:
        return lock_file(path)

    def is_locked_here(self, path: str) -> bool:
        return is_file_locked_here(path)

    def locking_process(self, path: str) -> int | None:
        return locking_process(path)

    def set_modified_ms(self, path: str, ms: int) -> None:
        os.utime(path, ns=(ms * 1_000_000, ms * 1_000_000), follow_symlinks=False)

    def volume(self, path: str) -> Volume:
        found = os.statvfs(path)
        return Volume(os.path.abspath(path), found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)


def _behind(parts: Sequence[Bytes], count: int) -> Sequence[Bytes]:
    """Return the parts without their first ``count`` bytes."""
    for number, part in enumerate(parts[:PARTS_LIMIT]):
        if count < len(part):
            return [memoryview(part)[count:], *parts[number + 1 :]]
        count -= len(part)
    return parts[PARTS_LIMIT:]


def _sync(descriptor: int) -> None:
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # on macOS, fsync leaves the data in the drive's cache
    else:
        os.fdatasync(descriptor)


@cache
def _syncfs() -> Callable[[int], int] | None:
    """Return syncfs(2), which reports errors since Linux 5.8. Imports ctypes only for processes that create
    partitions."""
    import ctypes

    release = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
    if sys.platform != "linux" or release < (5, 8):
        return None
    library = ctypes.CDLL(None, use_errno=True)

    def call(descriptor: int) -> int:
        return ctypes.get_errno() if library.syncfs(descriptor) else 0

    return call

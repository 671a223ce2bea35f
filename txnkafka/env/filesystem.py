"""Files, as far as a reader of somebody's log directory needs them. ``data_files.py`` writes.

``FileSystem`` is the protocol, ``LocalFileSystem`` the machine's own; ``remote.py`` has the others. Only
regular files are opened: a FIFO or a device that stands where a segment should would block or never end.
Links are followed to read, never to write. A
read that fails for good raises the OSError of the system; who reads many files decides what that means.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from txnkafka._core.mapping import Mapping
from txnkafka.env.file_lock import LINK, NOT_REGULAR, check_regular, is_file_locked

__all__ = ["DirectoryEntry", "FileSystem", "LocalFileSystem", "MappedBytes", "ReadableFile"]


class DirectoryEntry(NamedTuple):
    """One name in a directory. ``size`` is 0 for directories; a name that vanished meanwhile is not
    listed. For a link ``is_directory`` and ``size`` are those of its target. ``fault`` says why it cannot be
    opened: a FIFO or a device, a link that leads nowhere, in a circle, or where one may not look."""

    name: str
    is_directory: bool
    size: int
    modified_ms: int
    is_link: bool = False
    fault: str = ""

    @property
    def may_be_directory(self) -> bool:
        """Whether this is a directory, or nobody knows what it is."""
        return self.is_directory or self.fault not in ("", NOT_REGULAR)


class MappedBytes(Protocol):
    """The beginning of a file as memory. It stays as long as a view of it is looked at; bytes that the file
    no longer has read as zero."""

    def read(self, position: int, length: int) -> memoryview:
        """A view of these bytes, of fewer at the end. Raises OSError when the file cannot be read this way
        any more."""
        ...

    def changed(self) -> bool:
        """True when the file may hold other bytes now than when it was mapped. What was read is to be
        believed only if this is still False afterwards."""
        ...


class ReadableFile(Protocol):
    """An open file."""

    def size(self) -> int:
        """Bytes in the file now."""
        ...

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill ``buffer`` from ``position`` on; returns how many bytes there were before the end of the
        file."""
        ...

    def read_ahead(self, position: int, length: int) -> None:
        """These bytes are wanted next: they may be fetched meanwhile. With length 0 nothing more is wanted,
        and memory that was kept for it is given back."""
        ...

    def map(self, size: int) -> MappedBytes | None:
        """The first ``size`` bytes as memory, or None where the file cannot be mapped."""
        ...

    def close(self) -> None:
        """Give the file back; what was mapped of it stays."""
        ...


class FileSystem(Protocol):
    """Where files are.

    ``window_bytes`` is how much of a large file should be read at a time, ``maps_files`` whether files can
    be mapped into memory.
    """

    window_bytes: int
    maps_files: bool

    def load(self, path: str, names: Iterable[str]) -> None:
        """Everything below ``path`` will be listed, and its small files of these names read: a file system
        whose requests take long does it at once. Raises OSError."""
        ...

    def list(self, path: str) -> list[DirectoryEntry]:
        """Names in a directory, sorted."""
        ...

    def is_directory(self, path: str) -> bool:
        """True when ``path`` is a directory."""
        ...

    def exists(self, path: str) -> bool:
        """True when there is something at ``path``."""
        ...

    def open(self, path: str) -> ReadableFile:
        """Open a regular file to read; raises OSError."""
        ...

    def read(self, path: str, limit: int) -> bytes:
        """A whole small file; raises OSError, with EFBIG when it has more than ``limit`` bytes."""
        ...

    def is_locked(self, path: str) -> bool:
        """True when a process holds a lock on ``path``, as a running broker does on ``.lock``."""
        ...

    def join(self, path: str, *names: str) -> str:
        """Path of a name below a directory."""
        ...

    def split(self, path: str) -> tuple[str, str]:
        """The directory that a path is in, and its name there."""
        ...


class LocalFile:
    """A file opened by LocalFileSystem."""

    def __init__(self, path: str, flags: int = os.O_RDONLY) -> None:
        self._descriptor = -1
        self._path = path
        if not flags & os.O_EXCL:
            check_regular(path, follow=not flags & os.O_NOFOLLOW)
        try:
            self._descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
        except OSError as error:
            if error.errno == errno.ELOOP and flags & os.O_NOFOLLOW:
                raise OSError(errno.ELOOP, LINK, path) from None
            raise
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            self.close()
            raise OSError(errno.EINVAL, NOT_REGULAR, path)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def read_into(self, buffer: memoryview, position: int) -> int:
        done = count = os.preadv(self._descriptor, [buffer], position)
        while count > 0 and done < len(buffer):
            count = os.preadv(self._descriptor, [buffer[done:]], position + done)
            done += count
        return done

    def content(self, size: int) -> bytes:
        """The first ``size`` bytes, fewer where the file ends; without a copy unless the system gives them in
        pieces."""
        content = os.pread(self._descriptor, size, 0)
        while 0 < len(content) < size:
            more = os.pread(self._descriptor, size - len(content), len(content))
            if not more:
                break
            content += more
        return content

    def read_ahead(self, position: int, length: int) -> None:
        """The kernel does that."""

    def map(self, size: int) -> Mapping | None:
        if size == 0:
            return None
        return Mapping(self._descriptor, size)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


class LocalFileSystem:
    """The machine's own files."""

    window_bytes = 1 << 20  # see docs/performance.md
    maps_files = True

    def load(self, path: str, names: Iterable[str]) -> None:
        """Nothing is gained here."""

    def list(self, path: str) -> list[DirectoryEntry]:
        found = []
        with os.scandir(path) as names:
            for entry in names:
                is_link = entry.is_symlink()
                try:
                    status = entry.stat()
                except OSError as error:
                    # deleted by its broker between the listing and now; but a link to nothing is still a name
                    if is_link or not isinstance(error, FileNotFoundError):
                        fault = error.strerror or str(error)
                        found.append(DirectoryEntry(entry.name, False, 0, 0, is_link, fault))
                    continue
                is_directory = stat.S_ISDIR(status.st_mode)
                size = 0 if is_directory else status.st_size
                modified_ms = status.st_mtime_ns // 1_000_000
                fault = "" if is_directory or stat.S_ISREG(status.st_mode) else NOT_REGULAR
                found.append(DirectoryEntry(entry.name, is_directory, size, modified_ms, is_link, fault))
        return sorted(found)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def open(self, path: str) -> LocalFile:
        return LocalFile(path)

    def read(self, path: str, limit: int) -> bytes:
        file = LocalFile(path)
        try:
            size = file.size()
            if size > limit:
                raise OSError(errno.EFBIG, f"{size} bytes, more than the {limit} such a file may have", path)
            return file.content(size)
        finally:
            file.close()

    def is_locked(self, path: str) -> bool:
        return is_file_locked(path)

    def join(self, path: str, *names: str) -> str:
        return os.path.join(path, *names)

    def split(self, path: str) -> tuple[str, str]:
        parent, _, name = (path.rstrip("/") or path).rpartition("/")
        return parent or ("/" if path.startswith("/") else "."), name

"""File systems for reading log directories. Writing: ``data_files.py``.

``FileSystem`` is the protocol, ``LocalFileSystem`` the local implementation; ``remote.py`` has the others.
Only regular files are opened: a FIFO or a device in place of a segment would block or never end. Links are
followed for reading, never for writing. A failed read raises the system's OSError; callers handle it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from txnkafka._core.mapping import Mapping
from txnkafka.env.file_lock import LINK, NOT_REGULAR, check_regular, is_file_locked


class DirectoryEntry(NamedTuple):
    """An entry of a directory. ``size`` is 0 for directories; an entry removed during the listing is left
    out. For a link, ``is_directory`` and ``size`` describe its target. ``fault`` is the reason why the entry
    cannot be opened: a FIFO or a device, or a link that is dangling, circular, or without permission."""

    name: str
    is_directory: bool
    size: int
    modified_ms: int
    is_link: bool = False
    fault: str = ""

    @property
    def may_be_directory(self) -> bool:
        """True for a directory, and for an entry of unknown type."""
        return self.is_directory or self.fault not in ("", NOT_REGULAR)


class MappedBytes(Protocol):
    """A memory mapping of the beginning of a file. It lives as long as any view of it; bytes cut off the file
    read as zero."""

    def read(self, position: int, length: int) -> memoryview:
        """Return a view of these bytes, fewer at the end. Raises OSError if the file can no longer be read
        through the mapping."""
        ...

    def changed(self) -> bool:
        """Return True if the file may have changed since it was mapped. Bytes read are valid only if this is
        still False afterwards."""
        ...


class ReadableFile(Protocol):
    """An open file."""

    def size(self) -> int:
        """Return the current size of the file."""
        ...

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill ``buffer`` from ``position`` on; return the number of bytes read, fewer at the end of the
        file."""
        ...

    def read_ahead(self, position: int, length: int) -> None:
        """Announce that these bytes are read next, to prefetch them. Length 0: no more reads follow, release
        the memory."""
        ...

    def map(self, size: int) -> MappedBytes | None:
        """Map the first ``size`` bytes; return None if the file cannot be mapped."""
        ...

    def close(self) -> None:
        """Close the file; its mappings stay valid."""
        ...


class FileSystem(Protocol):
    """A file system for reading.

    ``window_bytes`` is the preferred size for reading a large file in pieces, ``maps_files`` whether files
    can be mapped into memory."""

    window_bytes: int
    maps_files: bool

    def load(self, path: str, names: Iterable[str]) -> None:
        """Announce that the whole tree below ``path`` will be listed, and its small files of these names
        read: a file system with slow requests loads them together. Raises OSError."""
        ...

    def list(self, path: str) -> list[DirectoryEntry]:
        """Return the entries of a directory, sorted by name."""
        ...

    def is_directory(self, path: str) -> bool:
        """Return True if ``path`` is a directory."""
        ...

    def exists(self, path: str) -> bool:
        """Return True if ``path`` exists."""
        ...

    def open(self, path: str) -> ReadableFile:
        """Open a regular file for reading. Raises OSError."""
        ...

    def read(self, path: str, limit: int) -> bytes:
        """Read a whole small file. Raises OSError, with EFBIG when it has more than ``limit`` bytes."""
        ...

    def is_locked(self, path: str) -> bool:
        """Return True if a process has locked ``path``; a running broker has locked ``.lock``."""
        ...

    def join(self, path: str, *names: str) -> str:
        """Join a directory and names to a path."""
        ...

    def split(self, path: str) -> tuple[str, str]:
        """Split a path into its directory and its name there."""
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
        """Read the first ``size`` bytes, fewer at the end of the file; copied only if the system returns
        pieces."""
        content = os.pread(self._descriptor, size, 0)
        while 0 < len(content) < size:
            more = os.pread(self._descriptor, size - len(content), len(content))
            if not more:
                break
            content += more
        return content

    def read_ahead(self, position: int, length: int) -> None:
        """Do nothing: the kernel reads ahead."""

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
    """The local file system, for reading."""

    window_bytes = 1 << 20  # see docs/performance.md
    maps_files = True

    def load(self, path: str, names: Iterable[str]) -> None:
        """Do nothing: local requests are fast."""

    def list(self, path: str) -> list[DirectoryEntry]:
        found = []
        with os.scandir(path) as names:
            for entry in names:
                is_link = entry.is_symlink()
                try:
                    status = entry.stat()
                except OSError as error:
                    # deleted by its broker since the listing; a dangling link is still an entry
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
                raise OSError(errno.EFBIG, f"{size} bytes, more than the limit of {limit}", path)
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

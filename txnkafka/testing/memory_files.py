"""Files in memory with a journal of all changes, which shows the unsynced ones.

``base`` is the durable content at the beginning, ``journal`` lists the changes since. ``crash_states.py``
derives the possible disks after a power cut from both.
"""

from __future__ import annotations

import errno
import io
import posixpath
from collections.abc import Iterable, Sequence
from functools import lru_cache

from txnkafka.env import Bytes, Clock, DirectoryEntry, Volume
from txnkafka.testing.disk import EMPTY_DISK, NOWHERE, ROOT, Change, Disk

_PATHS = 4096  # number of cached paths, with the results that depend only on their text


@lru_cache(maxsize=_PATHS)
def _names_of(path: str) -> list[str]:
    return [name for name in posixpath.normpath(path).split("/") if name not in ("", ".")]


@lru_cache(maxsize=_PATHS)
def _parent_of(path: str) -> tuple[str, str]:
    return posixpath.split(posixpath.normpath(path))


_joined = lru_cache(maxsize=_PATHS)(posixpath.join)


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


class MemoryFiles:
    """A file system in memory that begins with the content of ``base``; ``clock``, if given, sets the
    modification times. Another process, or the same process after a crash, is another MemoryFiles."""

    window_bytes = 1 << 20
    maps_files = False

    def __init__(self, clock: Clock | None = None, base: Disk = EMPTY_DISK) -> None:
        self.base = base
        self.journal: list[Change] = []
        self._clock = clock
        self._contents: dict[int, bytes | bytearray] = dict(base.contents)
        self._names = {inode: dict(names) for inode, names in base.names.items()}
        self._modified_ms = dict(base.modified_ms)
        self._next_inode = base.next_inode
        self._locked: set[int] = set()

    def disk(self) -> Disk:
        """Return the current content."""
        contents = {inode: bytes(content) for inode, content in self._contents.items()}
        names = {inode: dict(names) for inode, names in self._names.items()}
        return Disk(contents, names, dict(self._modified_ms), self._next_inode)

    # Methods for readers

    def load(self, path: str, names: Iterable[str]) -> None:
        """Do nothing: all files are in memory."""

    def list(self, path: str) -> list[DirectoryEntry]:
        names = self._names.get(self._find(path))
        if names is None:
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", path)
        return [self._entry(name, names[name]) for name in sorted(names)]

    def is_directory(self, path: str) -> bool:
        return self._inode(path) in self._names

    def exists(self, path: str) -> bool:
        return self._inode(path) is not None

    def open(self, path: str) -> MemoryFile:
        inode = self._find(path)
        if inode not in self._contents:
            raise OSError(errno.EINVAL, "not a regular file", path)
        return MemoryFile(self, inode, path, writable=False)

    def read(self, path: str, limit: int) -> bytes:
        content = self._contents[self.open(path).inode]
        if len(content) > limit:
            raise OSError(errno.EFBIG, f"{len(content)} bytes, more than the limit of {limit}", path)
        return bytes(content)

    def is_locked(self, path: str) -> bool:
        return self._inode(path) in self._locked

    def join(self, path: str, *names: str) -> str:
        return _joined(path, *names)

    def split(self, path: str) -> tuple[str, str]:
        parent, _, name = (path.rstrip("/") or path).rpartition("/")
        return parent or ("/" if path.startswith("/") else "."), name

    # Methods for writers

    def create(self, path: str) -> MemoryFile:
        return MemoryFile(self, self._add("create", path), path)

    def open_to_write(self, path: str) -> MemoryFile:
        return MemoryFile(self, self.open(path).inode, path)

    def rename(self, source: str, target: str) -> None:
        inode = self._find(source)
        old, new = self._place(source), self._place(target)
        replaced = self._names[new[0]].get(new[1])
        if replaced == inode:
            return
        if self._is_above(inode, new[0]):
            raise OSError(errno.EINVAL, f"{source} cannot be moved into itself", target)
        if replaced is not None:
            self._check_replacement(inode, replaced, target)
        del self._names[old[0]][old[1]]
        self._names[new[0]][new[1]] = inode
        self._note("rename", target, inode, directory=new[0], name=new[1], source=old)

    def remove(self, path: str) -> None:
        inode = self._find(path)
        directory, name = self._place(path)
        if self._names.get(inode):
            raise OSError(errno.ENOTEMPTY, "the directory is not empty", path)
        del self._names[directory][name]
        self._note("remove", path, inode, directory=directory, name=name)

    def make_directory(self, path: str) -> None:
        self._add("make_directory", path)

    def sync_directory(self, path: str) -> None:
        inode = self._find(path)
        if inode not in self._names:
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", path)
        self._note("sync_directory", path, inode)

    def sync_file_system(self, path: str) -> bool:
        """Return False: each file and directory is synced separately, so that a crash may happen in
        between."""
        return False

    def lock(self, path: str) -> MemoryLock | None:
        inode = self._inode(path)
        if inode in self._locked:
            return None
        if inode is None:
            inode = self._add("create", path)
        self._locked.add(inode)
        return MemoryLock(self._locked, inode)

    def is_locked_here(self, path: str) -> bool:
        return self.is_locked(path)

    def locking_process(self, path: str) -> int | None:
        return None

    def set_modified_ms(self, path: str, ms: int) -> None:
        inode = self._find(path)
        self._modified_ms[inode] = ms
        self._note("set_modified_ms", path, inode)

    def volume(self, path: str) -> Volume:
        return Volume(path)

    # Methods for open files

    def content(self, inode: int) -> bytes | bytearray:
        """Return the current content of a file."""
        return self._contents[inode]

    def write(self, file: MemoryFile, position: int, written: bytes) -> None:
        """Write into a file."""
        content = self._changed(file)
        size = len(content)
        if position == size:
            content += written
        else:
            if position > size:
                content.extend(bytes(position - size))
            content[position : position + len(written)] = written
        inode = file.inode
        self.journal.append(Change("write", file.path, inode, self._modified_ms[inode], position, written))

    def truncate(self, file: MemoryFile, size: int) -> None:
        """Truncate a file, or extend it with zeros."""
        content = self._changed(file)
        if size < len(content):
            del content[size:]
        else:
            content.extend(bytes(size - len(content)))
        self._note("truncate", file.path, file.inode, size)

    def sync(self, file: MemoryFile, failed: bool = False) -> None:
        """Make content and size durable; if the sync ``failed``, unsynced writes may be lost even if a later
        sync succeeds."""
        inode, kind = file.inode, "failed_sync" if failed else "sync"
        self.journal.append(Change(kind, file.path, inode, self._modified_ms[inode]))

    def _changed(self, file: MemoryFile) -> bytearray:
        inode = file.inode
        content = self._contents[inode]
        if isinstance(content, bytes):  # other disks may share it
            content = self._contents[inode] = bytearray(content)
        self._modified_ms[inode] = 0 if self._clock is None else self._clock.now_ms()
        return content

    # Names

    def _inode(self, path: str) -> int | None:
        names, inode = self._names, ROOT
        try:
            for name in _names_of(path):
                inode = names[inode][name]
        except KeyError:
            return None
        return inode

    def _find(self, path: str) -> int:
        inode = self._inode(path)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, "no such file or directory", path)
        return inode

    def _place(self, path: str) -> tuple[int, str]:
        """Return the directory of a path, and the name in it."""
        parent, name = _parent_of(path)
        directory = self._find(parent)
        if directory not in self._names or not name:
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", parent)
        return directory, name

    def _add(self, kind: str, path: str) -> int:
        if self.exists(path):
            raise FileExistsError(errno.EEXIST, "exists already", path)
        directory, name = self._place(path)
        inode = self._next_inode
        self._next_inode += 1
        if kind == "create":
            self._contents[inode] = b""
        else:
            self._names[inode] = {}
        self._names[directory][name] = inode
        self._modified_ms[inode] = 0 if self._clock is None else self._clock.now_ms()
        self._note(kind, path, inode, directory=directory, name=name)
        return inode

    def _is_above(self, inode: int, directory: int) -> bool:
        below = self._names.get(inode, {}).values()
        return inode == directory or any(self._is_above(child, directory) for child in below)

    def _check_replacement(self, inode: int, replaced: int, target: str) -> None:
        if inode in self._names and replaced not in self._names:
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", target)
        if inode not in self._names and replaced in self._names:
            raise IsADirectoryError(errno.EISDIR, "is a directory", target)
        if self._names.get(replaced):
            raise OSError(errno.ENOTEMPTY, "the directory is not empty", target)

    def _entry(self, name: str, inode: int) -> DirectoryEntry:
        size = len(self._contents.get(inode, b""))
        return DirectoryEntry(name, inode in self._names, size, self._modified_ms[inode])

    def _note(
        self,
        kind: str,
        path: str,
        inode: int,
        position: int = 0,
        content: bytes = b"",
        *,
        directory: int = -1,
        name: str = "",
        source: tuple[int, str] = NOWHERE,
    ) -> None:
        modified_ms = self._modified_ms[inode]
        self.journal.append(
            Change(kind, path, inode, modified_ms, position, content, directory, name, source)
        )

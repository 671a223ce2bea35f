"""Changes in memory over read-only files: for dry runs, which write nothing to the disk."""

from __future__ import annotations

import errno
import io
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from txnkafka.env.data_files import Volume
from txnkafka.env.filesystem import DirectoryEntry, FileSystem, ReadableFile

if TYPE_CHECKING:
    from txnkafka.env.data_files import Bytes, DataFile, Lock

_T = TypeVar("_T")


class _Content:
    """The content of a file: the first ``kept`` bytes of the base's file, then ``tail``."""

    def __init__(self, path: str = "", kept: int = 0) -> None:
        self.path = path
        self.kept = kept
        self.tail = bytearray()
        self.modified_ms: int | None = None  # None: the time of the base's file

    @property
    def size(self) -> int:
        return self.kept + len(self.tail)


class _Changes(dict[str, _T]):
    """State of each changed path; ``below`` has the same states by directory and name."""

    def __init__(self, split: Callable[[str], tuple[str, str]]) -> None:
        super().__init__()
        self._split = split
        self.below: dict[str, dict[str, _T]] = {}

    def __setitem__(self, path: str, state: _T) -> None:
        super().__setitem__(path, state)
        parent, name = self._split(path)
        self.below.setdefault(parent, {})[name] = state


class OverlayFiles:
    """``base`` with changes in memory, which are lost with this object."""

    maps_files = False

    def __init__(self, base: FileSystem) -> None:
        self.window_bytes = base.window_bytes
        self._base = base
        self._files: _Changes[_Content | None] = _Changes(base.split)  # None: removed
        self._directories: _Changes[bool] = _Changes(base.split)  # True: created, False: removed
        self._locked: set[str] = set()

    # FileSystem: methods for reading

    def load(self, path: str, names: Iterable[str]) -> None:
        self._base.load(path, names)

    def list(self, path: str) -> list[DirectoryEntry]:
        self._check_directory(path)
        found = {} if self._directories.get(path) else {entry.name: entry for entry in self._base.list(path)}
        for name, there in self._directories.below.get(path, {}).items():
            found.pop(name, None)
            if there:
                found[name] = DirectoryEntry(name, True, 0, 0)
        for name, content in self._files.below.get(path, {}).items():
            before = found.pop(name, None)
            if content is not None:
                modified_ms = content.modified_ms
                if modified_ms is None:
                    modified_ms = 0 if before is None else before.modified_ms
                found[name] = DirectoryEntry(name, False, content.size, modified_ms)
        return sorted(found.values())

    def is_directory(self, path: str) -> bool:
        return self._directories.get(path, self._files.get(path) is None and self._base.is_directory(path))

    def exists(self, path: str) -> bool:
        if path in self._files:
            return self._files[path] is not None
        return self._directories.get(path, self._base.exists(path))

    def open(self, path: str) -> ReadableFile:
        if path in self._files:
            return self.open_to_write(path)
        return self._base.open(path)

    def read(self, path: str, limit: int) -> bytes:
        file = self.open(path)
        try:
            if file.size() > limit:
                raise OSError(errno.EFBIG, f"more than the limit of {limit} bytes", path)
            buffer = bytearray(file.size())
            del buffer[file.read_into(memoryview(buffer), 0) :]
            return bytes(buffer)
        finally:
            file.close()

    def is_locked(self, path: str) -> bool:
        return path in self._locked or self._base.is_locked(path)

    def join(self, path: str, *names: str) -> str:
        return self._base.join(path, *names)

    def split(self, path: str) -> tuple[str, str]:
        return self._base.split(path)

    # DataFiles: methods for writing

    def create(self, path: str) -> DataFile:
        self._check_directory(self.split(path)[0])
        if self.exists(path):
            raise FileExistsError(errno.EEXIST, "the file exists", path)
        self._files[path] = _Content()
        return self.open_to_write(path)

    def open_to_write(self, path: str) -> DataFile:
        return _OverlayFile(self._base, self._content(path))

    def rename(self, source: str, target: str) -> None:
        if self.is_directory(source):
            self._rename_directory(source, target)
            return
        self._files[target] = self._content(source)
        self._files[source] = None

    def _rename_directory(self, source: str, target: str) -> None:
        self.make_directory(target)
        for entry in self.list(source):
            self.rename(self.join(source, entry.name), self.join(target, entry.name))
        self._directories[source] = False

    def remove(self, path: str) -> None:
        if self.is_directory(path):
            if not self._is_link(path) and self.list(path):
                raise OSError(errno.ENOTEMPTY, "the directory is not empty", path)
            self._directories[path] = False
        elif self.exists(path):
            self._files[path] = None
        else:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)

    def _is_link(self, path: str) -> bool:
        """Return True if the path is a link in the base: it is removed without its target."""
        if path in self._directories:
            return False
        folder, name = self.split(path)
        return any(entry.is_link for entry in self._base.list(folder) if entry.name == name)

    def make_directory(self, path: str) -> None:
        if self.exists(path):
            raise FileExistsError(errno.EEXIST, "the name exists", path)
        self._directories[path] = True

    def sync_directory(self, path: str) -> None:
        self._check_directory(path)

    def sync_file_system(self, path: str) -> bool:
        self._check_directory(path)
        return True

    def lock(self, path: str) -> Lock | None:
        if self.is_locked(path):
            return None
        self._locked.add(path)
        return _OverlayLock(self._locked, path)

    def is_locked_here(self, path: str) -> bool:
        return path in self._locked

    def locking_process(self, path: str) -> int | None:
        return None

    def set_modified_ms(self, path: str, ms: int) -> None:
        self._content(path).modified_ms = ms

    def volume(self, path: str) -> Volume:
        return Volume(path)

    def _content(self, path: str) -> _Content:
        content = self._files.get(path)
        if content is None:
            if path in self._files or not self._base.exists(path):
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            file = self._base.open(path)
            try:
                content = self._files[path] = _Content(path, file.size())
            finally:
                file.close()
        return content

    def _check_directory(self, path: str) -> None:
        if not self.is_directory(path):
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)


class _OverlayFile:
    def __init__(self, base: FileSystem, content: _Content) -> None:
        self._content = content
        self._file = base.open(content.path) if content.path else None

    def size(self) -> int:
        return self._content.size

    def read_into(self, buffer: memoryview, position: int) -> int:
        content, done = self._content, 0
        if self._file is not None and position < content.kept:
            done = self._file.read_into(buffer[: content.kept - position], position)
        part = content.tail[max(0, position + done - content.kept) :][: len(buffer) - done]
        buffer[done : done + len(part)] = part
        return done + len(part)

    def read_ahead(self, position: int, length: int) -> None:
        if self._file is not None:
            self._file.read_ahead(position, length)

    def map(self, size: int) -> None:
        return None

    def fileno(self) -> int:
        raise io.UnsupportedOperation("a file changed in memory has no descriptor")

    def write(self, position: int, parts: Sequence[Bytes]) -> None:
        content = self._content
        if position < content.kept and self._file is not None:  # later bytes are in the tail
            before = bytearray(content.kept - position)
            self._file.read_into(memoryview(before), position)
            content.kept, content.tail = position, before + content.tail
        written = b"".join(parts)
        begin = position - content.kept
        content.tail += bytes(max(0, begin - len(content.tail)))
        content.tail[begin : begin + len(written)] = written

    def truncate(self, size: int) -> None:
        content = self._content
        content.kept = min(content.kept, size)
        del content.tail[size - content.kept :]
        content.tail += bytes(size - content.size)

    def sync(self) -> None:
        """Do nothing: changes never reach the disk."""

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class _OverlayLock:
    def __init__(self, locked: set[str], path: str) -> None:
        self._locked = locked
        self._path = path

    def close(self) -> None:
        self._locked.discard(self._path)

"""A file system that is a dictionary: damage needs no disk, and a test leaves nothing behind."""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Iterable, Mapping

from txnkafka.env import DirectoryEntry, ReadableFile

__all__ = ["MappedMemory", "MemoryFile", "MemoryFileSystem"]


class MappedMemory:
    """Bytes with the interface of a mapping; they never change."""

    def __init__(self, content: memoryview) -> None:
        self._content = content

    def read(self, position: int, length: int) -> memoryview:
        return self._content[position : position + length]

    def changed(self) -> bool:
        return False


class MemoryFile:
    """An open file."""

    def __init__(self, content: bytes) -> None:
        self._content = memoryview(content)

    def size(self) -> int:
        return len(self._content)

    def read_into(self, buffer: memoryview, position: int) -> int:
        part = self._content[position : position + len(buffer)]
        buffer[: len(part)] = part
        return len(part)

    def read_ahead(self, position: int, length: int) -> None:
        """Do nothing: all data is in memory."""

    def map(self, size: int) -> MappedMemory:
        return MappedMemory(self._content[:size])

    def close(self) -> None:
        """Do nothing: there are no resources."""


class MemoryFileSystem:
    """``files`` by their absolute paths; directories follow from the paths."""

    window_bytes = 256 << 10
    maps_files = True

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files

    def load(self, path: str, names: Iterable[str]) -> None:
        """Do nothing: all data is in memory."""

    def list(self, path: str) -> list[DirectoryEntry]:
        found: dict[str, DirectoryEntry] = {}
        for each, content in self.files.items():
            if each.startswith(path + "/"):
                name, _, below = each.removeprefix(path + "/").partition("/")
                found[name] = DirectoryEntry(name, bool(below), 0 if below else len(content), 0)
        return [found[name] for name in sorted(found)]

    def is_directory(self, path: str) -> bool:
        return any(each.startswith(path + "/") for each in self.files)

    def exists(self, path: str) -> bool:
        return path in self.files or self.is_directory(path)

    def open(self, path: str) -> ReadableFile:
        return MemoryFile(self.read(path, 1 << 62))

    def read(self, path: str, limit: int) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if len(self.files[path]) > limit:
            raise OSError(errno.EFBIG, "too large", path)
        return self.files[path]

    def is_locked(self, path: str) -> bool:
        return False

    def join(self, path: str, *names: str) -> str:
        return posixpath.join(path, *names)

    def split(self, path: str) -> tuple[str, str]:
        return posixpath.split(path.rstrip("/"))

"""Files that are written anywhere, and take effect when another process has read them.

A file has a unique name that no reader looks for, and is durable before its name is returned. A file whose
writer was killed stays; ``orphans`` finds such files by age.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.env import make_directories, unique_name

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from txnkafka.env import Bytes, DataFile, DataFiles

_SUFFIX: Final = ".staged"
_FOLDER: Final = ".staging"
_NAME: Final = re.compile(r"[0-9a-f]{32}\.staged")


class StagedFile:
    """A new file in ``folder``, which is created with the first bytes. Its block removes it after an
    exception."""

    def __init__(self, files: DataFiles, folder: str) -> None:
        self._files = files
        self._folder = folder
        self._file: DataFile | None = None
        self.path = files.join(folder, unique_name() + _SUFFIX)
        self.size = 0

    def append(self, content: Bytes) -> int:
        """Write bytes, and return their position. Raises OSError."""
        if self._file is None:
            make_directories(self._files, self._folder)
            self._file = self._files.create(self.path)
        position = self.size
        self._file.write(position, [content])
        self.size += len(content)
        return position

    def finish(self) -> str | None:
        """Make content and name durable; return the path, None without content. Raises OSError."""
        if self._file is None:
            return None
        file, self._file = self._file, None
        try:
            file.sync()
        finally:
            file.close()
        self._files.sync_directory(self._folder)
        return self.path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
        if kind is not None:
            remove_staged(self._files, self.path)


class Orphan(NamedTuple):
    """A staged file: its size in bytes, and the time of its last change."""

    path: str
    size: int
    modified_ms: int


def orphans(files: DataFiles, folder: str, changed_before_ms: int) -> Iterator[Orphan]:
    """Yield the staged files in ``folder`` that were not changed since, by path; other files are left out.
    Raises FileNotFoundError without the folder."""
    for entry in sorted(files.list(folder)):
        is_staged = _NAME.fullmatch(entry.name) is not None and not entry.is_directory
        if is_staged and entry.modified_ms < changed_before_ms:
            yield Orphan(files.join(folder, entry.name), entry.size, entry.modified_ms)


def folder_beside(path: str) -> str:
    """Return the default folder of staged files for a target at ``path``: never within the target, whose
    readers may refuse foreign files."""
    return path + _FOLDER


def staging_beside(files: DataFiles, path: str) -> str:
    """Return the folder of staged files: beside ``path`` if it exists, else ``path`` itself."""
    beside = folder_beside(path)
    return beside if files.is_directory(beside) else path


def remove_staged(files: DataFiles, path: str) -> None:
    """Remove a staged file, if that is possible: a file that stays is an orphan."""
    with suppress(OSError):
        files.remove(path)

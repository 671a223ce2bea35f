"""The part of a flush that waits for the disk; the host runs it outside of any lock.

Source: ``UnifiedLog.flush``, ``LocalLog.flush``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.env import replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from txnkafka.env import DataFile, DataFiles

__all__ = ["LogFlush", "sync_file"]


class LogFlush(NamedTuple):
    """The writes and syncs that make all data below ``end_offset`` durable, in this order: ``contents`` of
    small files by path, open ``files``, ``paths`` of other files, then the names in ``directories``."""

    end_offset: int
    contents: Mapping[str, bytes]
    files: Sequence[DataFile]
    paths: Sequence[str]
    directories: Sequence[str]

    def run(self, files: DataFiles) -> None:
        """Write and sync them. Raises OSError."""
        for path, content in self.contents.items():
            replace_file(files, path, content)
        for file in self.files:
            file.sync()
        for path in self.paths:
            with suppress(FileNotFoundError):  # it was removed meanwhile, and is not needed any more
                sync_file(files, path)
        for directory in self.directories:
            files.sync_directory(directory)


def sync_file(files: DataFiles, path: str) -> None:
    """Sync a file that is not open. Raises OSError."""
    file = files.open_to_write(path)
    try:
        file.sync()
    finally:
        file.close()

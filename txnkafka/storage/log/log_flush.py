"""What one log needs synced: a value that a flush carries out without looking at the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.env import DataFile, DataFiles

__all__ = ["LogFlush"]


class LogFlush(NamedTuple):
    """What one log needs on the disk for everything below ``end_offset``: contents first, then names."""

    end_offset: int
    files: Sequence[DataFile]
    directories: Sequence[str]

    def run(self, files: DataFiles) -> None:
        """Sync them. Raises OSError."""
        for file in self.files:
            file.sync()
        for directory in self.directories:
            files.sync_directory(directory)

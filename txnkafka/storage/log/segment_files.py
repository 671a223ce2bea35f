"""The files of one segment of a log that is owned: opened when they are needed, named, renamed, removed.

Source: ``LogSegment``, ``LogFileUtils``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from txnkafka.storage.formats.layout import file_name

if TYPE_CHECKING:
    from txnkafka.env import DataFile, DataFiles
    from txnkafka.storage.formats.layout import FileKind

__all__ = ["DELETED", "KINDS", "SegmentFiles"]

LOG = logging.getLogger("txnkafka.storage")
DELETED = ".deleted"
# Of a log that does not count yet. Recovery, here and in Apache Kafka, removes what has this suffix.
UNNAMED = ".cleaned"
KINDS: tuple[FileKind, ...] = ("log", "index", "timeindex", "txnindex")


class SegmentFiles:
    """What belongs to the segment that begins at ``base_offset``, below ``directory``."""

    def __init__(self, files: DataFiles, directory: str, base_offset: int) -> None:
        self.files = files
        self.directory = directory
        self.base_offset = base_offset
        self.is_named = True  # else the log has a suffix, until the segment before it is durable
        self._open: dict[FileKind, DataFile] = {}

    def path(self, kind: FileKind) -> str:
        """Where a file of the segment is, or would be."""
        path = self._named_path(kind)
        return path if self.is_named or kind != "log" else path + UNNAMED

    def _named_path(self, kind: FileKind) -> str:
        return self.files.join(self.directory, file_name(self.base_offset, kind))

    def give_name(self) -> None:
        """Let the segment count: rename its log to what recovery looks for. Raises OSError."""
        self.files.rename(self.path("log"), self._named_path("log"))
        self.is_named = True

    def file(self, kind: FileKind) -> DataFile:
        """The file, open. Raises OSError, FileNotFoundError when it is not there."""
        file = self._open.get(kind)
        if file is None:
            file = self._open[kind] = self.files.open_to_write(self.path(kind))
        return file

    def file_to_save(self, kind: FileKind) -> DataFile:
        """The file, open; created when it is not there. Raises OSError."""
        if kind in self._open or self.files.exists(self.path(kind)):
            return self.file(kind)
        return self.create(kind)

    def create(self, kind: FileKind) -> DataFile:
        """A new file, open. Raises OSError, FileExistsError when it is there."""
        file = self._open[kind] = self.files.create(self.path(kind))
        return file

    def has_open(self, file: DataFile) -> bool:
        """Whether this is one of the segment's files."""
        return any(file is each for each in self._open.values())

    def close(self) -> None:
        """Give the files back; they are opened again when they are needed."""
        for file in self._open.values():
            file.close()
        self._open.clear()

    def remove(self) -> None:
        """Remove the files, the log first. Raises OSError."""
        self.close()
        for kind in KINDS:
            if self.files.exists(self.path(kind)):
                self.files.remove(self.path(kind))

    def mark_deleted(self) -> list[str]:
        """Give the files the suffix ``.deleted``, the log first; returns where they are now."""
        renamed = []
        for kind in KINDS:
            path = self.path(kind)
            if self.files.exists(path):
                self.files.rename(path, self._named_path(kind) + DELETED)
                renamed.append(self._named_path(kind) + DELETED)
        return renamed

    def remove_leftovers(self) -> None:
        """Remove files of this name that nobody knows; a new segment takes their place."""
        for kind in KINDS:
            if self.files.exists(self.path(kind)):
                LOG.warning("%s lay there when its segment began: removed", self.path(kind))
                self.files.remove(self.path(kind))

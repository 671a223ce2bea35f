"""The files of one segment of a log that is owned: opened when they are needed, named, renamed, removed.

Source: ``LogSegment``, ``LogFileUtils``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from txnkafka.storage.formats.layout import file_name
from txnkafka.storage.log.log_slice import LogSlice, SlicedFile

if TYPE_CHECKING:
    from txnkafka.env import DataFile, DataFiles
    from txnkafka.storage.formats.layout import FileKind

__all__ = ["DELETED", "KINDS", "SegmentFiles"]

LOG = logging.getLogger("txnkafka.storage")
DELETED = ".deleted"
KINDS: tuple[FileKind, ...] = ("log", "index", "timeindex", "txnindex")


class SegmentFiles:
    """What belongs to the segment that begins at ``base_offset``, below ``directory``."""

    def __init__(self, files: DataFiles, directory: str, base_offset: int) -> None:
        self.files = files
        self.directory = directory
        self.base_offset = base_offset
        self._open: dict[FileKind, DataFile] = {}
        self._sliced: SlicedFile | None = None  # the open log, once a slice of it was handed out

    def path(self, kind: FileKind) -> str:
        """Where a file of the segment is, or would be."""
        return self.files.join(self.directory, file_name(self.base_offset, kind))

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

    def slice(self, position: int, size: int) -> LogSlice:
        """A part of the log, whose file stays open until the slice is released. Raises OSError."""
        sliced = self._sliced
        if sliced is None:
            sliced = self._sliced = SlicedFile(self.file("log"))
        sliced.hold()
        return LogSlice(sliced, self.base_offset, position, size)

    def cut_slices(self, position: int) -> None:
        """Let the slices that are not released end at ``position``, where the log is about to be truncated.
        They keep the open file, the segment opens the log again."""
        if self._sliced is not None and self._sliced.is_shared:
            sliced, self._sliced = self._sliced, None
            sliced.end = position
            del self._open["log"]
            sliced.release()

    def close(self) -> None:
        """Close the files, the log when its last slice is released; they are opened again when they are
        needed."""
        sliced, self._sliced = self._sliced, None
        for file in self._open.values():
            if sliced is None or file is not sliced.file:
                file.close()
        self._open.clear()
        if sliced is not None:
            sliced.release()

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
                self.files.rename(path, path + DELETED)
                renamed.append(path + DELETED)
        return renamed

    def remove_leftovers(self) -> None:
        """Remove files of this name that nobody knows; a new segment takes their place."""
        for kind in KINDS:
            if self.files.exists(self.path(kind)):
                LOG.warning("%s lay there when its segment began: removed", self.path(kind))
                self.files.remove(self.path(kind))

"""Opens, renames and removes the files of one segment of an open log.

Source: ``LogSegment``, ``LogFileUtils``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from txnkafka.storage.formats.layout import file_name
from txnkafka.storage.formats.limits import read_derived
from txnkafka.storage.log.log_slice import LogSlice, SlicedFile

if TYPE_CHECKING:
    from txnkafka.env import DataFile, DataFiles
    from txnkafka.storage.formats.layout import FileKind, FileSuffix
    from txnkafka.storage.log.open_files import OpenFiles

LOG = logging.getLogger("txnkafka.storage")
DELETED = ".deleted"
# The suffix of segments without a final name. Recovery, here and in Apache Kafka, removes such files.
UNNAMED: FileSuffix = ".cleaned"
KINDS: tuple[FileKind, ...] = ("log", "index", "timeindex", "txnindex")


class SegmentFiles:
    """The files of the segment that begins at ``base_offset``, below ``directory``, all with one suffix."""

    __slots__ = (
        "_base_offset", "_directory", "_open", "_open_files", "_sliced", "data_files", "suffix", "was_used",
    )  # fmt: skip

    def __init__(
        self, data_files: DataFiles, directory: str, base_offset: int, suffix: FileSuffix = ""
    ) -> None:
        self.data_files = data_files
        self.suffix = suffix
        self._directory = directory
        self._base_offset = base_offset
        self._open: dict[FileKind, DataFile] = {}
        self._sliced: SlicedFile | None = None  # the open log, once a slice was returned
        self._open_files: OpenFiles | None = None
        self.was_used = False  # True if the log was used since it was opened

    def path(self, kind: FileKind) -> str:
        """Return the path of a file of the segment; the file need not exist."""
        return self.data_files.join(self._directory, file_name(self._base_offset, kind) + self.suffix)

    def exists(self, kind: FileKind) -> bool:
        """Return True if the file exists."""
        return self.data_files.exists(self.path(kind))

    def read(self, kind: FileKind, limit: int) -> bytes:
        """Read a file without keeping it open. Raises CorruptFileError if it has more than ``limit`` bytes,
        and OSError."""
        return read_derived(self.data_files, self.path(kind), limit)

    def open(self, kind: FileKind) -> DataFile:
        """Return the open file. Raises OSError, FileNotFoundError if it does not exist."""
        file = self._open.get(kind)
        if file is None:
            return self._opened(kind, self.data_files.open_to_write(self.path(kind)))
        self.was_used = True
        return file

    def open_or_create(self, kind: FileKind) -> DataFile:
        """Return the open file, creating it if necessary. Raises OSError."""
        if kind in self._open or self.exists(kind):
            return self.open(kind)
        return self.create(kind)

    def create(self, kind: FileKind) -> DataFile:
        """Create a file and return it open. Raises OSError, FileExistsError if it exists."""
        return self._opened(kind, self.data_files.create(self.path(kind)))

    def _opened(self, kind: FileKind, file: DataFile) -> DataFile:
        self._open[kind] = file
        if kind == "log" and self._open_files is not None:
            self.was_used = False
            self._open_files.opened(self)
        return file

    def become(self, suffix: FileSuffix) -> None:
        """Rename the files to another suffix, the log last: the name of the log decides whether the segment
        counts. Raises OSError."""
        for kind in reversed(KINDS):
            path = self.path(kind)
            if self.data_files.exists(path):
                self.data_files.rename(path, path.removesuffix(self.suffix) + suffix)
        self.suffix = suffix

    def has_open(self, file: DataFile) -> bool:
        """Return True if ``file`` is one of the segment's open files."""
        return any(file is open_file for open_file in self._open.values())

    # Keeping the log open

    @property
    def is_open(self) -> bool:
        """True if the log is open."""
        return "log" in self._open

    def limit_by(self, open_files: OpenFiles) -> None:
        """Allow ``open_files`` to close the log when too many files are open."""
        self._open_files = open_files
        if "log" in self._open:
            open_files.opened(self)

    def pin(self) -> None:
        """Keep the log open: it has unsynced bytes."""
        if self._open_files is not None:
            self._open_files.pin(self)

    def rest(self) -> None:
        """Allow closing the log when too many files are open: its bytes are synced."""
        if self._open_files is not None and "log" in self._open:
            self._open_files.rest(self)

    def close_log(self) -> None:
        """Close the log, or let its last slice close it; it is reopened on demand."""
        file = self._open.pop("log", None)
        if file is None:
            return
        sliced, self._sliced = self._sliced, None
        if sliced is None:
            file.close()
        else:
            sliced.release()
        if self._open_files is not None:
            self._open_files.closed(self)

    def close(self) -> None:
        """Close the files, the log once its last slice is released; they are reopened on demand."""
        self.close_log()
        for file in self._open.values():
            file.close()
        self._open.clear()

    def slice(self, position: int, size: int) -> LogSlice:
        """Return a part of the log; the file stays open until the slice is released. Raises OSError."""
        sliced = self._sliced
        if sliced is None:
            sliced = self._sliced = SlicedFile(self.open("log"))
        sliced.hold()
        return LogSlice(sliced, self._base_offset, position, size)

    def cut_slices(self, position: int) -> None:
        """End all unreleased slices at ``position``, where the log is about to be truncated. They keep the
        open file, and the segment reopens the log."""
        if self._sliced is not None and self._sliced.is_shared:
            self._sliced.end = position
            self.close_log()

    def remove(self) -> None:
        """Remove the files, the log first. Raises OSError."""
        self.close()
        for kind in KINDS:
            if self.exists(kind):
                self.data_files.remove(self.path(kind))

    def mark_deleted(self) -> list[str]:
        """Rename the files to the suffix ``.deleted``, the log first; return the new paths."""
        renamed = []
        for kind in KINDS:
            path = self.path(kind)
            if self.data_files.exists(path):
                renamed.append(path.removesuffix(self.suffix) + DELETED)
                self.data_files.rename(path, renamed[-1])
        return renamed

    def remove_leftovers(self) -> None:
        """Remove unknown files with these names before a new segment is created."""
        for kind in KINDS:
            if self.exists(kind):
                LOG.warning("%s existed before its segment was created: removed", self.path(kind))
                self.data_files.remove(self.path(kind))

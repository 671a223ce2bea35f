"""The part of a flush that waits for the disk; the host runs it outside any lock.

Source: ``UnifiedLog.flush``, ``LocalLog.flush``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from txnkafka.env import replace_file
from txnkafka.storage.log.passing_errors import DISK_FULL, NO_DESCRIPTOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.env import DataFile, DataFiles


class LogFlush(NamedTuple):
    """The writes and syncs that make all data below ``end_offset`` durable, in this order: ``contents`` of
    small files by path, open ``files``, ``paths`` of other files, then the names in ``directories``. ``run``
    removes each content after writing it. Contents that do not fit on the disk are left to a later flush:
    recovery derives them from the batches (``FlushState.recovery_point_to_write``)."""

    end_offset: int
    contents: dict[str, bytes]
    files: Sequence[DataFile]
    paths: Sequence[str]
    directories: Sequence[str]

    def run(self, files: DataFiles) -> None:
        """Write and sync everything. Raises OSError."""
        for path in list(self.contents):
            try:
                replace_file(files, path, self.contents[path])
            except OSError as error:
                if error.errno not in DISK_FULL | NO_DESCRIPTOR:
                    raise
            else:
                del self.contents[path]
        for file in self.files:
            file.sync()
        for path in self.paths:
            with suppress(FileNotFoundError):  # removed since, and no longer needed
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


class Flushable(Protocol):
    """The part of ``PartitionLog`` that ``flush_now`` needs."""

    files: DataFiles

    @property
    def needs_flush(self) -> bool: ...

    def check_usable(self) -> None: ...

    def begin_flush(self) -> LogFlush: ...

    def finish_flush(self, flush: LogFlush, error: OSError | None) -> None: ...


def flush_now(log: Flushable) -> None:
    """Flush all appends to ``log``; see ``PartitionLog.flush``."""
    while True:
        log.check_usable()
        flush = log.begin_flush()
        error: OSError | None = OSError("the flush was interrupted")  # by a signal
        try:
            flush.run(log.files)
            error = None
        except OSError as failed:
            error = failed
        finally:
            log.finish_flush(flush, error)
        log.check_usable()
        if not log.needs_flush:  # else this flush has renamed a rolled segment
            return

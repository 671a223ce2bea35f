"""Deletes the files of segments that retention removed from a log: the part that waits for the disk.

Source: ``LocalLog.deleteSegmentFiles``, ``UnifiedLog.deleteOldSegments``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from txnkafka.storage.log.log_flush import sync_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from txnkafka.env import DataFiles
    from txnkafka.storage.log.log_segment import LogSegment


class SegmentDeletion:
    """Work that renames the files of ``segments`` to the suffix ``.deleted``, after a sync of ``snapshots``,
    the state of producers at the new beginning, and then removes the ``useless`` snapshots of the segments.
    ``on_finished`` gets the new paths, and the error."""

    def __init__(
        self,
        files: DataFiles,
        directory: str,
        segments: Sequence[LogSegment],
        *,
        snapshots: Sequence[str],
        useless: Sequence[str],
        on_finished: Callable[[list[str], Exception | None], None],
    ) -> None:
        self._files = files
        self._directory = directory
        self._segments = segments
        self._snapshots = snapshots
        self._useless = useless
        self._on_finished = on_finished
        self._renamed: list[str] = []

    def run(self) -> None:
        """Rename the files, each segment durably before the next: a crash leaves no gap. Raises OSError.

        The snapshots are removed last: after a crash in between, recovery may begin at any remaining segment,
        and only the snapshot there has the producers of the earlier segments. Recovery removes snapshots left
        over."""
        for path in self._snapshots:
            with suppress(FileNotFoundError):  # removed by a truncation
                sync_file(self._files, path)
        if self._snapshots:
            self._files.sync_directory(self._directory)
        for segment in self._segments:
            self._renamed += segment.files.mark_deleted()
            self._files.sync_directory(self._directory)
        for path in self._useless:
            with suppress(FileNotFoundError):
                self._files.remove(path)

    def finish(self, error: Exception | None) -> None:
        """Report the renamed files, to be removed later. An error fences the log."""
        self._on_finished(self._renamed, error)


class FileRemoval:
    """Work that removes files whose ``file.delete.delay.ms`` is over. If it fails, ``on_failed`` gets the
    remaining files."""

    def __init__(
        self, files: DataFiles, paths: Sequence[str], on_failed: Callable[[list[str]], None]
    ) -> None:
        self._files = files
        self._left = list(paths)
        self._on_failed = on_failed

    def run(self) -> None:
        """Remove the files. Raises OSError."""
        while self._left:
            with suppress(FileNotFoundError):
                self._files.remove(self._left[0])
            del self._left[0]

    def finish(self, error: Exception | None) -> None:
        """Report the remaining files for the next attempt."""
        if self._left:
            self._on_failed(self._left)


class DeletedFiles:
    """The ``.deleted`` files of one log, which are removed when ``file.delete.delay.ms`` is over."""

    __slots__ = ("_due", "_files")

    def __init__(self, files: DataFiles) -> None:
        self._files = files
        self._due: list[tuple[int, list[str]]] = []  # (time to remove, paths)

    def add(self, paths: list[str], remove_at_ms: int) -> None:
        """Add files for ``removal`` to remove at or after ``remove_at_ms``."""
        self._due.append((remove_at_ms, paths))

    @property
    def next_ms(self) -> int | None:
        """The time when the first files are due, in milliseconds; None without files."""
        return min(time_ms for time_ms, _ in self._due) if self._due else None

    def removal(self, now_ms: int) -> FileRemoval | None:
        """Return the work that removes the files that are due; None without any."""
        due = [path for time_ms, paths in self._due if time_ms <= now_ms for path in paths]
        if not due:
            return None
        self._due = [entry for entry in self._due if entry[0] > now_ms]
        return FileRemoval(self._files, due, lambda left: self._due.insert(0, (now_ms, left)))

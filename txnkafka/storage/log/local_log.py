"""Creates, syncs, deletes and replaces the segments of one log on the disk.

Source: ``LocalLog``.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, NoReturn

from txnkafka.errors import KafkaStorageError
from txnkafka.storage.log.flush_state import FlushState
from txnkafka.storage.log.log_segment import LogSegment
from txnkafka.storage.log.log_segments import LogSegments
from txnkafka.storage.log.passing_errors import DISK_FULL, NO_DESCRIPTOR
from txnkafka.storage.log.segment_deletion import DeletedFiles, SegmentDeletion
from txnkafka.storage.log.segment_files import UNNAMED, SegmentFiles
from txnkafka.storage.work import perform

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from txnkafka.config import LogConfig
    from txnkafka.env import DataFiles
    from txnkafka.storage.log.cut import Cut
    from txnkafka.storage.log.fence import Fence
    from txnkafka.storage.log.loaded_log import LoadedLog
    from txnkafka.storage.log.open_files import OpenFiles
    from txnkafka.storage.log.segment_deletion import FileRemoval

LOG = logging.getLogger("txnkafka.storage")


class LocalLog:
    """The ``segments`` in ``directory``. ``flushing`` tracks the durable data, ``deleted`` the files to
    remove later. ``on_repair`` is called when an index of a segment is rebuilt."""

    __slots__ = (
        "_fence", "_files", "_on_repair", "_open_files", "_refused_at", "_snapshots", "deleted", "directory",
        "flushing", "segments",
    )  # fmt: skip

    def __init__(
        self,
        files: DataFiles,
        directory: str,
        loaded: LoadedLog,
        *,
        fence: Fence,
        open_files: OpenFiles,
        on_repair: Callable[[str, str, str], None],
    ) -> None:
        self._files = files
        self.directory = directory
        self._fence, self._open_files, self._on_repair = fence, open_files, on_repair
        self._refused_at = -1  # size of the active segment when a full disk was logged
        self._snapshots = loaded.snapshots
        self.segments = LogSegments(map(self._adopt, loaded.segments))
        self.flushing = FlushState(files, directory, self.segments, loaded.snapshots, loaded.log_end_offset)
        self.deleted = DeletedFiles(files)

    def _adopt(self, segment: LogSegment) -> LogSegment:
        segment.on_repair = self._on_repair
        segment.files.limit_by(self._open_files)
        return segment

    def roll(self, base_offset: int, config: LogConfig, now_ms: int) -> None:
        """Create a segment after the sealed active one. Its files have a suffix that recovery ignores,
        because the data before it is not durable yet. Raises OSError."""
        SegmentFiles(self._files, self.directory, base_offset).remove_leftovers()
        fresh = LogSegment(
            self._files, self.directory, base_offset, config, created_ms=now_ms, suffix=UNNAMED
        )
        fresh.files.remove_leftovers()  # of a failed roll
        try:
            fresh.files.create("log")
            if config.preallocate:
                fresh.preallocate()
        except OSError:
            with contextlib.suppress(OSError):  # raise the first error
                fresh.files.remove()
            raise
        self.flushing.on_roll(self.segments.active)
        self.segments.append(self._adopt(fresh))

    def write_failed(self, error: OSError) -> NoReturn:
        """Raise KafkaStorageError for a failed write to the active segment. If the disk is full or no file
        descriptor is left, and the file can be trimmed, the log remains usable, and one line is logged until
        it has grown; otherwise the log is fenced."""
        if not self._is_usable_after(error):
            self._fence.put_up(error)
        self._fence.check()
        name, size = self._fence.topic_partition, self.segments.active.size
        fault = f"the disk of {self.directory} is full"
        if error.errno in NO_DESCRIPTOR:
            fault = f"the files of {self.directory} cannot be used, {error.strerror}: raise ulimit -n"
        text = f"{fault}: nothing was appended to {name}"
        if size != self._refused_at:
            self._refused_at = size
            LOG.error("%s", text)
        raise KafkaStorageError(text) from error

    def _is_usable_after(self, error: OSError) -> bool:
        has_no_descriptor = error.errno in NO_DESCRIPTOR
        if error.errno not in DISK_FULL and not has_no_descriptor:
            return False
        try:
            self.segments.active.trim()
        except OSError as again:  # without a descriptor, no byte was written
            return has_no_descriptor and again.errno in NO_DESCRIPTOR
        return True

    def deletion(self, count: int, remove_at_ms: int) -> SegmentDeletion:
        """Remove the first ``count`` segments (not all) from the log, with their snapshots, and return the
        work that deletes their files. The work first syncs the snapshot at the new beginning, which alone
        records the producers of the deleted segments. An error of the work fences the log; this call itself
        does not fail."""
        taken = self.segments.take_first(count)
        unsynced = self._snapshots.take_unsynced(self.segments[0].base_offset)
        useless = self._snapshots.forget(segment.base_offset for segment in taken)
        for segment in taken:
            self.flushing.retire(segment)

        def finished(renamed: list[str], error: Exception | None) -> None:
            self.deleted.add(renamed, remove_at_ms)
            if error is not None:
                self._fence.put_up(error if isinstance(error, OSError) else OSError(str(error)))

        return SegmentDeletion(
            self._files, self.directory, taken, snapshots=unsynced, useless=useless, on_finished=finished
        )

    def drop_from(self, cut: Cut, config: LogConfig, now_ms: int) -> None:
        """Delete the segments after a cut, and truncate the last remaining one. Raises OSError."""
        # from the end backwards, so that a crash leaves no gap
        for segment in reversed(self.segments[cut.last :]):
            self.delete(segment, now_ms + config.file_delete_delay_ms)
        fresh = None
        if not cut.last:
            end = cut.log_end_offset
            fresh = self._adopt(LogSegment(self._files, self.directory, end, config, created_ms=now_ms))
            fresh.files.create("log")
        self.segments.take_from(cut.last, then=fresh)
        active = self.segments.active
        active.truncate(cut.position, cut.log_end_offset)
        active.modified_ms = now_ms
        if not active.size:
            active.created_ms = now_ms
        self.flushing.has_unsynced_names = True

    def replace(self, replaced: Sequence[LogSegment], by: LogSegment, remove_at_ms: int) -> None:
        """Replace consecutive segments by one whose ``.swap`` files already count after a crash. The old
        files are renamed as in ``delete``, but not durably. Raises OSError."""
        self._fence.check_owner()
        for segment in replaced:
            self.deleted.add(segment.files.mark_deleted(), remove_at_ms)
            self.flushing.retire(segment)
        self.segments.replace(replaced, self._adopt(by))
        self.flushing.has_unsynced_names = True

    def delete(self, segment: LogSegment, remove_at_ms: int) -> None:
        """Rename the files of a segment, durably, to the suffix ``.deleted``; they are removed at or after
        ``remove_at_ms``. Raises OSError."""
        self._fence.check_owner()
        renamed = segment.files.mark_deleted()
        self._files.sync_directory(self.directory)  # before the next rename
        self.deleted.add(renamed, remove_at_ms)
        self.flushing.retire(segment)

    def removal(self, now_ms: int) -> FileRemoval | None:
        """Return the work that removes the due ``.deleted`` files; None without any."""
        self._fence.check_owner()
        return self.deleted.removal(now_ms)

    def remove_deleted(self, now_ms: int) -> None:
        """Remove the files of ``removal`` now. Raises OSError; the next call tries again."""
        work = self.removal(now_ms)
        if work is not None:
            perform(work)

    def seal(self) -> None:
        """Seal the active segment against appends, and write its indexes. Raises OSError."""
        active = self.segments.active
        active.seal()
        if active.was_preallocated:  # regardless of the present setting
            active.trim()
        active.save()

    def save(self) -> None:
        """Write all unsaved index entries to their files; no more appends follow. Raises OSError."""
        for segment in self.segments[:-1]:
            segment.save()
        self.seal()

    def close_files(self) -> None:
        """Close all files."""
        for segment in self.segments:
            segment.close()

"""Tracks which part of one log is durable, and which files the next flush has to sync.

``begin`` and ``finish`` are called by one thread at a time; ``LogFlush.run`` in between may run in parallel
to all other methods. A rolled segment gets its final name when all data before it is durable: after a power
cut, only the last segment may be short, because a gap within the log would look like the result of
compaction. So a segment created during a flush waits for the next one: that flush may have synced too early
for the end of the previous segment and the files written by the roll.

Source: ``UnifiedLog.flush``, ``LocalLog.flush``.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from txnkafka.env import replace_file
from txnkafka.storage.log.log_flush import LogFlush
from txnkafka.storage.log.log_offset_metadata import LogOffsetMetadata

if TYPE_CHECKING:
    from txnkafka.env import DataFile, DataFiles
    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.log.log_segments import LogSegments
    from txnkafka.storage.log.producer_snapshots import ProducerSnapshots

_NOTHING_LEFT: Final = (1 << 63) - 1


class FlushState:
    """The flush state of one log. All data below ``recovery_point`` is durable. ``has_unsynced_names``: a
    file of the directory was created or renamed since the last flush began. ``oldest_ms`` is the time of the
    first append not covered by a flush; the append sets it."""

    __slots__ = (
        "_contents", "_covered", "_directory", "_files", "_named_next", "_retired", "_rolled", "_segments",
        "_snapshots", "_unwritten_from", "has_unsynced_names", "is_flushing", "oldest_ms", "recovery_point",
    )  # fmt: skip

    def __init__(
        self,
        files: DataFiles,
        directory: str,
        segments: LogSegments,
        snapshots: ProducerSnapshots,
        recovery_point: int,
    ) -> None:
        self._files = files
        self._directory = directory
        self._segments = segments
        self._snapshots = snapshots
        self.recovery_point = recovery_point
        self.has_unsynced_names = False
        self._contents: dict[str, bytes] = {}  # small files for the next flush to write, by path
        self._unwritten_from = _NOTHING_LEFT  # batches from here on depend on an unwritten content
        self.is_flushing = False  # True between ``begin`` and ``finish`` of a flush
        self._covered: list[LogSegment] = []  # by the running flush
        self._named_next: LogSegment | None = None  # once the running flush is durable
        self.oldest_ms: int | None = None
        self._rolled: list[LogSegment] = []  # closed and not flushed, their files still open
        self._retired: list[LogSegment] = []  # deleted; closed when the running flush is finished

    @property
    def recovery_point_to_write(self) -> int:
        """The recovery point for the checkpoint: recovery derives contents that did not fit on the disk from
        the batches at and after it."""
        return min(self.recovery_point, self._unwritten_from)

    def check_contents(self) -> None:
        """Raise OSError if a flush had no room for a content that durable batches depend on."""
        if self._unwritten_from < self.recovery_point:
            raise OSError(errno.ENOSPC, "no room for the leader epochs", self._directory)

    @property
    def has_contents(self) -> bool:
        """True if the next flush must write a small file."""
        return bool(self._contents)

    # Collecting the files of the next flush

    def on_roll(self, closed: LogSegment) -> None:
        """Record that the active segment was closed, and a new one created."""
        self._rolled.append(closed)
        self.has_unsynced_names = True

    def write_later(self, name: str, content: bytes, *, needed_from: int | None) -> None:
        """Register a small file of the partition for the next flush with enough disk space. The batches from
        the offset ``needed_from`` on depend on it; None if no batch does."""
        self._contents[self._files.join(self._directory, name)] = content
        if needed_from is not None:
            self._unwritten_from = min(self._unwritten_from, needed_from)

    def write_again(self, flush: LogFlush) -> None:
        """Register the contents that a flush had no room for, unless newer ones are registered."""
        self._contents = {**flush.contents, **self._contents}
        if not self._contents:
            self._unwritten_from = _NOTHING_LEFT

    def age_ms(self, now_ms: int) -> int | None:
        """Return the age of the oldest batch not covered by a flush, in milliseconds; None without one."""
        return None if self.oldest_ms is None else now_ms - self.oldest_ms

    def retire(self, segment: LogSegment) -> None:
        """Close a segment that was removed from the log: now, or after the flush that uses its files."""
        if segment in self._rolled:
            self._rolled.remove(segment)
        if self.is_flushing:
            self._retired.append(segment)  # the flush uses its files
        else:
            segment.close()

    # Flushing

    def begin(self, log_end_offset: int) -> tuple[LogFlush, LogOffsetMetadata]:
        """Begin a flush up to the first segment without its final name; return the flush and its end
        position. Raises OSError if a file cannot be opened: then nothing is flushed, and ``begin_nothing``
        must follow."""
        active = self._segments.active
        covered: list[LogSegment] = []
        unnamed: list[LogSegment] = []
        logs: list[DataFile] = []
        derived: list[DataFile] = []
        for segment in (*self._rolled, active):
            if segment.files.suffix:
                unnamed.append(segment)
                continue
            covered.append(segment)
            derived += segment.unsynced_files
            if segment.has_unsynced_bytes:
                logs.append(segment.files.open("log"))
        for segment in covered:
            segment.has_unsynced_bytes, segment.unsynced_files = False, []
        self.is_flushing, self._covered, self.oldest_ms = True, covered, None
        self._rolled = [segment for segment in unnamed if segment is not active]
        contents, self._contents = self._contents, {}
        paths = self._snapshots.take_unsynced() if self._snapshots.unsynced else ()
        directories = (self._directory,) if self.has_unsynced_names or contents else ()
        self.has_unsynced_names = False
        if unnamed:
            self._named_next = unnamed[0]
            base = self._named_next.base_offset
            end = LogOffsetMetadata(base, base, 0)
        else:
            self._named_next = None
            end = LogOffsetMetadata(log_end_offset, active.base_offset, active.size)
        return LogFlush(end.offset, contents, logs + derived, paths, directories), end

    def begin_nothing(self) -> LogFlush:
        """Begin a flush without syncs: after a failure, no sync makes the data durable."""
        self.is_flushing, self._covered, self.oldest_ms = True, [], None
        return LogFlush(self.recovery_point, {}, (), (), ())

    def finish(self) -> None:
        """End the running flush. Closes the files of segments that get no more appends."""
        covered = self._covered + self._retired
        self.is_flushing, self._covered, self._retired = False, [], []
        for segment in covered:
            if segment is not self._segments.active and segment not in self._rolled:  # rolled meanwhile
                segment.unload()
                segment.close()
            elif not segment.has_unsynced_bytes:
                segment.files.rest()

    def on_durable(self, end_offset: int) -> None:
        """Record that all data below ``end_offset`` is durable, and rename the first segment that lacked its
        final name when the flush began. Raises OSError."""
        self.recovery_point = max(self.recovery_point, end_offset)
        if self._named_next is not None:
            try:
                self._named_next.files.become("")
            finally:
                self.has_unsynced_names = True

    # For a truncation, which waits for the disk

    def lower_recovery_point(self, offset: int) -> None:
        """Lower the recovery point to ``offset``, unless it is already lower."""
        self.recovery_point = min(self.recovery_point, offset)

    def sync_segments(self) -> None:
        """Sync all segments, and give them their final names. The high watermark stays. Raises OSError."""
        for segment in (*self._rolled, self._segments.active):
            if not segment.is_named:
                segment.files.become("")
            segment.sync()
            self._files.sync_directory(self._directory)
        self._rolled = []

    def sync_cut(self, log_end_offset: int) -> None:
        """Sync a truncation: the log ends at ``log_end_offset``. Raises OSError."""
        active = self._segments.active
        active.save()  # recovery trusts the indexes below the recovery point
        active.sync()
        for path, content in self._contents.items():
            replace_file(self._files, path, content)
        self._contents, self._unwritten_from = {}, _NOTHING_LEFT
        self._files.sync_directory(self._directory)
        self.recovery_point = log_end_offset

    # At a clean stop

    def sync_derived(self) -> None:
        """Sync indexes and snapshots; the batches are durable. Raises OSError."""
        # most of ten thousand partitions have no new data, so nothing is synced
        changed = [
            segment for segment in self._segments if segment.unsynced_files or segment.has_unsynced_bytes
        ]
        names = bool(changed or self._snapshots.unsynced)
        for segment in changed:
            segment.sync()
        self._snapshots.sync()
        if names:
            self._files.sync_directory(self._directory)

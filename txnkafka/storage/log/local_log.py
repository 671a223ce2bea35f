"""The segments of a log on the disk: which of their bytes and names are durable, and what happens when that
fails.

``begin_flush`` and ``finish_flush`` are called by one thread at a time; what is between them,
``LogFlush.run``, may run beside everything else here. After the first I/O error nothing is acknowledged any
more.

Source: ``LocalLog``, ``UnifiedLog.flush``.
"""

from __future__ import annotations

import contextlib
import errno
import logging
from typing import TYPE_CHECKING

from txnkafka.env import replace_file, this_process
from txnkafka.errors import FlushUnderWayError, KafkaError, KafkaStorageError
from txnkafka.storage.log.log_flush import LogFlush
from txnkafka.storage.log.log_offset_metadata import LogOffsetMetadata, OffsetPositions
from txnkafka.storage.log.log_segment import LogSegment
from txnkafka.storage.log.log_segments import segment_number
from txnkafka.storage.log.repair_step import RepairStep
from txnkafka.storage.log.segment_files import UNNAMED, SegmentFiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.config import LogConfig
    from txnkafka.env import DataFiles
    from txnkafka.model import TopicPartition
    from txnkafka.storage.log.batch_position import BatchPosition
    from txnkafka.storage.log.cut import Cut
    from txnkafka.storage.log.loaded_log import LoadedLog
    from txnkafka.storage.log.producer_snapshots import ProducerSnapshots

__all__ = ["LocalLog"]

LOG = logging.getLogger("txnkafka.storage")
_KEPT_INDEXES = 8  # of closed segments, in memory


class LocalLog:
    """The segments in ``directory``, ascending; the last one is appended to.

    ``recovery_point`` is where the durable part ends. ``fenced`` is the error after which nothing is taken.
    Only the process that opened the log changes it: a child of a fork reads what it has in memory.
    """

    def __init__(
        self,
        files: DataFiles,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        loaded: LoadedLog,
    ) -> None:
        self.files = files
        self.directory = directory
        self.topic_partition = topic_partition
        self.config = config
        self.segments = list(loaded.segments)
        for segment in self.segments:
            segment.on_repair = self.note
        self.log_end_offset = self.recovery_point = loaded.log_end_offset
        self.fenced: OSError | None = None
        self.owner = this_process()
        self.repairs = list(loaded.repairs)  # what was not as it should be, and is now
        self.snapshots = loaded.snapshots
        self.has_unsynced_names = False
        self._unsaved: dict[str, bytes] = {}  # small files that the next flush writes
        self._flushing: list[LogSegment] | None = None  # what the flush under way covers
        self._oldest_unflushed_ms: int | None = None
        self._rolled: list[LogSegment] = []  # closed and not flushed, their files still open
        self._retired: list[LogSegment] = []  # deleted, to be closed when the flush under way is done
        self.positions = OffsetPositions(self._locate)
        self._doomed: list[tuple[int, list[str]]] = []  # when to remove which files
        self._looked_up: list[LogSegment] = []  # closed segments whose indexes are in memory

    @property
    def active(self) -> LogSegment:
        """The segment that is appended to."""
        return self.segments[-1]

    def segment_of(self, offset: int) -> int:
        """Number of the segment that would hold ``offset``."""
        return segment_number(self.segments, offset)

    @property
    def log_end_metadata(self) -> LogOffsetMetadata:
        """The log end and its position."""
        active = self.segments[-1]
        return LogOffsetMetadata(self.log_end_offset, active.base_offset, active.size)

    def locate(self, offset: int) -> tuple[int, BatchPosition | None]:
        """The first batch that ends at ``offset`` or behind it, and the number of its segment; None with that
        of the active segment at the log end. Raises CorruptRecordError and OSError."""
        last = len(self.segments) - 1
        active = self.segments[last]
        if offset < active.base_offset:
            for number in range(self.segment_of(offset), last):
                place = self.find(number, offset)
                if place is not None:
                    return number, place
        return last, active.find(offset)

    def _locate(self, offset: int) -> tuple[LogSegment, BatchPosition | None]:
        number, place = self.locate(offset)
        return self.segments[number], place

    def find(self, number: int, offset: int) -> BatchPosition | None:
        """The first batch in a segment that ends at ``offset`` or behind it."""
        segment = self.segments[number]
        if segment is not self.segments[-1] and segment not in self._looked_up:
            self._looked_up.append(segment)
            oldest = self._looked_up.pop(0) if len(self._looked_up) > _KEPT_INDEXES else self.active
            if oldest is not self.active:  # a cut may have made it that
                oldest.unload()
        return segment.find(offset)

    # Flushing

    @property
    def needs_flush(self) -> bool:
        """Whether something that was appended is not durable."""
        return self.recovery_point < self.log_end_offset or self.has_unsynced_names

    @property
    def is_flushing(self) -> bool:
        """Whether a flush was begun and is not finished."""
        return self._flushing is not None

    def flush_is_due(self, now_ms: int) -> bool:
        """Whether ``flush.messages`` or ``flush.ms`` want a flush that nobody waits for."""
        since = self._oldest_unflushed_ms
        records = self.log_end_offset - self.recovery_point
        return since is not None and (
            records >= self.config.flush_messages or now_ms - since >= self.config.flush_ms
        )

    def begin_flush(self) -> LogFlush:
        """What makes durable what was appended so far, up to the first segment without a name: that one gets
        its name when this flush is finished, and is durable with the next one. ``finish_flush`` must follow
        before the next flush; until then FlushUnderWayError is raised. When a file cannot be opened, the log
        is fenced."""
        self.owner.check(self.directory)
        if self._flushing is not None:
            raise FlushUnderWayError(
                f"a flush of {self.topic_partition} is under way: finish it before the next one"
            )
        covered = [segment for segment in (*self._rolled, self.active) if segment.is_named]
        try:
            files = [segment.file("log") for segment in covered if segment.has_unsynced_bytes]
            files += [file for segment in covered for file in segment.unsynced_files]
        except OSError as error:
            self.fence(error)
        self._flushing, self._oldest_unflushed_ms = covered, None
        if self.fenced is not None:
            return LogFlush(self.recovery_point, {}, (), (), ())  # no sync can make good what has failed
        for segment in covered:
            segment.has_unsynced_bytes, segment.unsynced_files = False, []
        self._rolled = [segment for segment in self._rolled if not segment.is_named]
        contents, paths = self.take_unsaved(), self.snapshots.take_unsynced()
        names = self.has_unsynced_names or contents
        self.has_unsynced_names = False
        end = self._end_of_named()
        self.positions.on_flush(end)
        return LogFlush(end.offset, contents, files, paths, [self.directory] if names else [])

    def _end_of_named(self) -> LogOffsetMetadata:
        """The end of the segments that have their names, and its position."""
        if self.active.is_named:
            return self.log_end_metadata
        base_offset = self._first_unnamed().base_offset
        return LogOffsetMetadata(base_offset, base_offset, 0)

    def take_unsaved(self) -> dict[str, bytes]:
        """Contents by path of the small files of the partition that the disk lacks; the caller writes
        them."""
        taken, self._unsaved = self._unsaved, {}
        return {self.files.join(self.directory, name): content for name, content in taken.items()}

    def finish_flush(self, flush: LogFlush, error: OSError | None) -> None:
        """The flush is done: what it covers is durable, and visible. With an error the log is fenced."""
        covered, self._flushing = self._flushing or [], None
        for segment in (*covered, *self._retired):
            if segment is not self.active and segment not in self._rolled:  # rolled since
                segment.unload()
                segment.close()
        self._retired = []
        if error is not None:
            self.fence(error)
        elif self.fenced is None:
            end_offset = min(flush.end_offset, self.log_end_offset)
            self.recovery_point = max(self.recovery_point, end_offset)
            self.on_durable(end_offset)
            self._name_next()

    def _first_unnamed(self) -> LogSegment:
        return next(segment for segment in (*self._rolled, self.active) if not segment.is_named)

    def _name_next(self) -> None:
        """Everything in front of the first segment without a name is durable: give it one."""
        if self.active.is_named:
            return
        try:
            self._first_unnamed().files.become("")
        except OSError as error:
            self.fence(error)
        self.has_unsynced_names = True

    def flush(self) -> None:
        """Make everything durable, now. Raises KafkaStorageError, and FlushUnderWayError between
        ``begin_flush`` and ``finish_flush``."""
        while True:
            self.check_usable()
            flush = self.begin_flush()
            error: OSError | None = OSError("the flush was interrupted")  # by a signal
            try:
                flush.run(self.files)
                error = None
            except OSError as failed:
                error = failed
            finally:
                self.finish_flush(flush, error)
            self.check_usable()
            if not self.needs_flush:
                return

    def on_durable(self, end_offset: int) -> None:
        """Everything below ``end_offset`` is durable."""

    def lower_recovery_point(self, offset: int) -> None:
        """Let the recovery point be ``offset`` unless it is below."""
        self.recovery_point = min(self.recovery_point, offset)

    # Segments

    def _begun_segment(self, base_offset: int, now_ms: int) -> LogSegment:
        """A new segment at the log end, whose files do not count: what was appended before is not durable,
        and after a power cut only the last segment may end early. Otherwise what was lost in the middle would
        look like what compaction leaves. Raises OSError."""
        SegmentFiles(self.files, self.directory, base_offset).remove_leftovers()
        fresh = LogSegment(
            self.files, self.directory, base_offset, self.config, created_ms=now_ms, suffix=UNNAMED
        )
        fresh.on_repair = self.note
        fresh.files.remove_leftovers()  # of a roll that failed
        try:
            fresh.files.create("log")
            if self.config.preallocate:
                fresh.preallocate()
        except OSError:
            with contextlib.suppress(OSError):  # there is one to raise already
                fresh.files.remove()
            raise
        return fresh

    def replace_segments(self, replaced: Sequence[LogSegment], by: LogSegment) -> None:
        """Let a segment whose files are durable take the place of ``replaced``, which follow each other."""
        first = self.segments.index(replaced[0])
        self.segments[first : first + len(replaced)] = [by]
        self.positions.clear()
        self.has_unsynced_names = True

    def _drop_from(self, cut: Cut, now_ms: int) -> None:
        """Delete the segments behind a cut, and cut the one that is the last then. Raises OSError."""
        doomed = self.segments[cut.last :]
        fresh: LogSegment | None = None
        if not cut.last:
            fresh = LogSegment(
                self.files, self.directory, cut.log_end_offset, self.config, created_ms=now_ms
            )
            fresh.on_repair = self.note
        for segment in reversed(doomed):  # from the end, one after the other, so that a crash leaves no hole
            self.delete_files(segment, now_ms)
        if fresh is not None:
            fresh.files.create("log")
        self.segments = [*self.segments[: cut.last], *([] if fresh is None else [fresh])]
        self.active.truncate(cut.position, cut.log_end_offset)
        self.active.modified_ms = now_ms
        if not self.active.size:
            self.active.created_ms = now_ms
        self.has_unsynced_names = True

    def _sync_segments(self) -> None:
        """Make all segments durable, and give each its name, although no reader sees more of them than
        before. Raises OSError."""
        for segment in (*self._rolled, self.active):
            if not segment.is_named:
                segment.files.become("")
            segment.sync()
            self.files.sync_directory(self.directory)
        self._rolled = []

    def _sync_cut(self) -> None:
        """Make durable that the log ends where it does. Raises OSError."""
        self.active.save()  # below the recovery point recovery believes them
        self.active.sync()
        for path, content in self.take_unsaved().items():
            replace_file(self.files, path, content)
        self.files.sync_directory(self.directory)
        self.recovery_point = self.log_end_offset

    def _drop_oldest(self, count: int, snapshots: ProducerSnapshots, now_ms: int) -> None:
        """Delete the first segments, and their snapshots. Raises OSError."""
        doomed, self.segments = self.segments[:count], self.segments[count:]
        for segment in doomed:  # from the beginning, one after the other, so that a crash leaves no hole
            self.delete_files(segment, now_ms)
            with contextlib.suppress(FileNotFoundError):
                snapshots.remove(segment.base_offset)
        self.has_unsynced_names = True

    # Deleting

    def delete_files(self, segment: LogSegment, now_ms: int) -> None:
        """Take the files of a segment out of service, durably: they get the suffix ``.deleted`` and lie there
        for ``file.delete.delay.ms``. Raises OSError."""
        self.owner.check(self.directory)
        renamed = segment.files.mark_deleted()
        self.files.sync_directory(self.directory)  # before another goes
        self._doomed.append((now_ms + self.config.file_delete_delay_ms, renamed))
        if segment in self._looked_up:
            self._looked_up.remove(segment)
        if segment in self._rolled:
            self._rolled.remove(segment)
        if self._flushing is not None:
            self._retired.append(segment)  # the flush has its files
        else:
            segment.close()

    def remove_deleted(self, now_ms: int) -> None:
        """Remove the ``.deleted`` files whose time is up. Raises OSError; the next call tries again."""
        self.owner.check(self.directory)
        while self._doomed and self._doomed[0][0] <= now_ms:
            for path in self._doomed[0][1]:
                with contextlib.suppress(FileNotFoundError):
                    self.files.remove(path)
            del self._doomed[0]

    # Failing

    def note(self, what: str, action: str = "", why: str = "") -> None:
        """Something was not as it should be, and is now; see ``RepairStep``."""
        done = RepairStep(what, action, why)
        LOG.warning("%s: %s", self.topic_partition, done)
        self.repairs.append(done)

    def fence(self, error: OSError | KafkaError) -> None:
        """Nothing is appended or acknowledged any more."""
        if self.fenced is None:
            self.fenced = error if isinstance(error, OSError) else OSError(errno.EIO, str(error))
            LOG.error("%s takes no more appends: %s", self.topic_partition, error)

    def check_usable(self) -> None:
        """Raises KafkaStorageError when the log is fenced, LogDirError when another process owns it."""
        if not self.owner.is_here:  # asked here because every append comes by
            self.owner.check(self.directory)
        if self.fenced is not None:
            raise KafkaStorageError(
                f"{self.topic_partition} takes nothing since {self.directory} failed: {self.fenced}. Opening "
                "the data directory again recovers what was acknowledged"
            )

    def close_files(self) -> None:
        """Give all files back."""
        for segment in self.segments:
            segment.close()

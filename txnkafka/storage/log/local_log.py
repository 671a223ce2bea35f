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

from txnkafka.env import this_process
from txnkafka.errors import FlushUnderWayError, KafkaError, KafkaStorageError
from txnkafka.storage.log.log_flush import LogFlush
from txnkafka.storage.log.log_segment import LogSegment
from txnkafka.storage.log.log_segments import segment_number
from txnkafka.storage.log.repair_step import RepairStep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.config import LogConfig
    from txnkafka.env import DataFile, DataFiles
    from txnkafka.model import TopicPartition
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
        self.has_unsynced_names = False
        self.unsynced_files: list[DataFile] = []  # of segments that were rolled
        self._flushing = False
        self._oldest_unflushed_ms: int | None = None
        self._was_cut = False  # while a flush was under way
        self._rolled: list[LogSegment] = []  # closed since the last flush, their files still open
        self._retired: list[LogSegment] = []  # to be closed when the flush that is under way is done
        self._doomed: list[tuple[int, list[str]]] = []  # when to remove which files
        self._looked_up: list[LogSegment] = []  # closed segments whose indexes are in memory

    @property
    def active(self) -> LogSegment:
        """The segment that is appended to."""
        return self.segments[-1]

    def segment_of(self, offset: int) -> int:
        """Number of the segment that would hold ``offset``."""
        return segment_number(self.segments, offset)

    def find(self, number: int, offset: int) -> tuple[int, int, int] | None:
        """Position, size and base offset of the first batch in a segment that ends at ``offset`` or
        behind."""
        segment = self.segments[number]
        if segment is not self.active and segment not in self._looked_up:
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

    def flush_is_due(self, now_ms: int) -> bool:
        """Whether ``flush.messages`` or ``flush.ms`` want a flush that nobody waits for."""
        since = self._oldest_unflushed_ms
        records = self.log_end_offset - self.recovery_point
        return since is not None and (
            records >= self.config.flush_messages or now_ms - since >= self.config.flush_ms
        )

    def begin_flush(self) -> LogFlush:
        """What makes everything appended so far durable. ``finish_flush`` must follow before the next one;
        until then FlushUnderWayError is raised. When a file cannot be opened, the log is fenced."""
        self.owner.check(self.directory)
        if self._flushing:
            raise FlushUnderWayError(
                f"a flush of {self.topic_partition} is under way: finish it before the next one"
            )
        files = self.unsynced_files
        if self.active.has_unsynced_bytes:
            try:
                files = [*files, self.active.file("log")]
            except OSError as error:
                self.fence(error)
        self._flushing, self._oldest_unflushed_ms = True, None
        if self.fenced is not None:
            return LogFlush(self.recovery_point, (), ())  # no sync can make good what has failed
        self.active.has_unsynced_bytes = False
        directories = [self.directory] if self.has_unsynced_names else []
        self.unsynced_files, self.has_unsynced_names = [], False
        self._retired, self._rolled = self._rolled, []
        return LogFlush(self.log_end_offset, files, directories)

    def finish_flush(self, flush: LogFlush, error: OSError | None) -> None:
        """The flush is done: what it covers is durable, and visible. With an error the log is fenced."""
        self._flushing = False
        for segment in self._retired:
            if segment is not self.active and segment not in self._rolled:  # a cut brought it back
                segment.close()
        was_cut, self._retired, self._was_cut = self._was_cut, [], False
        if error is not None:
            self.fence(error)
        elif self.fenced is None and not was_cut:
            end_offset = min(flush.end_offset, self.log_end_offset)
            self.recovery_point = max(self.recovery_point, end_offset)
            self.on_durable(end_offset)

    def flush(self) -> None:
        """Make everything durable, now. Raises KafkaStorageError, and FlushUnderWayError between
        ``begin_flush`` and ``finish_flush``."""
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

    def on_durable(self, end_offset: int) -> None:
        """Everything below ``end_offset`` is durable."""

    def lower_recovery_point(self, offset: int) -> None:
        """Let the recovery point be ``offset`` unless it is below."""
        self.recovery_point = min(self.recovery_point, offset)

    # Segments

    def _begun_segment(self, base_offset: int, now_ms: int) -> LogSegment:
        """A new segment with its file. Raises OSError; then there is no file, or the log is fenced: an empty
        segment would end the log below batches that are appended to the segment before."""
        fresh = LogSegment(self.files, self.directory, base_offset, self.config, created_ms=now_ms)
        fresh.on_repair = self.note
        try:
            fresh.files.remove_leftovers()
            fresh.files.create("log")
            if self.config.preallocate:
                fresh.preallocate()
        except OSError:
            self._undo(fresh)
            raise
        return fresh

    def _undo(self, fresh: LogSegment) -> None:
        """Remove the file of a segment that could not be begun, durably."""
        try:
            if self.files.exists(fresh.path("log")):
                fresh.files.remove()
                self.files.sync_directory(self.directory)
        except OSError as error:
            self.fence(error)

    def replace_segments(self, replaced: Sequence[LogSegment], by: LogSegment) -> None:
        """Let a segment whose files are durable take the place of ``replaced``, which follow each other."""
        first = self.segments.index(replaced[0])
        self.segments[first : first + len(replaced)] = [by]
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

    def _sync_cut(self) -> None:
        """Make durable that the log ends where it does: what a flush under way syncs says nothing of what is
        appended now. Raises OSError."""
        self.active.sync()
        derived: list[DataFile] = []
        self.active.save(derived)  # below the recovery point recovery believes them
        for file in derived:
            file.sync()
        self.files.sync_directory(self.directory)
        self.recovery_point = self.log_end_offset
        self._was_cut = self._flushing

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
        self.unsynced_files = [each for each in self.unsynced_files if not segment.files.has_open(each)]
        if segment in self._looked_up:
            self._looked_up.remove(segment)
        if self._flushing:
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

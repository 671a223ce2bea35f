"""The offset checkpoints of a data directory: recovery point, high watermark, log start and clean offset of
each log.

The entries of a partition that is not open (refused, or not part of a repair) are written back unchanged:
without its log start, for example, deleted records would become visible again. A log start before the first
segment is also kept: with tiered storage, Apache Kafka's log begins there; otherwise it has no effect.

Source: ``OffsetCheckpointFile``, ``LogManager.checkpointLogRecoveryOffsets``,
``LogManager.checkpointLogStartOffsets``, ``ReplicaManager.checkpointHighWatermarks``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.env import write_durably
from txnkafka.errors import CorruptFileError, FlushUnderWayError
from txnkafka.storage.formats.checkpoint import format_offset_checkpoint, parse_offset_checkpoint
from txnkafka.storage.formats.layout import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from txnkafka.storage.formats.limits import CHECKPOINT_LIMIT
from txnkafka.storage.formats.partition_names import concerns_one_partition, fits_checkpoint
from txnkafka.storage.log.repair_step import RepairStep
from txnkafka.storage.work import perform

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from txnkafka.env import DataFiles
    from txnkafka.model import TopicPartition
    from txnkafka.storage.log.partition_log import PartitionLog
    from txnkafka.storage.ownership import Ownership


class OffsetCheckpoints:
    """The checkpoints in ``path``, as read when the directory was opened and as written since. Keeps only
    entries of the partitions in ``there``: a file may name any number of others. ``on_damage`` is called for
    each unreadable file. Methods raise OSError; writing methods also raise the errors of ``owner.check``."""

    def __init__(
        self,
        files: DataFiles,
        path: str,
        there: Container[TopicPartition],
        on_damage: Callable[[RepairStep], None],
        owner: Ownership,
    ) -> None:
        self._files = files
        self._path = path
        self._there = there
        self._owner = owner
        self._unwritten: set[str] = set()
        self._under_way = False
        # the partitions named by each file; None if unknown
        self._on_disk: dict[str, set[TopicPartition] | None] = {}
        points = self._read(RECOVERY_POINT_CHECKPOINT, on_damage)
        self._knows_points = points is not None
        self._points = points or {}
        self._starts = self._read(LOG_START_OFFSET_CHECKPOINT, on_damage) or {}
        self._marks = self._read(HIGH_WATERMARK_CHECKPOINT, on_damage) or {}
        self.cleaner_offsets = self._read(CLEANER_OFFSET_CHECKPOINT, on_damage) or {}
        self._starts_below: dict[TopicPartition, int] = {}  # of open logs, at or below their first segments
        self._noted_marks: Mapping[TopicPartition, int] | None = None  # high watermarks that stay unchanged
        self._keeps_damaged_points = False
        self._held: Mapping[TopicPartition, int] = {}

    def hold(self, points: Mapping[TopicPartition, int]) -> None:
        """Until ``release``, write no recovery points above these, which were read: the next owner must check
        the later batches again, because this owner's repairs are not durable yet."""
        self._held = dict(points) if self._knows_points else {}

    def release(self) -> None:
        """Write the logs' own recovery points from now on."""
        self._held = {}

    def lacks(self, name: str) -> bool:
        """Return True if a checkpoint file was damaged when read, or if its last write failed."""
        return name in self._unwritten

    def noted(self, partition: TopicPartition) -> tuple[int | None, int, int]:
        """Return the recovery point, start and high watermark read for a log, each 0 if its file does not
        name the log; the recovery point is None if its file was damaged."""
        point = self._points.get(partition, 0) if self._knows_points else None
        return point, self._starts.get(partition, 0), self._marks.get(partition, 0)

    def keep_only(
        self,
        closed: set[TopicPartition],
        copies: set[TopicPartition],
        logs: Mapping[TopicPartition, PartitionLog],
        *,
        repairs: bool,
    ) -> None:
        """Keep the entries read only for ``closed`` partitions and ``copies`` for another disk: the other
        entries come from the open ``logs``. With ``repairs``, the replication is unknown, so no high
        watermark is raised."""
        kept = {each for each in closed | copies if fits_checkpoint(each.topic) and each not in logs}
        self._points = {partition: self._points.get(partition, 0) for partition in kept}
        self._starts_below = {
            partition: self._starts[partition]
            for partition, log in logs.items()
            if partition in self._starts and self._starts[partition] <= log.segments[0].base_offset
        }
        self._starts = {partition: self._starts[partition] for partition in kept & self._starts.keys()}
        self._noted_marks = self._marks if repairs else None
        self._marks = {partition: self._marks[partition] for partition in kept & self._marks.keys()}
        # the damaged file is the only sign that damage in closed partitions may be below the recovery point
        self._keeps_damaged_points = not self._knows_points and not kept.isdisjoint(closed)

    def forget(self, partition: TopicPartition) -> None:
        """Remove all entries of a deleted partition, so that a new partition of its name gets none."""
        for read in (self._points, self._starts, self._starts_below, self._marks, self.cleaner_offsets):
            read.pop(partition, None)

    def mentions(self, partition: TopicPartition) -> bool:
        """Return True if a file may name the partition. A new partition must not get offsets from that
        entry."""
        return any(names is None or partition in names for names in self._on_disk.values())

    @property
    def is_under_way(self) -> bool:
        """True while a ``work`` is unfinished."""
        return self._under_way

    def lower_cleaner_offset(self, partition: TopicPartition, offset: int) -> None:
        """Lower the clean offset of a log truncated at ``offset``: later appends above it are dirty."""
        if offset < self.cleaner_offsets.get(partition, 0):
            self.cleaner_offsets[partition] = offset
        elif not self.lacks(CLEANER_OFFSET_CHECKPOINT):
            return
        self.write_cleaner_offsets()

    def work(self, logs: Mapping[TopicPartition, PartitionLog]) -> CheckpointWork:
        """Return the work that writes the current recovery point, high watermark and start of each log. No
        other checkpoint may be written until it is finished. Raises FlushUnderWayError while other work is
        unfinished."""
        contents = {}
        if not self._keeps_damaged_points:
            points = {partition: log.flushing.recovery_point_to_write for partition, log in logs.items()}
            for partition, point in self._held.items():
                if partition in points:
                    points[partition] = min(points[partition], point)
            contents[RECOVERY_POINT_CHECKPOINT] = {**points, **self._points}
        contents[HIGH_WATERMARK_CHECKPOINT] = self._high_watermarks(logs)
        contents[LOG_START_OFFSET_CHECKPOINT] = self._log_starts(logs)
        if self._on_disk[CLEANER_OFFSET_CHECKPOINT] != self.cleaner_offsets.keys():
            contents[CLEANER_OFFSET_CHECKPOINT] = self.cleaner_offsets
        return self._work(contents)

    def log_start_work(self, logs: Mapping[TopicPartition, PartitionLog]) -> CheckpointWork:
        """Return the work that writes the start of each log that does not begin with its first segment."""
        return self._work({LOG_START_OFFSET_CHECKPOINT: self._log_starts(logs)})

    def deletion_work(self, logs: Mapping[TopicPartition, PartitionLog]) -> CheckpointWork:
        """Like ``log_start_work``, after a deletion of records. The high watermarks are written first: if a
        power cut loses an unflushed end, they prove to recovery that the logs had reached that offset."""
        marks = {HIGH_WATERMARK_CHECKPOINT: self._high_watermarks(logs)}
        return self._work(marks | {LOG_START_OFFSET_CHECKPOINT: self._log_starts(logs)})

    def cleaner_offsets_work(self) -> CheckpointWork:
        """Return the work that writes the offset from which the cleaner continues in each compacted log."""
        return self._work({CLEANER_OFFSET_CHECKPOINT: self.cleaner_offsets})

    def write_cleaner_offsets(self) -> None:
        """Write the offset from which the cleaner continues in each compacted log."""
        perform(self.cleaner_offsets_work())

    def _high_watermarks(self, logs: Mapping[TopicPartition, PartitionLog]) -> dict[TopicPartition, int]:
        marks = {partition: log.high_watermark for partition, log in logs.items()}
        if (noted := self._noted_marks) is not None:
            marks = {each: min(mark, noted[each]) for each, mark in marks.items() if each in noted}
        return {**marks, **self._marks}

    def _log_starts(self, logs: Mapping[TopicPartition, PartitionLog]) -> dict[TopicPartition, int]:
        starts = {}
        for partition, log in logs.items():
            start, base = log.log_start_offset, log.segments[0].base_offset
            # a failed log may have files of segments that it already removed
            if start > base or (log.fenced and start):
                starts[partition] = start
                if partition in self._starts_below:  # also valid for tiered storage
                    self._starts_below[partition] = start
            elif self._starts_below.get(partition, start + 1) <= base:
                starts[partition] = self._starts_below[partition]
        return {**starts, **self._starts}

    def _work(self, contents: Mapping[str, Mapping[TopicPartition, int]]) -> CheckpointWork:
        self._owner.check()
        if self._under_way:
            raise FlushUnderWayError(f"checkpoints of {self._path} are being written: finish that work first")
        lines = {name: format_offset_checkpoint(offsets) for name, offsets in contents.items()}
        self._under_way = True
        self._unwritten |= contents.keys()
        named = {name: set(offsets) for name, offsets in contents.items()}
        self._on_disk.update(dict.fromkeys(named))
        return CheckpointWork(self._files, self._path, lines, lambda done: self._written(named, done))

    def _written(self, named: Mapping[str, set[TopicPartition]], done: Iterable[str]) -> None:
        self._under_way = False
        for name in done:
            self._unwritten.discard(name)
            self._on_disk[name] = named[name]

    def _read(self, name: str, on_damage: Callable[[RepairStep], None]) -> dict[TopicPartition, int] | None:
        path = self._files.join(self._path, name)
        try:
            self._on_disk[name] = None
            return parse_offset_checkpoint(self._files.read(path, CHECKPOINT_LIMIT), self._there)
        except FileNotFoundError:
            self._on_disk[name] = set()
            return {}
        except (CorruptFileError, OSError) as error:
            if not concerns_one_partition(error):
                raise
            reason = error.reason if isinstance(error, CorruptFileError) else error.strerror
            on_damage(RepairStep(path, "rebuilt", f"it is damaged, {reason}"))
            self._unwritten.add(name)
            return None


class CheckpointWork:
    """Work that writes checkpoints: ``contents`` by file name. ``on_written`` gets the written names."""

    def __init__(
        self,
        files: DataFiles,
        path: str,
        contents: Mapping[str, bytes],
        on_written: Callable[[Iterable[str]], None],
    ) -> None:
        self._files = files
        self._path = path
        self._contents = contents
        self._on_written = on_written
        self._done: list[str] = []

    def run(self) -> None:
        """Write the files, each durably. Raises OSError; then the following files are not written."""
        for name, content in self._contents.items():
            write_durably(self._files, self._files.join(self._path, name), content)
            self._done.append(name)

    def finish(self, error: Exception | None) -> None:
        """Report the written files; ``OffsetCheckpoints.lacks`` stays true for the others."""
        self._on_written(self._done)

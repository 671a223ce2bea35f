"""The offset checkpoints of a data directory: where each log is durable, visible, begins, and is clean.

What the files say of a partition that is not open (refused, or left alone by a repair of others) is written
back as it was read: its log start above all, without which deleted records would come back.

Source: ``OffsetCheckpointFile``, ``LogManager.checkpointLogRecoveryOffsets``,
``LogManager.checkpointLogStartOffsets``, ``ReplicaManager.checkpointHighWatermarks``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.env import this_process, write_durably
from txnkafka.errors import CorruptFileError
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

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from txnkafka.env import DataFiles
    from txnkafka.model import TopicPartition
    from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["OffsetCheckpoints"]


class OffsetCheckpoints:
    """The checkpoints below ``path``, as they were read when the directory was opened and as they are written
    since, of the partitions that are ``there``: a file may name any number of others. ``on_damage`` is
    called for each file that cannot be read. Methods raise OSError."""

    def __init__(
        self,
        files: DataFiles,
        path: str,
        there: Container[TopicPartition],
        on_damage: Callable[[RepairStep], None],
    ) -> None:
        self._files = files
        self._path = path
        self._there = there
        self._owner = this_process()
        self._unwritten: set[str] = set()
        points = self._read(RECOVERY_POINT_CHECKPOINT, on_damage)
        self._knows_points = points is not None
        self._points = points or {}
        self._starts = self._read(LOG_START_OFFSET_CHECKPOINT, on_damage) or {}
        self._marks = self._read(HIGH_WATERMARK_CHECKPOINT, on_damage) or {}
        self.cleaner_offsets = self._read(CLEANER_OFFSET_CHECKPOINT, on_damage) or {}
        self._keeps_damaged_points = False

    def lacks(self, name: str) -> bool:
        """True when the file of a checkpoint was damaged when it was read, or its last write failed."""
        return name in self._unwritten

    def recovery_point(self, partition: TopicPartition) -> int | None:
        """Where a log was durable; None when the file was damaged: then nobody knows."""
        return self._points.get(partition, 0) if self._knows_points else None

    def log_start(self, partition: TopicPartition) -> int:
        """Where a log began, 0 when the file does not say."""
        return self._starts.get(partition, 0)

    def keep_only(self, closed: Iterable[TopicPartition]) -> None:
        """The other partitions are open: of these alone, what was read is written again."""
        kept = {each for each in closed if fits_checkpoint(each.topic)}
        self._points = {each: self._points.get(each, 0) for each in kept}
        self._starts = {each: self._starts[each] for each in kept & self._starts.keys()}
        self._marks = {each: self._marks[each] for each in kept & self._marks.keys()}
        # nothing else says that damage in what is not open lies below what was durable
        self._keeps_damaged_points = not self._knows_points and bool(kept)

    def forget(self, partition: TopicPartition) -> None:
        """A partition is deleted: nothing that was read of it is for the next one of its name."""
        for read in (self._points, self._starts, self._marks):
            read.pop(partition, None)
        known = self.cleaner_offsets.pop(partition, None) is not None
        if known or self.lacks(CLEANER_OFFSET_CHECKPOINT):
            self.write_cleaner_offsets()  # before another partition of this name begins at 0

    def lower_cleaner_offset(self, partition: TopicPartition, offset: int) -> None:
        """The log is cut at ``offset``: what is appended there is dirty."""
        if offset < self.cleaner_offsets.get(partition, 0):
            self.cleaner_offsets[partition] = offset
        elif not self.lacks(CLEANER_OFFSET_CHECKPOINT):
            return
        self.write_cleaner_offsets()

    def write(self, logs: Mapping[TopicPartition, PartitionLog]) -> None:
        """Write where each log is durable, visible, and begins."""
        if not self._keeps_damaged_points:
            points = {partition: log.recovery_point for partition, log in logs.items()}
            self._write(RECOVERY_POINT_CHECKPOINT, {**points, **self._points})
        marks = {partition: log.high_watermark for partition, log in logs.items()}
        self._write(HIGH_WATERMARK_CHECKPOINT, {**marks, **self._marks})
        self.write_log_starts(logs)
        if self.lacks(CLEANER_OFFSET_CHECKPOINT):
            self.write_cleaner_offsets()

    def write_log_starts(self, logs: Mapping[TopicPartition, PartitionLog]) -> None:
        """Write where each log begins, if that is not where its first segment does."""
        starts = {
            partition: log.log_start_offset
            for partition, log in logs.items()
            if log.log_start_offset > log.segments[0].base_offset
        }
        self._write(LOG_START_OFFSET_CHECKPOINT, {**starts, **self._starts})

    def write_cleaner_offsets(self) -> None:
        """Write where the cleaner goes on in each compacted log."""
        self._write(CLEANER_OFFSET_CHECKPOINT, self.cleaner_offsets)

    def _write(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        self._owner.check(self._path)
        self._unwritten.add(name)
        write_durably(self._files, self._files.join(self._path, name), format_offset_checkpoint(offsets))
        self._unwritten.discard(name)

    def _read(self, name: str, on_damage: Callable[[RepairStep], None]) -> dict[TopicPartition, int] | None:
        path = self._files.join(self._path, name)
        try:
            return parse_offset_checkpoint(self._files.read(path, CHECKPOINT_LIMIT), self._there)
        except FileNotFoundError:
            return {}
        except (CorruptFileError, OSError) as error:
            if not concerns_one_partition(error):
                raise
            reason = error.reason if isinstance(error, CorruptFileError) else error.strerror
            on_damage(RepairStep(path, "rebuilt", f"it is damaged, {reason}"))
            self._unwritten.add(name)
            return None

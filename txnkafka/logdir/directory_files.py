"""The files of one log directory beside its partitions: checkpoints, ``meta.properties``, the marker of a
clean stop, the lock.

Each may be missing; its facts are then unknown. A malformed file is a finding, and counts as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from txnkafka.errors import CorruptFileError
from txnkafka.logdir.finding import Finding
from txnkafka.logdir.partition_source import PartitionSource
from txnkafka.storage.formats import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOCK_FILE,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    parse_offset_checkpoint,
    parse_partition_metadata,
)
from txnkafka.storage.formats.checkpoint import parse_repair
from txnkafka.storage.formats.limits import CHECKPOINT_LIMIT, SMALL_FILE_LIMIT

if TYPE_CHECKING:
    from txnkafka.env import FileSystem
    from txnkafka.model import TopicPartition

CHECKPOINTS: Final = (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
ReadMethod = Literal["auto", "mmap", "pread"]
T = TypeVar("T")
_REWRITE = "run 'txnkafka repair': it writes the file again. Until then it is read as if it were missing"
_RESTORE = "restore the file: the broker does not start with it. It is read as if it were missing"


class DirectoryFiles:
    """The files in the log directory ``path``, with the offsets of the partitions ``wanted``. ``findings``
    gets the malformed files; ``threads`` and ``io`` are given to each partition's source."""

    def __init__(
        self,
        file_system: FileSystem,
        path: str,
        wanted: Iterable[TopicPartition],
        findings: list[Finding],
        *,
        threads: int,
        io: ReadMethod,
    ) -> None:
        self._file_system = file_system
        self._path = path
        self._findings = findings
        self._threads = threads
        self._io = io
        parse_offsets = partial(parse_offset_checkpoint, only=frozenset(wanted))
        self._log_starts = self._parse(LOG_START_OFFSET_CHECKPOINT, parse_offsets) or {}
        self._high_watermarks = self._parse(HIGH_WATERMARK_CHECKPOINT, parse_offsets) or {}
        self._recovery_points = self._parse(RECOVERY_POINT_CHECKPOINT, parse_offsets)
        self._cleaned = self._parse(CLEANER_OFFSET_CHECKPOINT, parse_offsets) or {}
        self._clean_shutdown = self._exists(CLEAN_SHUTDOWN_FILE)
        self._repair = self._read_repair() if self._clean_shutdown else None
        self._being_written = file_system.is_locked(file_system.join(path, LOCK_FILE))
        self.is_log_directory = self._exists(META_PROPERTIES)

    def source(self, path: str, topic_partition: TopicPartition) -> PartitionSource:
        """Return the source of a partition of the directory; ``path`` is the partition's directory."""
        metadata = self._parse(PARTITION_METADATA, parse_partition_metadata, path)
        recovery_points = self._recovery_points
        return PartitionSource(
            file_system=self._file_system,
            path=path,
            topic_partition=topic_partition,
            topic_id=metadata.topic_id if metadata else None,
            log_start_offset=self._log_starts.get(topic_partition),
            high_watermark=self._high_watermarks.get(topic_partition),
            recovery_point=None if recovery_points is None else recovery_points.get(topic_partition, 0),
            cleaned_to=self._cleaned.get(topic_partition, 0),
            clean_shutdown=self._clean_shutdown and not self._being_written,
            repair=self._repair,
            being_written=self._being_written,
            threads=self._threads,
            mapped=self._io == "mmap" or (self._io == "auto" and self._may_map),
        )

    @property
    def _may_map(self) -> bool:
        return self._file_system.maps_files and not self._being_written

    def _exists(self, name: str) -> bool:
        try:
            return self._file_system.exists(self._file_system.join(self._path, name))
        except OSError:
            return False  # a finding reports that the checkpoints could not be read either

    def _read_repair(self) -> bool | None:
        try:
            path = self._file_system.join(self._path, CLEAN_SHUTDOWN_FILE)
            return parse_repair(self._file_system.read(path, SMALL_FILE_LIMIT))
        except (OSError, CorruptFileError):
            return None  # only its existence matters

    def _parse(self, name: str, parse: Callable[[bytes], T], path: str | None = None) -> T | None:
        """Parse a small file; None if it is missing, or if it is malformed, which adds a finding."""
        full = self._file_system.join(path or self._path, name)
        try:
            if not self._file_system.exists(full):
                return None
            return parse(self._file_system.read(full, SMALL_FILE_LIMIT if path else CHECKPOINT_LIMIT))
        except (OSError, CorruptFileError) as error:
            reason = error.reason if isinstance(error, CorruptFileError) else str(error)
            text, remedy = f"not readable: {reason}", _RESTORE if path else _REWRITE
            self._findings.append(Finding(full, None, "warning", "bad-checkpoint", text, remedy))
            return None

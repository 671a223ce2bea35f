"""Chooses the time for judging a directory: the machine's time while a broker owns it, else the newest time
in it.

In yesterday's copy, all open transactions would be overdue by today's clock. So a directory that no broker
owns is judged by the times in it that come from brokers' clocks: updates in ``__transaction_state`` and end
markers. The modification times of checkpoint files also count, because an idle broker writes them every few
seconds; but copying or unpacking may set the time of every file, so they are trusted only if the newest log
file of ``__transaction_state`` is as old as the newest update in it. Timestamps of data never count: a
producer may write any timestamp.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from txnkafka.coordinator import TRANSACTION_STATE_TOPIC
from txnkafka.logdir.header_pass import segment_containing
from txnkafka.record.batch_header import ATTRIBUTE_CONTROL
from txnkafka.storage.formats import (
    CLEAN_SHUTDOWN_FILE,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)

if TYPE_CHECKING:
    from txnkafka.env import FileSystem
    from txnkafka.logdir.coordinator import CoordinatorView
    from txnkafka.logdir.log_view import LogView
    from txnkafka.logdir.partition_source import PartitionSource

AGREEMENT_MS = 60_000  # a log file's time is close to its last record's
UNKNOWN = -1
BROKER_FILES = (
    CLEAN_SHUTDOWN_FILE,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)


class Moment(NamedTuple):
    """A time in milliseconds, with its origin in words."""

    now_ms: int
    origin: str


class Directory(Protocol):
    """The part of a ``LogDir`` that a judgement needs."""

    @property
    def file_system(self) -> FileSystem:
        """The file system of its partitions."""

    @property
    def sources(self) -> list[PartitionSource]:
        """The sources of all its partitions."""

    @property
    def coordinator(self) -> CoordinatorView:
        """The state in its ``__transaction_state`` partitions."""


class DirectoryClock:
    """Returns the time for judging the partitions of ``log_dir``.

    ``machine_ms`` is the machine's time; ``override_ms`` is the time that the user chose, if any, with
    ``option``."""

    def __init__(
        self, log_dir: Directory, machine_ms: int, override_ms: int | None = None, *, option: str = "--now"
    ) -> None:
        self._log_dir = log_dir
        self._option = option
        self._machine_ms = machine_ms
        self._override_ms = override_ms
        self._newest_ms: int | None = None

    def at(self, view: LogView | None = None) -> Moment:
        """Return the time for one partition, whose end markers may be newer than all other times, or for the
        coordinator (None)."""
        if self._override_ms is not None:
            return Moment(self._override_ms, f"as {self._option} says")
        if self._is_being_written:
            return Moment(self._machine_ms, "by this machine's clock: a broker has locked the directory")
        newest = self._directory_ms()
        if view is not None and view.open_transactions:
            newest = max(newest, _newest_marker_ms(view))
        if newest == UNKNOWN:
            return Moment(self._machine_ms, "by this machine's clock: no broker's time is in this directory")
        return Moment(newest, f"the newest time in this directory; {self._option} overrides")

    @cached_property
    def _is_being_written(self) -> bool:
        return any(source.being_written for source in self._log_dir.sources)

    def _directory_ms(self) -> int:
        if self._newest_ms is None:
            written = self._log_dir.coordinator.newest_ms
            self._newest_ms = max(written, self._checkpoint_ms(written))
        return self._newest_ms

    def _checkpoint_ms(self, written_ms: int) -> int:
        """Return the newest time of a checkpoint file, if the file times are the broker's."""
        files, sources = self._log_dir.file_system, self._log_dir.sources
        logs = [source.path for source in sources if source.topic_partition.topic == TRANSACTION_STATE_TOPIC]
        log_ms = max((_newest_file_ms(files, path, (".log",)) for path in logs), default=UNKNOWN)
        if UNKNOWN in (log_ms, written_ms) or abs(log_ms - written_ms) > AGREEMENT_MS:
            return UNKNOWN
        # a repair rewrites the marker and the checkpoints
        directories = {files.split(source.path)[0] for source in sources if source.repair is None}
        return max((_newest_file_ms(files, path, BROKER_FILES) for path in directories), default=UNKNOWN)


def _newest_file_ms(files: FileSystem, path: str, endings: tuple[str, ...]) -> int:
    try:
        entries = files.list(path)
    except OSError:
        return UNKNOWN  # the parent may forbid listing; reading the partitions reports their errors
    return max((entry.modified_ms for entry in entries if entry.name.endswith(endings)), default=UNKNOWN)


def _newest_marker_ms(view: LogView) -> int:
    """Return the newest time of an end marker from the segment of the last stable offset on."""
    segments = view.segments
    first = segment_containing(segments, view.last_stable_offset) if segments else 0
    newest = UNKNOWN
    for segment in segments[first:]:
        for index in segment.indexes():
            for attributes, timestamp in zip(index.attributes, index.max_timestamp, strict=True):
                if attributes & ATTRIBUTE_CONTROL and timestamp > newest:
                    newest = timestamp
    return newest

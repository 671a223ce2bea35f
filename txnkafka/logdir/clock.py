"""The time by which a directory is judged: the machine's while a broker holds it, else its own newest time.

A copy of yesterday, judged by today's clock, has nothing but overdue transactions. So a directory that nobody
holds tells the time itself. What brokers wrote by their clocks counts: the updates in ``__transaction_state``
and the end markers. The times of checkpoint files count too, because an idle broker still writes them every
few seconds, but only where they are those of the broker: copying or unpacking may give every file the time of
that moment. They are believed when the newest log of ``__transaction_state`` is as old as what it says.
Timestamps of data never count: a producer may write any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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
    from txnkafka.logdir.directory import LogDir
    from txnkafka.logdir.partition import PartitionView

__all__ = ["DirectoryClock", "Moment"]

AGREEMENT_MS = 60_000  # a log's file is written when its last record is
UNKNOWN = -1
BROKER_FILES = (
    CLEAN_SHUTDOWN_FILE,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)


class Moment(NamedTuple):
    """A time in milliseconds, and in words where it comes from."""

    now_ms: int
    origin: str


class DirectoryClock:
    """Tells the time by which the partitions of ``log_dir`` are judged.

    ``machine_ms`` is the machine's time; ``override_ms`` is what somebody said the time is, if anybody did.
    """

    def __init__(self, log_dir: LogDir, machine_ms: int, override_ms: int | None = None) -> None:
        self._log_dir = log_dir
        self._machine_ms = machine_ms
        self._override_ms = override_ms
        self._newest_ms: int | None = None

    def at(self, view: PartitionView) -> Moment:
        """The time for one partition, whose end markers may be newer than what else is there."""
        if self._override_ms is not None:
            return Moment(self._override_ms, "as --now says")
        if any(source.being_written for source in self._log_dir.sources):
            return Moment(self._machine_ms, "by this machine's clock: a broker holds the directory")
        newest = max(self._directory_ms(), _newest_marker_ms(view) if view.open_transactions else UNKNOWN)
        if newest == UNKNOWN:
            return Moment(self._machine_ms, "by this machine's clock: no broker's time is in this directory")
        return Moment(newest, "the newest time in this directory; --now overrides")

    def _directory_ms(self) -> int:
        if self._newest_ms is None:
            written = self._log_dir.coordinator.newest_ms
            self._newest_ms = max(written, self._checkpoint_ms(written))
        return self._newest_ms

    def _checkpoint_ms(self, written_ms: int) -> int:
        """The newest time of a checkpoint file, unless the times of files are not those of the broker."""
        files, sources = self._log_dir.file_system, self._log_dir.sources
        logs = [each.path for each in sources if each.topic_partition.topic == TRANSACTION_STATE_TOPIC]
        log_ms = max((_newest_file_ms(files, path, (".log",)) for path in logs), default=UNKNOWN)
        if UNKNOWN in (log_ms, written_ms) or abs(log_ms - written_ms) > AGREEMENT_MS:
            return UNKNOWN
        directories = {files.split(each.path)[0] for each in sources}
        return max((_newest_file_ms(files, path, BROKER_FILES) for path in directories), default=UNKNOWN)


def _newest_file_ms(files: FileSystem, path: str, endings: tuple[str, ...]) -> int:
    try:
        entries = files.list(path)
    except OSError:
        return UNKNOWN  # of a parent that may not be listed; who reads the partitions hears of theirs
    return max((each.modified_ms for each in entries if each.name.endswith(endings)), default=UNKNOWN)


def _newest_marker_ms(view: PartitionView) -> int:
    """The newest time of an end marker from the segment of the last stable offset on."""
    segments = view.segments
    first = segment_containing(segments, view.last_stable_offset) if segments else 0
    newest = UNKNOWN
    for segment in segments[first:]:
        index = segment.scan()
        for attributes, timestamp in zip(index.attributes, index.max_timestamp, strict=True):
            if attributes & ATTRIBUTE_CONTROL:
                newest = max(newest, timestamp)
    return newest

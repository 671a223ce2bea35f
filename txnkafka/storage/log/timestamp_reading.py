"""Reads the ages of closed segments from their index files, for retention: this waits for the disk, and a
starting broker must do it for all its logs.

Source: ``LogSegment.largestTimestamp``, which reads the last entry of the ``.timeindex``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.errors import KafkaError
from txnkafka.model import NO_TIMESTAMP
from txnkafka.storage.log.segment_files import SegmentFiles
from txnkafka.storage.log.segment_indexes import read_indexes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txnkafka.env import DataFiles
    from txnkafka.storage.log.log_segment import LogSegment


def is_unread(segment: LogSegment) -> bool:
    """Return True if ``latest_timestamp`` must read the index files."""
    return not segment.is_loaded and segment.max_timestamp == NO_TIMESTAMP


class TimestampReading:
    """Work that reads the largest timestamps of segments in order, until one is at least ``young_ms``.
    Missing, damaged or unreadable files are left to ``latest_timestamp``, which rebuilds indexes, or
    raises."""

    def __init__(
        self, files: DataFiles, directory: str, segments: Iterable[LogSegment], young_ms: int
    ) -> None:
        self._wanted = [
            (segment, segment.size, SegmentFiles(files, directory, segment.base_offset))
            for segment in segments
        ]
        self._young_ms = young_ms
        self._found: list[tuple[LogSegment, int, int, int]] = []

    def run(self) -> None:
        """Read the timestamps."""
        for segment, size, files in self._wanted:
            try:
                indexes = read_indexes(files, segment.base_offset, size)
            except (KafkaError, OSError):
                return
            last = None if isinstance(indexes, str) else indexes[1].last()
            if last is None or last[0] <= 0:
                return
            self._found.append((segment, size, last[0], segment.base_offset + last[1]))
            if last[0] >= self._young_ms:
                return

    def finish(self, error: Exception | None) -> None:
        """Store the timestamps, except of segments that were truncated or loaded during ``run``."""
        for segment, size, timestamp, offset in self._found:
            if is_unread(segment) and segment.size == size:
                segment.max_timestamp, segment.max_timestamp_offset = timestamp, offset

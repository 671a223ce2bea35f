"""Determines how far the cleaner has processed a log.

The cleaner leaves gaps between segments, because cleaned segments keep their base offsets; a missing segment
leaves the same kind of gap. The cleaner proceeds from the log's beginning and records its progress in
``cleaner-offset-checkpoint``. Without that file, in a copy of one partition, gaps inside segments show the
progress: the cleaner has processed everything before them.
"""

from __future__ import annotations

from txnkafka.errors import KafkaError
from txnkafka.record.batch_header import MAGIC_0, MAGIC_2
from txnkafka.storage.formats.segment_reader import MAX_OPEN_SEGMENTS, SegmentReader


class Cleaning:
    """The cleaner's progress in a log with the given ``segments``."""

    def __init__(self, segments: list[SegmentReader]) -> None:
        self._segments = segments
        self._last_with_gaps: int | None = None

    def has_reached(self, i: int) -> bool:
        """Return True if the cleaner has processed everything before segment number ``i``. Scans headers
        without a checkpoint."""
        if self._segments[i].follows_cleaned:
            return True
        if self._last_with_gaps is None:
            self._last_with_gaps = self._find_gaps()
        return i <= self._last_with_gaps

    def _find_gaps(self) -> int:
        for i in range(len(self._segments) - 1, -1, -1):
            try:
                if _has_gaps(self._segments[i]):
                    return i
            except KafkaError:  # reading this segment reports the error
                continue
            finally:
                if len(self._segments) > MAX_OPEN_SEGMENTS:
                    self._segments[i].close()
        return -1


def _has_gaps(segment: SegmentReader) -> bool:
    next_offset = segment.base_offset
    for _, _, index in segment.windows():
        # a compressed wrapper of magic 0 or 1 does not show its contents in the header
        if min(index.magic, default=MAGIC_0) == MAGIC_2 and index.has_gaps(next_offset):
            return True
        next_offset = index.last_offset[-1] + 1 if len(index) else next_offset
    return False

"""Caches the file positions of the offsets where reads end: a fetch up to such an offset needs no scan, and
counting the bytes between two needs no IO.

The high watermark's position was the log end when the flush began; the first unstable offset's position was
the log end before the transaction's first batch. After recovery or a truncation the positions are unknown,
looked up in the log once, and cached.

Source: ``LogOffsetMetadata``, ``UnifiedLog.fetchOffsetSnapshot``, ``ProducerStateManager``.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.model import CompletedTxn
    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.log.log_segments import LogSegments


class LogOffsetMetadata(NamedTuple):
    """An offset and its place: in the segment with ``segment_base_offset``, the ``position`` of the first
    batch that ends at or after ``offset``. At the log end, ``position`` is the size of the last segment."""

    offset: int
    segment_base_offset: int
    position: int


class OffsetPositions:
    """The known positions in ``segments``. The log reports every change of the offsets; unknown positions are
    looked up. Methods that return a position raise CorruptRecordError and OSError."""

    __slots__ = (
        "_begun", "_ended", "_flush_end", "_high_watermark", "_log_start", "_reached", "_segments",
        "_unstable", "waited_at",
    )  # fmt: skip

    def __init__(self, segments: LogSegments) -> None:
        self._segments = segments
        self.clear()

    def clear(self) -> None:
        """Forget all positions: the log was truncated, or its segments were rewritten."""
        self._flush_end: LogOffsetMetadata | None = None  # log end at the start of the last flush
        self._reached: LogOffsetMetadata | None = None  # position of the high watermark after its last move
        self.waited_at: LogOffsetMetadata | None = None  # the previous high watermark: consumers wait there
        self._high_watermark: LogOffsetMetadata | None = None
        self._unstable: LogOffsetMetadata | None = None  # cached for the last request
        self._log_start: tuple[int, LogOffsetMetadata] | None = None  # cached for a log start
        # starts of transactions that are open, or ended above the high watermark, by first offset
        self._begun: dict[int, LogOffsetMetadata] = {}
        self._ended: deque[tuple[int, int]] = deque()  # last and first offsets of ended transactions

    # Changes of offsets

    def on_transaction(self, begin: LogOffsetMetadata) -> None:
        """Record that a transaction begins with the batch at ``begin``."""
        self._begun[begin.offset] = begin

    def on_completed(self, completed: CompletedTxn) -> None:
        """Record that the marker of a transaction was appended."""
        if completed.first_offset in self._begun:
            self._ended.append((completed.last_offset, completed.first_offset))

    def on_flush(self, log_end: LogOffsetMetadata) -> None:
        """Record that a flush of all data below the log end begins."""
        self._flush_end = log_end

    def on_high_watermark(self, offset: int) -> None:
        """Record that the high watermark has moved to ``offset``."""
        end = self._flush_end
        self.waited_at, self._reached = self._reached, end if end and end.offset == offset else None
        while self._ended and self._ended[0][0] < offset:
            del self._begun[self._ended.popleft()[1]]

    def on_roll(self, base_offset: int) -> None:
        """Record that a new segment begins at the log end: ``base_offset`` is now at its position 0."""
        rolled = LogOffsetMetadata(base_offset, base_offset, 0)
        if self._flush_end is not None and self._flush_end.offset == base_offset:
            self._flush_end = rolled
        if self._high_watermark is not None and self._high_watermark.offset == base_offset:
            self._high_watermark = rolled
        if self._reached is not None and self._reached.offset == base_offset:
            self._reached = rolled
        if self._log_start is not None and self._log_start[1].offset == base_offset:
            self._log_start = None

    # Positions of offsets

    def high_watermark(self, offset: int) -> LogOffsetMetadata:
        """Return the position of the high watermark, which is ``offset``."""
        known = self._high_watermark
        if known is None or known.offset != offset:
            known = self._flush_end
            if known is None or known.offset != offset:
                known = self.look_up(offset)
            self._high_watermark = known
        return known

    def first_unstable(self, offset: int) -> LogOffsetMetadata:
        """Return the position of the first unstable offset, which is ``offset``."""
        known = self._unstable
        if known is None or known.offset != offset:
            known = self._unstable = self._begun.get(offset) or self.look_up(offset)
        return known

    def log_start(self, offset: int) -> LogOffsetMetadata:
        """Return offset and position of the batch that contains the log start, which is ``offset``. If no
        batch contains it, the offset is the log start itself."""
        known = self._log_start
        if known is None or known[0] != offset:
            _, segment, batch = self._segments.locate(offset)
            position = segment.size if batch is None else batch.position
            base_offset = offset if batch is None else min(batch.base_offset, offset)
            known = self._log_start = offset, LogOffsetMetadata(base_offset, segment.base_offset, position)
        return known[1]

    def look_up(self, offset: int) -> LogOffsetMetadata:
        """Look up the position of an offset in the log."""
        _, segment, batch = self._segments.locate(offset)
        return LogOffsetMetadata(
            offset, segment.base_offset, segment.size if batch is None else batch.position
        )


def bytes_between(segments: Sequence[LogSegment], begin: LogOffsetMetadata, end: LogOffsetMetadata) -> int:
    """Return the number of log bytes from ``begin`` to ``end``; 0 unless ``begin`` is before ``end``. If the
    segment of ``begin`` was deleted, it is not counted (``LogOffsetMetadata.positionDiff``, which compares
    positions of one segment only)."""
    if begin.segment_base_offset == end.segment_base_offset:
        return max(0, end.position - begin.position)
    low, high = begin.segment_base_offset, end.segment_base_offset
    between = sum(segment.size for segment in segments if low <= segment.base_offset < high)
    has_begin = any(segment.base_offset == low for segment in segments)
    return max(0, between + end.position - (begin.position if has_begin else 0)) if low < high else 0

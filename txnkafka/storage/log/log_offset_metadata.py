"""Positions of the offsets where readers stop: a fetch up to one of them needs no scan, and the number of
bytes between two of them no IO.

The high watermark has the position that the log end had when the flush began; the first unstable offset the
position that the log end had before the transaction's first batch. What was not seen to move, after recovery
or a truncation, is looked up in the log once and kept.

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

__all__ = ["LogOffsetMetadata", "OffsetPositions", "bytes_between"]


class LogOffsetMetadata(NamedTuple):
    """An offset and where it is: in the segment with ``segment_base_offset``, the ``position`` of the first
    batch that ends at ``offset`` or behind it. At the log end that is the size of the last segment."""

    offset: int
    segment_base_offset: int
    position: int


class OffsetPositions:
    """The positions in ``segments`` that are known. The log says what moves; the others are looked up.
    Methods that return a position raise CorruptRecordError and OSError."""

    __slots__ = (
        "_begun", "_ended", "_flush_end", "_high_watermark", "_log_start", "_reached", "_segments",
        "_unstable", "waited_at",
    )  # fmt: skip

    def __init__(self, segments: LogSegments) -> None:
        self._segments = segments
        self.clear()

    def clear(self) -> None:
        """Forget all positions: the log was truncated, or its segments were rewritten."""
        self._flush_end: LogOffsetMetadata | None = None  # of the last flush that began
        self._reached: LogOffsetMetadata | None = None  # by the high watermark when it moved last
        self.waited_at: LogOffsetMetadata | None = None  # the high watermark before: consumers wait there
        self._high_watermark: LogOffsetMetadata | None = None
        self._unstable: LogOffsetMetadata | None = None  # the one asked for last
        self._log_start: tuple[int, LogOffsetMetadata] | None = None  # by the log start it was asked for
        # where transactions began that are open, or ended above the high watermark, by first offset
        self._begun: dict[int, LogOffsetMetadata] = {}
        self._ended: deque[tuple[int, int]] = deque()  # of those that ended, last and first offset

    # What moves

    def on_transaction(self, begin: LogOffsetMetadata) -> None:
        """A transaction begins with the batch there."""
        self._begun[begin.offset] = begin

    def on_completed(self, completed: CompletedTxn) -> None:
        """The marker of a transaction was appended."""
        if completed.first_offset in self._begun:
            self._ended.append((completed.last_offset, completed.first_offset))

    def on_flush(self, log_end: LogOffsetMetadata) -> None:
        """A flush of everything below the log end begins."""
        self._flush_end = log_end

    def on_high_watermark(self, offset: int) -> None:
        """The high watermark is ``offset`` now."""
        end = self._flush_end
        self.waited_at, self._reached = self._reached, end if end and end.offset == offset else None
        while self._ended and self._ended[0][0] < offset:
            del self._begun[self._ended.popleft()[1]]

    def on_roll(self, base_offset: int) -> None:
        """A segment begins at the log end, ``base_offset``, which is at its position 0 from now on."""
        rolled = LogOffsetMetadata(base_offset, base_offset, 0)
        if self._flush_end is not None and self._flush_end.offset == base_offset:
            self._flush_end = rolled
        if self._high_watermark is not None and self._high_watermark.offset == base_offset:
            self._high_watermark = rolled
        if self._reached is not None and self._reached.offset == base_offset:
            self._reached = rolled
        if self._log_start is not None and self._log_start[1].offset == base_offset:
            self._log_start = None

    # Where it is

    def high_watermark(self, offset: int) -> LogOffsetMetadata:
        """Where the high watermark is; ``offset`` is its offset."""
        known = self._high_watermark
        if known is None or known.offset != offset:
            known = self._flush_end
            if known is None or known.offset != offset:
                known = self.look_up(offset)
            self._high_watermark = known
        return known

    def first_unstable(self, offset: int) -> LogOffsetMetadata:
        """Where the first unstable offset is; ``offset`` is that offset."""
        known = self._unstable
        if known is None or known.offset != offset:
            known = self._unstable = self._begun.get(offset) or self.look_up(offset)
        return known

    def log_start(self, offset: int) -> LogOffsetMetadata:
        """Where the batch begins that holds the log start; ``offset`` is the log start. Where no batch holds
        it, the offset is the log start itself."""
        known = self._log_start
        if known is None or known[0] != offset:
            _, segment, batch = self._segments.locate(offset)
            position = segment.size if batch is None else batch.position
            base_offset = offset if batch is None else min(batch.base_offset, offset)
            known = self._log_start = offset, LogOffsetMetadata(base_offset, segment.base_offset, position)
        return known[1]

    def look_up(self, offset: int) -> LogOffsetMetadata:
        """Where an offset is that is not kept: looked up in the log."""
        _, segment, batch = self._segments.locate(offset)
        return LogOffsetMetadata(
            offset, segment.base_offset, segment.size if batch is None else batch.position
        )


def bytes_between(
    segments: Sequence[LogSegment], begin: LogOffsetMetadata, end: LogOffsetMetadata
) -> int:
    """Bytes of log from ``begin`` to ``end``; 0 where ``begin`` is not before ``end``. A segment of ``begin``
    that is not there any more counts for nothing (``LogOffsetMetadata.positionDiff``, which knows one segment
    only)."""
    if begin.segment_base_offset == end.segment_base_offset:
        return max(0, end.position - begin.position)
    low, high = begin.segment_base_offset, end.segment_base_offset
    between = sum(segment.size for segment in segments if low <= segment.base_offset < high)
    has_begin = any(segment.base_offset == low for segment in segments)
    return max(0, between + end.position - (begin.position if has_begin else 0)) if low < high else 0

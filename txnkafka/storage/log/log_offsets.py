"""The offsets of one log in ascending order: log start, last stable offset, high watermark, log end.

Source: ``UnifiedLog``: ``logStartOffset``, ``lastStableOffset``, ``highWatermark``, ``logEndOffset``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka._core.log_writer import LogEnds
from txnkafka.storage.log.log_offset_metadata import OffsetPositions

if TYPE_CHECKING:
    from txnkafka._core.producer_table import ProducerTable
    from txnkafka.storage.log.log_offset_metadata import LogOffsetMetadata
    from txnkafka.storage.log.log_segments import LogSegments


class LogOffsets(LogEnds):
    """``log_start <= last_stable <= high_watermark <= log_end``, except that the last stable offset may be
    below the log start by a part of a batch, as in Kafka. ``positions`` has their places in ``segments``.

    Raises ValueError for a change that violates this order."""

    __slots__ = ("_producers", "positions")

    def __init__(
        self, segments: LogSegments, producers: ProducerTable, *, log_start: int, log_end: int
    ) -> None:
        self._producers = producers
        self.positions = OffsetPositions(segments)
        self.move(log_start, log_end, log_end)

    def move(self, log_start: int, high_watermark: int, log_end: int) -> None:
        """Set all offsets."""
        if not 0 <= log_start <= high_watermark <= log_end:
            raise ValueError(
                f"log start {log_start}, high watermark {high_watermark} and log end {log_end} are not in "
                "order"
            )
        self.log_start, self.high_watermark, self.log_end = log_start, high_watermark, log_end

    def advance_high_watermark(self, offset: int) -> None:
        """Make batches below ``offset``, limited to the log end, visible to readers."""
        offset = min(offset, self.log_end)
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.positions.on_high_watermark(offset)
            self._producers.on_high_watermark(offset)

    @property
    def last_stable(self) -> int:
        """The first offset of the oldest undecided transaction, or the high watermark."""
        first, end = self._producers.first_unstable_offset, self.high_watermark
        if first is None or first >= end:
            return end
        if first < self.log_start:
            first = self.positions.log_start(self.log_start).offset
        return min(first, end)

    @property
    def last_stable_metadata(self) -> LogOffsetMetadata:
        """The last stable offset and its position. Raises CorruptRecordError and OSError when the position
        has to be looked up."""
        first, end = self._producers.first_unstable_offset, self.high_watermark
        if first is not None and first < end:
            positions = self.positions
            is_below = first < self.log_start
            stable = positions.log_start(self.log_start) if is_below else positions.first_unstable(first)
            if stable.offset < end:
                return stable
        return self.positions.high_watermark(end)

    @property
    def high_watermark_metadata(self) -> LogOffsetMetadata:
        """The high watermark and its position. Raises CorruptRecordError and OSError when the position has to
        be looked up."""
        return self.positions.high_watermark(self.high_watermark)

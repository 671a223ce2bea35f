"""The state at the end of a segment and its indexes: changed by appends, restored after a failed write."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from txnkafka.storage.log.log_segment import LogSegment


class SegmentTail(NamedTuple):
    """The fields of ``LogSegment`` that appends change, and the number of entries in its indexes."""

    size: int
    rolling_timestamp: int | None
    max_timestamp: int
    max_timestamp_offset: int
    bytes_since_entry: int
    offset_entries: int
    time_entries: int

    @classmethod
    def of(cls, segment: LogSegment) -> SegmentTail:
        """Copy the state of a segment before an append."""
        return cls(
            segment.size, segment.rolling_timestamp, segment.max_timestamp, segment.max_timestamp_offset,
            segment.bytes_since_entry, len(segment.offset_index), len(segment.time_index),
        )  # fmt: skip

    def restore(self, segment: LogSegment) -> None:
        """Restore the copied state: later appends were not written."""
        segment.size, segment.rolling_timestamp = self.size, self.rolling_timestamp
        segment.max_timestamp, segment.max_timestamp_offset = self.max_timestamp, self.max_timestamp_offset
        segment.bytes_since_entry = self.bytes_since_entry
        segment.offset_index.keep(self.offset_entries)
        segment.time_index.keep(self.time_entries)

"""The end of a segment, its indexes included: what appends change, and what a failed write restores."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SegmentTail"]


class SegmentTail(NamedTuple):
    """Fields of ``LogSegment``, and how many entries its indexes have."""

    size: int
    rolling_timestamp: int | None
    max_timestamp: int
    max_timestamp_offset: int
    bytes_since_entry: int
    offset_entries: int
    time_entries: int

"""Segments of one log, ascending.

Source: ``LogSegments``.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.storage.log.log_segment import LogSegment

__all__ = ["segment_number"]


def segment_number(segments: Sequence[LogSegment], offset: int) -> int:
    """Number of the segment that would contain ``offset``; 0 for an offset below all of them."""
    return max(0, bisect_right(segments, offset, key=_base_offset) - 1)


def _base_offset(segment: LogSegment) -> int:
    return segment.base_offset

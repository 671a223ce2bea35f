"""One walk over the batch headers of consecutive segments, following transactions on the way.

What is wrong with the order of batches or of segments is settled here, once, for everybody who looks at
headers: batches whose offsets cannot be right count for nothing, and where a segment is missing,
transactions may have lost their markers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from txnkafka._core.read_committed import TransactionScan
from txnkafka._core.scan import BatchIndex
from txnkafka.bounds import MAX_INDEXED_BATCHES
from txnkafka.logdir.cleaning import Cleaning
from txnkafka.storage.formats.order import NO_LIMIT, misplaced_batches
from txnkafka.storage.formats.segment_reader import MAX_OPEN_SEGMENTS, SegmentReader

__all__ = ["SegmentHeaders", "header_pass", "segment_containing"]


@dataclass(frozen=True, slots=True)
class SegmentHeaders:
    """The headers of one segment, or of a part of one that has very many batches. ``next_offset`` is where
    the log ended before it, ``limit`` where the segment must end, ``hole`` whether offsets are missing in
    front of it."""

    segment: SegmentReader
    index: BatchIndex
    misplaced: list[int]
    next_offset: int
    limit: int
    hole: bool

    def end_before(self, i: int) -> int:
        """Where the log ends before batch number ``i``, misplaced batches left out."""
        ends = (self.index.last_offset[k] + 1 for k in range(i - 1, -1, -1) if k not in self.misplaced)
        return max(self.next_offset, next(ends, self.next_offset))

    def begin_after(self, i: int) -> int:
        """Where the first batch behind number ``i`` that is in its place begins."""
        return next(
            (self.index.base_offset[k] for k in range(i + 1, len(self.index)) if k not in self.misplaced),
            self.limit,
        )


def segment_containing(segments: list[SegmentReader], offset: int) -> int:
    """Number of the last segment whose base offset is not above ``offset``."""
    return max((i for i, segment in enumerate(segments) if segment.base_offset <= offset), default=0)


def header_pass(segments: list[SegmentReader], first: int, scan: TransactionScan) -> Iterator[SegmentHeaders]:
    """Feed ``scan`` with segment after segment from number ``first`` on, those with very many batches part by
    part; each is yielded when it was fed. Indexes are remembered up to MAX_INDEXED_BATCHES in all."""
    next_offset = segments[first].base_offset if segments else 0
    cleaning, has_gaps = Cleaning(segments), False
    for i in range(first, len(segments)):
        segment = segments[i]
        hole = segment.base_offset > next_offset and not has_gaps and not cleaning.has_reached(i)
        if hole:
            scan.hole()
        limit = segments[i + 1].base_offset if i + 1 < len(segments) else NO_LIMIT
        has_gaps = False
        for index in segment.indexes():
            expected = max(next_offset, segment.base_offset)
            misplaced = misplaced_batches(index, expected, limit)
            start = 0
            for stop in (*misplaced, len(index)):
                scan.feed(index, start, stop)
                start = stop + 1
            yield SegmentHeaders(segment, index, misplaced, expected, limit, hole)
            next_offset = max(expected, scan.next_offset)
            has_gaps = has_gaps or index.has_gaps(expected)
            hole = False
        if len(segments) > MAX_OPEN_SEGMENTS or _too_many_remembered(segments):
            segment.close()


def _too_many_remembered(segments: list[SegmentReader]) -> bool:
    return sum(segment.remembered for segment in segments) > MAX_INDEXED_BATCHES

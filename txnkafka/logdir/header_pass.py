"""One pass over the batch headers of consecutive segments, following transactions.

The pass handles wrong orders of batches or segments for all readers of headers: it ignores batches with
impossible offsets, and reports a hole where a segment or a marker is missing, because transactions may have
lost their markers there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from txnkafka._core.read_committed import TransactionScan
from txnkafka._core.scan import BatchIndex
from txnkafka.bounds import MAX_INDEXED_BATCHES
from txnkafka.logdir.cleaning import Cleaning
from txnkafka.logdir.header_point import (
    CannotResumeError,
    HeaderPoint,
    PassMark,
    check_follows,
    segment_of,
)
from txnkafka.record.batch_header import ATTRIBUTE_CONTROL
from txnkafka.storage.formats.order import NO_LIMIT, misplaced_batches
from txnkafka.storage.formats.segment_reader import MAX_OPEN_SEGMENTS, SegmentReader


class HeaderScan(Protocol):
    """Protocol of a consumer of headers: a TransactionScan, or another counter."""

    @property
    def next_offset(self) -> int:
        """The offset after the last batch fed."""
        ...

    def hole(self) -> None:
        """Record that markers may be missing here."""
        ...

    def feed(self, index: BatchIndex, start: int = 0, stop: int | None = None) -> None:
        """Process the batches [start, stop) of ``index``."""
        ...


@dataclass(frozen=True, slots=True)
class SegmentHeaders:
    """The headers of one segment, or of a part of a segment with very many batches. ``next_offset`` is the
    end offset of the log before it, ``limit`` the maximum end offset of the segment; ``hole``: offsets are
    missing before it."""

    segment: SegmentReader
    index: BatchIndex
    misplaced: list[int]
    next_offset: int
    limit: int
    hole: bool

    @property
    def sound_end(self) -> int:
        """Return the position after the last batch that is not misplaced."""
        last = len(self.index)
        while last and last - 1 in self.misplaced:
            last -= 1
        return self.index.position[last] if last < len(self.index) else self.index.end_position

    def end_before(self, i: int) -> int:
        """Return the end offset of the log before batch number ``i``, without misplaced batches."""
        ends = (self.index.last_offset[k] + 1 for k in range(i - 1, -1, -1) if k not in self.misplaced)
        return max(self.next_offset, next(ends, self.next_offset))

    def begin_after(self, i: int) -> int:
        """Return the base offset of the first batch after number ``i`` that is not misplaced."""
        return next(
            (self.index.base_offset[k] for k in range(i + 1, len(self.index)) if k not in self.misplaced),
            self.limit,
        )


def segment_containing(segments: list[SegmentReader], offset: int) -> int:
    """Return the number of the last segment with a base offset at or below ``offset``."""
    return max((i for i, segment in enumerate(segments) if segment.base_offset <= offset), default=0)


def header_pass(
    segments: list[SegmentReader],
    first: int,
    scan: HeaderScan,
    begin: HeaderPoint | None = None,
    mark: PassMark | None = None,
) -> Iterator[SegmentHeaders]:
    """Feed ``scan`` with the segments from number ``first`` on, in parts if a segment has very many batches,
    and yield each part afterwards. Keeps the indexes of up to MAX_INDEXED_BATCHES batches. With ``mark``,
    ``scan`` is a TransactionScan.

    ``begin`` is the point in segment ``first`` where an earlier pass stopped and this one continues; ``mark``
    is set when the pass reaches its offset. Raises CannotResumeError if the log contradicts the earlier pass.
    """
    next_offset = segments[first].base_offset if segments else 0
    cleaning, has_gaps = Cleaning(segments), False
    if begin is not None:
        _check_hole(segments, begin, cleaning)
        next_offset = begin.next_offset
    position = 0
    for i in range(first, len(segments)):
        segment = segments[i]
        resumed = begin if i == first else None
        hole = resumed is None and (
            segment.base_offset > next_offset and not has_gaps and not cleaning.has_reached(i)
        )
        if hole:
            scan.hole()
            if mark is not None:
                mark.hole(segment.base_offset)
        limit = segments[i + 1].base_offset if i + 1 < len(segments) else NO_LIMIT
        has_gaps = resumed is not None and resumed.has_gaps
        position = 0 if resumed is None else resumed.position
        for index in segment.indexes_from(position):
            if resumed is not None and position == resumed.position:
                check_follows(segment, index, next_offset)
            expected = max(next_offset, segment.base_offset)
            misplaced = misplaced_batches(index, expected, limit, segment.is_intact)
            headers = SegmentHeaders(segment, index, misplaced, expected, limit, hole)
            has_gaps = has_gaps or index.has_gaps(expected)
            _feed_part(headers, scan, mark, has_gaps=has_gaps)
            yield headers
            next_offset, position, hole = max(expected, scan.next_offset), headers.sound_end, False
        if len(segments) > MAX_OPEN_SEGMENTS or _too_many_remembered(segments):
            segment.close()
    if mark is not None and not mark.is_set and segments:
        next_offset = max(next_offset, segments[-1].base_offset)
        assert isinstance(scan, TransactionScan)
        mark.set(segments[-1], position, next_offset, scan, has_gaps=has_gaps)


def _feed_part(headers: SegmentHeaders, scan: HeaderScan, mark: PassMark | None, *, has_gaps: bool) -> None:
    """Feed ``scan`` with one index, and set ``mark`` if its offset is in the index."""
    index, misplaced = headers.index, headers.misplaced
    split = None if mark is None else mark.split(index, misplaced, scan.next_offset)
    if mark is not None and split is not None:
        _feed(scan, headers, 0, split)
        mark.passed(headers.segment, index, split, misplaced)
        assert isinstance(scan, TransactionScan)
        at = index.position[split] if split < len(index) else index.end_position
        mark.set(headers.segment, at, max(headers.next_offset, scan.next_offset), scan, has_gaps=has_gaps)
    _feed(scan, headers, split or 0, len(index))
    if index.stop != "end":
        scan.hole()
    if mark is not None:
        mark.passed(headers.segment, index, len(index), misplaced)


def _feed(scan: HeaderScan, headers: SegmentHeaders, start: int, stop: int) -> None:
    """Feed ``scan`` with the batches [start, stop), without misplaced ones."""
    index = headers.index
    for end in (*(i for i in headers.misplaced if start <= i < stop), stop):
        scan.feed(index, start, end)
        if end < stop and index.attributes[end] & ATTRIBUTE_CONTROL:
            scan.hole()
        start = end + 1


def _check_hole(segments: list[SegmentReader], begin: HeaderPoint, cleaning: Cleaning) -> None:
    """Raise CannotResumeError if the cleaner made the gap that the earlier pass treated as missing
    segments."""
    if begin.hole is not None and cleaning.has_reached(segment_of(segments, begin.hole)):
        raise CannotResumeError(f"the cleaner has been at the segment at offset {begin.hole}")


def _too_many_remembered(segments: list[SegmentReader]) -> bool:
    return sum(segment.remembered for segment in segments) > MAX_INDEXED_BATCHES

"""The ordered segments of one open log, and the lookup of offsets in them.

Source: ``LogSegments``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from txnkafka.storage.log.batch_position import BatchPosition
    from txnkafka.storage.log.log_segment import LogSegment

_KEPT_INDEXES = 8  # number of closed segments with indexes in memory


class LogSegments(Sequence["LogSegment"]):
    """At least one segment, ascending by base offset. Appends go to ``active``, the last one."""

    __slots__ = ("_looked_up", "_segments", "active")

    def __init__(self, segments: Iterable[LogSegment]) -> None:
        self._segments = list(segments)
        self.active = self._segments[-1]
        self._looked_up: list[LogSegment] = []  # closed segments whose indexes are in memory

    def __len__(self) -> int:
        return len(self._segments)

    @overload
    def __getitem__(self, number: int) -> LogSegment: ...
    @overload
    def __getitem__(self, number: slice) -> list[LogSegment]: ...
    def __getitem__(self, number: int | slice) -> LogSegment | list[LogSegment]:
        return self._segments[number]

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._segments)

    # Looking up

    def number_of(self, offset: int) -> int:
        """Number of the segment that would contain ``offset``; 0 for an offset below all of them."""
        return segment_number(self._segments, offset)

    def locate(self, offset: int) -> tuple[int, LogSegment, BatchPosition | None]:
        """Find the first batch that ends at or after ``offset``; returns the number of its segment, the
        segment, and the batch; at the log end the active segment and None. Raises CorruptRecordError and
        OSError."""
        active = self.active
        last = len(self._segments) - 1
        if offset < active.base_offset:
            for number in range(self.number_of(offset), last):
                batch = self.find(number, offset)
                if batch is not None:
                    return number, self._segments[number], batch
        return last, active, active.find(offset)

    def find(self, number: int, offset: int) -> BatchPosition | None:
        """Find the first batch in a segment that ends at or after ``offset``. The indexes of the last eight
        closed segments that were looked up stay in memory. Raises CorruptRecordError and OSError."""
        segment = self._segments[number]
        if segment is not self.active and segment not in self._looked_up:
            self._looked_up.append(segment)
            oldest = self._looked_up.pop(0) if len(self._looked_up) > _KEPT_INDEXES else self.active
            if oldest is not self.active:  # a truncation may have made it active
                oldest.unload()
        return segment.find(offset)

    # Changing

    def append(self, segment: LogSegment) -> None:
        """Add a segment, which becomes the active one."""
        self._segments.append(segment)
        self.active = segment

    def take_first(self, count: int) -> list[LogSegment]:
        """Remove the first ``count`` segments, not all, and return them."""
        taken = self._segments[:count]
        self._forget(taken)
        del self._segments[:count]
        return taken

    def take_from(self, number: int, *, then: LogSegment | None = None) -> list[LogSegment]:
        """Remove the segments from ``number`` on, and return them; ``then`` is added to the rest, whose last
        segment becomes active. Raises ValueError when no segment would remain."""
        taken = self._segments[number:]
        left = self._segments[:number] if then is None else [*self._segments[:number], then]
        if not left:
            raise ValueError("a log has at least one segment")
        self._forget(taken)
        self._segments, self.active = left, left[-1]
        return taken

    def replace(self, replaced: Sequence[LogSegment], by: LogSegment) -> None:
        """Replace consecutive segments by one closed segment."""
        first = self._segments.index(replaced[0])
        self._forget(replaced)
        self._segments[first : first + len(replaced)] = [by]

    def _forget(self, removed: Sequence[LogSegment]) -> None:
        self._looked_up = [segment for segment in self._looked_up if segment not in removed]


def segment_number(segments: Sequence[LogSegment], offset: int) -> int:
    """Number of the segment that would contain ``offset``; 0 for an offset below all of them."""
    return max(0, bisect_right(segments, offset, key=_base_offset) - 1)


def _base_offset(segment: LogSegment) -> int:
    return segment.base_offset

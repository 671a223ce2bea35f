"""A place in a log where a pass over its headers stopped, and where a later pass continues.

A point is small: its position, the open transactions, and the facts needed to judge missing offsets, without
ended transactions. It is pure data; before a pass continues, it compares the last batch before the point to
check that the log is still the same.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from txnkafka._core.read_committed import OpenRange, TransactionScan
from txnkafka.errors import LogDirError
from txnkafka.record.batch_header import CRC, HEADER_SIZE, LEGACY_CRC
from txnkafka.storage.formats.order import NO_LIMIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka._core.scan import BatchIndex
    from txnkafka.storage.formats.segment_reader import SegmentReader


class CannotResumeError(LogDirError):
    """Raised when the log differs from the planned one, or was truncated, compacted or deleted where the plan
    stopped. Plan it from the beginning."""


class LastBatch(NamedTuple):
    """The last batch before a point: the base offset of its segment, its position, and its header, whose CRC
    identifies the rest of the batch."""

    segment: int
    position: int
    header: bytes


class HeaderPoint(NamedTuple):
    """A batch boundary: base offset of the segment, position in it, and the end of the offsets before it.

    ``open_ranges`` are the transactions open at the point. ``has_gaps``: offsets are missing in the segment
    before the point. ``hole`` is the base offset of the first segment after missing segments."""

    segment: int
    position: int
    next_offset: int
    has_gaps: bool
    open_ranges: tuple[OpenRange, ...]
    hole: int | None
    last_batch: LastBatch | None

    def check(self, segments: Sequence[SegmentReader], deleted_to: int) -> None:
        """Raise CannotResumeError if the log before the point has changed. Offsets below ``deleted_to`` may
        be deleted, unless an open transaction began there."""
        i = segment_of(segments, self.segment)
        segment = segments[i]
        if segment.size < self.position:
            raise CannotResumeError(f"{segment.path} was truncated: it ends before position {self.position}")
        if i + 1 < len(segments) and segments[i + 1].base_offset < self.next_offset:
            raise CannotResumeError(f"{segments[i + 1].path} begins below offset {self.next_offset}")
        if any(transaction.first_offset < deleted_to for transaction in self.open_ranges):
            raise CannotResumeError(f"{segment.path}: the beginning of an open transaction was deleted")
        if self.last_batch is not None:
            base_offset, position, header = self.last_batch
            last = segments[segment_of(segments, base_offset)]
            if _header_at(last, position, len(header)) != header:
                raise CannotResumeError(f"{last.path} has another batch at position {position} than before")


class PassMark:
    """Records the point where a pass reaches ``offset``, or the end of the log, and the number of
    transactions ``ended`` before it."""

    def __init__(self, offset: int = NO_LIMIT, begin: HeaderPoint | None = None) -> None:
        self.is_set = False
        self.ended = 0
        self._offset = offset
        self._point: HeaderPoint | None = None
        self._hole = None if begin is None else begin.hole
        self._last = None if begin is None else begin.last_batch
        self._last_at: tuple[SegmentReader, int, int, int] | None = None

    @property
    def point(self) -> HeaderPoint | None:
        """Return the point once it is set. Reads the header of the batch before it; raises CannotResumeError
        if that batch has changed since the pass."""
        if self._point is not None and self._last_at is not None:
            last, position, size, crc = self._last_at
            header = _header_at(last, position, size)
            if crc not in (_crc_in(header, CRC), _crc_in(header, LEGACY_CRC)):
                raise CannotResumeError(f"{last.path} changed at position {position} while it was planned")
            batch = LastBatch(last.base_offset, position, header)
            self._point, self._last_at = self._point._replace(last_batch=batch), None
        return self._point

    def hole(self, base_offset: int) -> None:
        """Record that segments are missing before the segment with this base offset."""
        if self._hole is None and not self.is_set:
            self._hole = base_offset

    def split(self, index: BatchIndex, misplaced: Sequence[int], next_offset: int) -> int | None:
        """Return the number of the batch after the point; None if the point is not in ``index``.
        ``next_offset`` is the end offset of the log before ``index``."""
        if self.is_set:
            return None
        if next_offset >= self._offset:
            return 0
        if not misplaced:
            i = index.find(self._offset)
            ends_here = len(index) > 0 and index.last_offset[-1] == self._offset - 1
            return i if i < len(index) or ends_here else None
        left_out = set(misplaced)
        kept = [i for i in range(len(index)) if i not in left_out]
        before = [i for i in kept if index.last_offset[i] < self._offset]
        crossed = any(index.last_offset[i] >= self._offset - 1 for i in kept)
        return (before[-1] + 1 if before else 0) if crossed else None

    def passed(self, segment: SegmentReader, index: BatchIndex, stop: int, misplaced: Sequence[int]) -> None:
        """Record that the pass has processed the batches before number ``stop``."""
        last = next((i for i in range(stop - 1, -1, -1) if i not in misplaced), None)
        if last is not None and not self.is_set:
            size = min(HEADER_SIZE, index.size[last])
            self._last_at = segment, index.position[last], size, index.crc[last]

    def set(
        self,
        segment: SegmentReader,
        position: int,
        next_offset: int,
        scan: TransactionScan,
        *,
        has_gaps: bool,
    ) -> None:
        """Set the point."""
        self.is_set, self.ended = True, len(scan.ended)
        self._point = HeaderPoint(
            segment.base_offset,
            position,
            next_offset,
            has_gaps,
            scan.open_ranges(),
            self._hole,
            self._last,
        )


def resumed_scan(point: HeaderPoint) -> TransactionScan:
    """Return a scan that continues with the open transactions at ``point``."""
    return TransactionScan(point.next_offset, point.open_ranges)


def segment_of(segments: Sequence[SegmentReader], base_offset: int) -> int:
    """Return the number of the segment with this base offset. Raises CannotResumeError if it is gone."""
    for i in range(len(segments) - 1, -1, -1):
        if segments[i].base_offset == base_offset:
            return i
    raise CannotResumeError(f"the segment at offset {base_offset} is gone: it was deleted or compacted")


def check_follows(segment: SegmentReader, index: BatchIndex, next_offset: int) -> None:
    """Raise CannotResumeError if batches after a point claim offsets before it: they would change decisions
    of the earlier pass."""
    if index.disorder(next_offset) < len(index) and min(index.base_offset) < next_offset:
        raise CannotResumeError(f"{segment.path} has a batch below offset {next_offset} after that offset")


def _crc_in(header: bytes, at: int) -> int:
    return int.from_bytes(header[at : at + 4], "big")


def _header_at(segment: SegmentReader, position: int, size: int) -> bytes:
    with closing(segment.another()) as reader:  # the reader's own window may be in use
        return bytes(reader.read(position, size))

"""Finds the end of the sound batches of a segment on the disk, and the fault there.

Only the segment's state in memory changes: its indexes are built during the check.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.errors import CorruptRecordError
from txnkafka.storage.formats.log_end import OWNER, decide_end, fault_of, first_bad
from txnkafka.storage.formats.order import NO_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka._core.scan import BatchIndex
    from txnkafka.storage.formats.segment_reader import SegmentReader
    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.recovery.header_pass import HeaderPass

_MANY_INTERVALS = 4  # of index.interval.bytes: an index without entries for more has lost some
_BAD_OFFSETS = "the offsets of the batch that begins there contradict those around it"


class SegmentEnd(NamedTuple):
    """The end of a segment's sound batches: the log continues at ``next_offset``; the first ``position``
    bytes are sound. ``fault`` describes any later bytes."""

    next_offset: int
    position: int
    fault: str


class _Place(NamedTuple):
    """A range of batches from a position on: the log before them ends at ``next_offset``, and continues after
    them at ``limit``."""

    position: int
    next_offset: int
    limit: int = NO_LIMIT


def walk_tail(segment: LogSegment) -> SegmentEnd:
    """Check the batches from the last index entry on. After a fault, check all batches and rebuild the
    indexes: the entry may be wrong, or belong to the torn batch."""
    whole = _Place(0, segment.base_offset)
    try:
        last = segment.last_entry()
    except CorruptRecordError:  # no indexes, and batches out of order: only the check finds the place
        return _check(segment, whole, segment.begin_again, segment.note_all)
    if last is None:
        if segment.size <= _MANY_INTERVALS * segment.config.index_interval_bytes:
            end = _check(segment, whole, _nothing, segment.note_tail)
            if not end.fault:
                return end
    else:
        found: list[int] = []

        def take(batches: BatchIndex) -> None:
            found.extend(batches.last_offset[:1])
            segment.note_tail(batches)

        end = _check(segment, whole._replace(position=last.position), found.clear, take)
        if not end.fault and found and found[0] <= last.offset:
            return end
    return _check(segment, whole, segment.forget_indexes, segment.note_all)


def check_segment(segment: LogSegment, next_offset: int, limit: int, headers: HeaderPass) -> SegmentEnd:
    """Check all batches and build the indexes from them. The log before them ends at ``next_offset``, the
    next segment begins at ``limit``. ``headers`` follows the batches from the segment's beginning on, twice
    if they are out of order.

    Raises CorruptRecordError for offsets that do not fit an index."""

    def begin() -> None:
        segment.begin_again()
        headers.begin(segment)

    def take(batches: BatchIndex) -> None:
        segment.note_all(batches)
        headers.take(batches)

    return _check(segment, _Place(0, next_offset, limit), begin, take)


def _check(
    segment: LogSegment, place: _Place, begin: Callable[[], None], take: Callable[[BatchIndex], None]
) -> SegmentEnd:
    begin()
    if not segment.size:
        return SegmentEnd(place.next_offset, 0, "")
    with closing(segment.view()) as view:
        end = _take(view, place, take)
        if end is not None:
            return end
        # the CRC does not cover the base offset: only the neighbouring batches show which one is damaged
        wrong = _first_misplaced(view, place)
        begin()
        end = _take(view, place, take, size=view.size if wrong is None else wrong)
        assert end is not None
        return end if end.fault or wrong is None else end._replace(fault=_BAD_OFFSETS)


def _take(
    view: SegmentReader, place: _Place, take: Callable[[BatchIndex], None], *, size: int | None = None
) -> SegmentEnd | None:
    """Add the batches up to the first unsound one; return None if they are out of order, unless the caller
    has determined the ``size`` of the ordered part."""
    position, next_offset, fault = place.position, place.next_offset, ""
    end = view.size if size is None else size
    for window, data, index in view.windows(position, end):
        bad = first_bad(index, data, window, OWNER)
        if bad < len(index):
            index.truncate(bad, "crc", fault_of(index, bad))
        if len(index):
            if size is None and not _is_in_order(index, next_offset, place.limit):
                return None
            next_offset = max(next_offset, index.last_offset[-1] + 1)
        take(index)
        position, fault = index.end_position, index.stop_reason
        if index.stop == "crc":
            break
    return SegmentEnd(next_offset, position, fault if position < end else "")


def _is_in_order(index: BatchIndex, next_offset: int, limit: int) -> bool:
    return index.disorder(next_offset) == len(index) and index.last_offset[-1] < limit


def _first_misplaced(view: SegmentReader, place: _Place) -> int | None:
    """Return the position of the first batch with impossible offsets; None if batches are only repeated,
    which Kafka accepts."""
    index: BatchIndex | None = None
    for _, _, batches in view.windows(place.position):
        if index is None:
            index = batches
        else:
            index.extend(batches)
    if index is None:
        return None
    accepted = decide_end(index, place.next_offset, place.limit, rule=OWNER).accepted
    return index.position[accepted] if accepted < len(index) else None


def _nothing() -> None:
    pass

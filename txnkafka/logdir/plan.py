"""Divides the bytes to read into units.

A plan is pure data: each unit has a segment, a range of its bytes on batch boundaries, a range of offsets,
and the transactions to hide. Reading a unit (read.py) needs no other data, so a unit can be read in another
process, on another machine, or again: it covers the same bytes and yields the same records.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from txnkafka._core.read_committed import HiddenRange as HiddenRange
from txnkafka.errors import CorruptRecordError

if TYPE_CHECKING:
    from txnkafka._core.scan import BatchIndex

UNIT_BYTES = 64 << 20
NEVER = (1 << 63) - 1


class BatchIdentity(NamedTuple):
    """Identity of a batch: another batch at the same place has another base offset or checksum."""

    base_offset: int
    crc: int


class Cut(NamedTuple):
    """A batch boundary: byte position, end of the offsets before it; the latest timestamp, the first and the
    last batch since the previous cut."""

    position: int
    next_offset: int
    max_timestamp: int = NEVER
    first_batch: BatchIdentity | None = None
    last_batch: BatchIdentity | None = None


class DamagedBatch(NamedTuple):
    """Damage found while planning: reading stops before it.

    The damaged bytes may contain any of the offsets in [offset, next_offset). ``size`` 0: the rest of the
    segment is unreadable. If these offsets are not ``wanted``, the damage is skipped silently, even if the
    batch itself claims wanted offsets."""

    position: int
    size: int
    offset: int
    next_offset: int
    reason: str
    wanted: bool = True

    def concerns(self, start_offset: int, end_offset: int) -> bool:
        """Return True if the damage concerns readers of [start_offset, end_offset). Damage between two
        offsets concerns readers of the second offset, so that exactly one of two consecutive plans has it."""
        last = max(self.offset, self.next_offset - 1)
        return start_offset <= last and self.offset < end_offset

    def error(self) -> CorruptRecordError:
        """Return the error for a reader."""
        return CorruptRecordError(self.reason, position=self.position, offset=self.offset)


class SegmentMap(NamedTuple):
    """The facts of one segment that planning needs.

    ``cuts`` begin at position 0 and end after the last whole batch; ``limit`` is the offset where the next
    segment, or the rest of the log, begins."""

    path: str
    cuts: Sequence[Cut]
    limit: int
    damage: Sequence[DamagedBatch] = ()

    def joined(self, following: SegmentMap) -> SegmentMap:
        """Join this part of a segment with the next part of the same segment."""
        cuts, damage = [*self.cuts, *following.cuts[1:]], [*self.damage, *following.damage]
        return self._replace(cuts=cuts, damage=damage)


class ReadUnit(NamedTuple):
    """One unit of work: decode the bytes [start_position, end_position) of a segment and keep offsets
    [start_offset, end_offset). No record in it is later than ``max_timestamp``. The first and the last batch
    identify the planned file."""

    topic: str
    partition: int
    path: str
    start_position: int
    end_position: int
    start_offset: int
    end_offset: int
    hidden: tuple[HiddenRange, ...] = ()
    damage: tuple[DamagedBatch, ...] = ()
    max_timestamp: int = NEVER
    first_batch: BatchIdentity | None = None
    last_batch: BatchIdentity | None = None

    def is_followed_by(self, unit: ReadUnit) -> bool:
        """Return True if ``unit`` reads the bytes directly after this unit's."""
        follows = self.path == unit.path and self.end_position == unit.start_position
        return follows and unit.start_position < unit.end_position

    def joined(self, unit: ReadUnit) -> ReadUnit:
        """Join this unit with the following one."""
        return self._replace(
            end_position=unit.end_position,
            end_offset=unit.end_offset,
            hidden=tuple(sorted({*self.hidden, *unit.hidden})),
            damage=self.damage + unit.damage,
            max_timestamp=max(self.max_timestamp, unit.max_timestamp),
            last_batch=unit.last_batch,
        )


def cuts_of(index: BatchIndex, next_offset: int, unit_bytes: int, misplaced: Sequence[int] = ()) -> list[Cut]:
    """Return batch boundaries about ``unit_bytes`` apart; ``next_offset`` is the end of the offsets before
    the first batch. The offsets of batches in ``misplaced`` are wrong and ignored."""
    positions, last_offsets = index.position, index.last_offset
    cuts = [Cut(positions[0] if len(index) else index.end_position, next_offset)]
    first = 0
    while first < len(index):
        after = max(first + 1, bisect_left(positions, positions[first] + unit_bytes))
        behind = (last_offsets[i] + 1 for i in range(after - 1, first - 1, -1) if i not in misplaced)
        next_offset = max(next_offset, next(behind, next_offset))
        position = positions[after] if after < len(index) else index.end_position
        ends = _identity(index, first), _identity(index, after - 1)
        cuts.append(Cut(position, next_offset, index.latest_timestamp(first, after), *ends))
        first = after
    return cuts


def _identity(index: BatchIndex, i: int) -> BatchIdentity:
    return BatchIdentity(index.base_offset[i], index.crc[i])


def read_units(
    topic: str,
    partition: int,
    segments: Iterable[SegmentMap],
    hidden: Iterable[HiddenRange] = (),
    *,
    start_offset: int,
    end_offset: int,
) -> list[ReadUnit]:
    """Return the units that cover [start_offset, end_offset), in offset order."""
    overlapping = _Overlapping(hidden)
    return [
        unit._replace(topic=topic, partition=partition)
        for segment in segments
        for unit in _units_of(segment, overlapping, start_offset, end_offset)
    ]


def since(earliest: int, units: Iterable[ReadUnit]) -> list[ReadUnit]:
    """Leave out units whose records are all earlier than a timestamp, unless they have wanted damage."""
    return [
        unit
        for unit in units
        if unit.max_timestamp >= earliest or any(damaged.wanted for damaged in unit.damage)
    ]


class _Overlapping:
    """Finds the hidden ranges that overlap a unit, for units in offset order: a log may have a million hidden
    ranges, and thousands of units."""

    def __init__(self, hidden: Iterable[HiddenRange]) -> None:
        self._later = sorted(hidden, key=attrgetter("first_offset"), reverse=True)
        self._begun: list[HiddenRange] = []

    def __call__(self, start_offset: int, end_offset: int) -> tuple[HiddenRange, ...]:
        while self._later and self._later[-1].first_offset < end_offset:
            self._begun.append(self._later.pop())
        self._begun = [txn for txn in self._begun if txn.last_offset >= start_offset]
        return tuple(sorted(self._begun))


def _units_of(
    segment: SegmentMap, overlapping: _Overlapping, start_offset: int, end_offset: int
) -> Iterator[ReadUnit]:
    met = [damaged._replace(wanted=damaged.concerns(start_offset, end_offset)) for damaged in segment.damage]
    for begin, end in pairwise(segment.cuts):
        low, high = max(start_offset, begin.next_offset), min(end_offset, end.next_offset)
        damage = tuple(damaged for damaged in met if begin.position <= damaged.position < end.position)
        if low < high or any(damaged.wanted for damaged in damage):
            yield ReadUnit(
                "",
                -1,
                segment.path,
                begin.position,
                end.position,
                low,
                max(low, high),
                overlapping(begin.next_offset, high),
                damage,
                end.max_timestamp,
                end.first_batch,
                end.last_batch,
            )
    last = segment.cuts[-1]
    tail = tuple(damaged for damaged in met if damaged.position >= last.position and damaged.wanted)
    if tail:
        yield ReadUnit(
            "", -1, segment.path, last.position, last.position, last.next_offset, end_offset, (), tail
        )

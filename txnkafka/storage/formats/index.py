"""The sparse indexes of a segment: ``.index`` (offset to position) and ``.timeindex`` (timestamp to offset).

    .index      8 bytes an entry   i32 last offset of a batch - base offset | i32 position of that batch
    .timeindex  12 bytes an entry  i64 largest timestamp so far | i32 offset of it - base offset

Entries are read where they lie: a lookup looks at twenty of a million. An active segment's file is
preallocated, so zeros at the end are no entries, and odd bytes behind the last whole entry count for nothing,
as in Kafka. Neither file has a checksum and Kafka believes them: a lookup in a damaged index answers
something wrong but never raises; ``problems`` tells.

Source: ``OffsetIndex``, ``TimeIndex``, ``AbstractIndex``.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from itertools import islice, pairwise, repeat
from operator import ge
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.model import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from typing_extensions import Buffer

__all__ = [
    "OFFSET_ENTRY",
    "TIME_ENTRY",
    "IndexProblem",
    "OffsetIndex",
    "OffsetPosition",
    "TimeIndex",
    "TimestampOffset",
]

_MAX_PROBLEMS = 100
OFFSET_ENTRY = struct.Struct(">ii")  # last offset relative to the segment's base, position
TIME_ENTRY = struct.Struct(">qi")  # timestamp, relative offset
_PIECE = 1 << 20  # of zeros that are looked at in one go


class OffsetPosition(NamedTuple):
    """An entry of ``.index``: the batch at ``position`` ends with ``offset`` (older brokers: the append)."""

    offset: int
    position: int


class TimestampOffset(NamedTuple):
    """An entry of ``.timeindex``: up to ``offset`` no record of the segment is younger than ``timestamp``."""

    timestamp: int
    offset: int


class IndexProblem(NamedTuple):
    """Something an index should not say; ``entry`` counts from 0."""

    entry: int
    text: str


class _Slots:
    """The entries of a file as struct unpacks them."""

    def __init__(self, data: Buffer, entry: struct.Struct) -> None:
        self._data = memoryview(data).cast("B")
        self._entry = entry
        self.whole = len(self._data) // entry.size
        # Entries come before zeros, so the first slot of zeros can be searched for.
        self.used = bisect_left(range(self.whole), True, key=self._is_zero)

    def _is_zero(self, slot: int) -> bool:
        first, second = self[slot]
        return first == second == 0

    def __getitem__(self, slot: int) -> tuple[int, int]:
        first, second = self._entry.unpack_from(self._data, slot * self._entry.size)
        return first, second

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return self._entry.iter_unpack(self._data[: self.used * self._entry.size])

    def column(self, field: int, base: int = 0) -> Iterator[int]:
        """One field of every entry, counted from ``base``."""
        return (base + entry[field] for entry in self)

    def count_not_above(self, value: int) -> int:
        """How many entries have a first field of at most ``value``, if they are in order."""
        return bisect_right(range(self.used), value, key=lambda slot: self[slot][0])

    def problems(self) -> list[IndexProblem]:
        found = []
        rest = len(self._data) - self.whole * self._entry.size
        if rest:
            found.append(IndexProblem(self.whole, f"{rest} bytes behind the last whole entry"))
        if not self._ends_in_zeros():
            found.append(IndexProblem(self.used, "an entry of zeros has entries behind it"))
        return found

    def _ends_in_zeros(self) -> bool:
        tail = self._data[self.used * self._entry.size : self.whole * self._entry.size]
        pieces = (bytes(tail[begin : begin + _PIECE]) for begin in range(0, len(tail), _PIECE))
        return all(piece.count(0) == len(piece) for piece in pieces)


class OffsetIndex:
    """Entries of an ``.index`` file; ``index[i]`` is an ``OffsetPosition``."""

    def __init__(self, data: Buffer, base_offset: int) -> None:
        self.base_offset = base_offset
        self._slots = _Slots(data, OFFSET_ENTRY)

    def __len__(self) -> int:
        return self._slots.used

    def __getitem__(self, entry: int) -> OffsetPosition:
        relative_offset, position = self._slots[_slot(entry, len(self))]
        return OffsetPosition(self.base_offset + relative_offset, position)

    def __iter__(self) -> Iterator[OffsetPosition]:
        return (OffsetPosition(self.base_offset + relative, position) for relative, position in self._slots)

    def lookup(self, offset: int) -> OffsetPosition:
        """The last entry at or below ``offset``; the segment's beginning when there is none."""
        found = self._slots.count_not_above(offset - self.base_offset)
        return self[found - 1] if found else OffsetPosition(self.base_offset, 0)

    def problems(
        self, log_size: int, *, end_offset: int | None = None, last_offsets: Mapping[int, int] | None = None
    ) -> list[IndexProblem]:
        """At most a hundred things that don't fit a log of ``log_size`` bytes ending before ``end_offset``.

        With ``last_offsets``, by position of each batch, each entry is held against its batch.
        """
        base, slots = self.base_offset, self._slots
        found = slots.problems()
        found += _column_problems("offset", lambda: slots.column(0, base), base, _end(end_offset, base))
        found += _column_problems("position", lambda: slots.column(1), 0, log_size)
        if last_offsets is not None:
            found += _away_from_batches(slots, base, last_offsets)
        return sorted(found)[:_MAX_PROBLEMS]


class TimeIndex:
    """Entries of a ``.timeindex`` file; ``index[i]`` is a ``TimestampOffset``."""

    def __init__(self, data: Buffer, base_offset: int) -> None:
        self.base_offset = base_offset
        self._slots = _Slots(data, TIME_ENTRY)

    def __len__(self) -> int:
        return self._slots.used

    def __getitem__(self, entry: int) -> TimestampOffset:
        timestamp, relative_offset = self._slots[_slot(entry, len(self))]
        return TimestampOffset(timestamp, self.base_offset + relative_offset)

    def __iter__(self) -> Iterator[TimestampOffset]:
        base_offset = self.base_offset
        return (TimestampOffset(timestamp, base_offset + relative) for timestamp, relative in self._slots)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The last entry at or below ``timestamp``; timestamp -1 at the base offset when there is none."""
        found = self._slots.count_not_above(timestamp)
        return self[found - 1] if found else TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def problems(self, *, end_offset: int | None = None) -> list[IndexProblem]:
        """At most a hundred things that don't fit a segment that ends before ``end_offset``."""
        base, slots = self.base_offset, self._slots
        found = slots.problems()
        found += _column_problems("timestamp", lambda: slots.column(0), 0, 2**63)
        found += _column_problems("offset", lambda: slots.column(1, base), base, _end(end_offset, base))
        return sorted(found)[:_MAX_PROBLEMS]


def _slot(entry: int, count: int) -> int:
    slot = entry + count if entry < 0 else entry
    if not 0 <= slot < count:
        raise IndexError(f"entry {entry} of {count}")
    return slot


def _end(end_offset: int | None, base_offset: int) -> int:
    return base_offset + 2**31 if end_offset is None else end_offset


def _column_problems(
    name: str, column: Callable[[], Iterator[int]], low: int, end: int
) -> list[IndexProblem]:
    """Where a column does not increase, and where it leaves low .. end - 1."""
    if _increases(column(), low, end):
        return []
    falling = (
        IndexProblem(entry, f"{name} {value} follows {before}")
        for entry, (before, value) in enumerate(pairwise(column()), start=1)
        if value <= before
    )
    outside = (
        IndexProblem(entry, f"{name} {value} is outside {low}..{end - 1}")
        for entry, value in enumerate(column())
        if not low <= value < end
    )
    return [*islice(falling, _MAX_PROBLEMS), *islice(outside, _MAX_PROBLEMS)]


def _increases(column: Iterator[int], low: int, end: int) -> bool:
    """Whether a column increases strictly from ``low`` or more to less than ``end``."""
    before = low - 1
    for value in column:
        if value <= before:
            return False
        before = value
    return before < end or before < low


def _away_from_batches(slots: _Slots, base: int, last_offsets: Mapping[int, int]) -> list[IndexProblem]:
    # Brokers before 4.0 name the last offset of the whole append, which may have had more batches.
    if all(map(ge, slots.column(0, base), map(last_offsets.get, slots.column(1), repeat(2**63)))):
        return []
    bad = (
        IndexProblem(entry, f"no batch at position {position} ends with offset {base + relative}")
        for entry, (relative, position) in enumerate(slots)
        if base + relative < last_offsets.get(position, 2**63)
    )
    return list(islice(bad, _MAX_PROBLEMS))

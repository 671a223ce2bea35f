"""The sparse indexes of a segment: ``.index`` (offset to position) and ``.timeindex`` (timestamp to offset).

    .index      8 bytes an entry   i32 last offset of a batch - base offset | i32 position of that batch
    .timeindex  12 bytes an entry  i64 largest timestamp so far | i32 offset of it - base offset

Entries are parsed on demand: a lookup reads twenty of a million. An active segment's file is preallocated, so
zeros at the end are not entries, and extra bytes after the last whole entry are ignored, as in Kafka. A
``.timeindex`` of twelve zeros is the entry of a first record with timestamp 0: no preallocated file is so
small. The files have no checksums and Kafka trusts them: a lookup in a damaged index returns a wrong result
but never raises; ``problems`` lists the damage.

The owner of a segment appends to its indexes. An index follows from the log, so entries are collected in
memory and written when the segment is saved: at a roll and at a close. A crash loses some, and recovery
rebuilds them from the log.

Source: ``OffsetIndex``, ``TimeIndex``, ``AbstractIndex``.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from itertools import islice, pairwise, repeat
from operator import ge
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from txnkafka._core.index_entries import count_not_above, last_not_above
from txnkafka.model import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from typing_extensions import Buffer

    from txnkafka.env import DataFile

_MAX_PROBLEMS = 100
OFFSET_ENTRY = struct.Struct(">ii")  # (last offset relative to the segment's base, position)
TIME_ENTRY = struct.Struct(">qi")  # timestamp, relative offset
_OFFSET_SIZE = OFFSET_ENTRY.size
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1  # limits of a timestamp
_PIECE = 1 << 20  # bytes checked for zeros at a time


class OffsetPosition(NamedTuple):
    """An entry of ``.index``: the batch at ``position`` ends with ``offset`` (older brokers: the append)."""

    offset: int
    position: int


class TimestampOffset(NamedTuple):
    """An entry of ``.timeindex``: up to ``offset`` no record of the segment is younger than ``timestamp``."""

    timestamp: int
    offset: int


class IndexProblem(NamedTuple):
    """A fault in an index; ``entry`` counts from 0."""

    entry: int
    text: str


class _SparseIndex:
    """Ordered entries of two numbers: read from a file, or, created by ``owned``, appended by a segment's
    owner; owned entries are all in memory, and partly in the file."""

    __slots__ = ("_count", "_cut", "_saved", "base_offset", "content")

    entry: ClassVar[struct.Struct]
    is_offset: ClassVar[tuple[bool, bool]]  # True for the number that is an offset relative to the base
    least_preallocated: ClassVar[int] = 0  # bytes: zeros of a smaller file are entries

    def __init__(self, data: Buffer, base_offset: int) -> None:
        self.base_offset = base_offset
        self.content: bytearray | memoryview = memoryview(data).cast("B")
        # Entries come before zeros, so the first slot of zeros can be searched for.
        slots = range(len(self.content) // self.entry.size)
        is_short = len(self.content) < self.least_preallocated
        self._count = bisect_left(slots, True, key=lambda slot: not is_short and self._slot(slot) == (0, 0))
        self._saved, self._cut = 0, False

    @classmethod
    def owned(cls, base_offset: int, data: Buffer = b"") -> Self:
        """Open the entries of a file for appending. Zeros and extra bytes at its end, as in a preallocated
        file, are removed when it is saved."""
        index = cls(b"", base_offset)
        content = bytes(data)
        index.content = bytearray(content[: _used(content, cls.entry.size, cls.least_preallocated)])
        index._saved = len(index.content)
        index._cut = index._saved != len(content)
        index._count = index._saved // cls.entry.size
        return index

    def __len__(self) -> int:
        return self._count

    def _slot(self, slot: int) -> tuple[int, int]:
        first, second = self.entry.unpack_from(self.content, slot * self.entry.size)
        return first, second

    def _entry(self, entry: int) -> tuple[int, int]:
        slot = entry + self._count if entry < 0 else entry
        if not 0 <= slot < self._count:
            raise IndexError(f"entry {entry} of {self._count}")
        return self._slot(slot)

    def slots(self) -> Iterator[tuple[int, int]]:
        """Yield all entries as stored, with relative offsets."""
        return self.entry.iter_unpack(memoryview(self.content)[: self._count * self.entry.size])

    def column(self, field: int) -> Iterator[int]:
        """Yield one field of every entry; offsets are absolute."""
        base = self.base_offset if self.is_offset[field] else 0
        return (base + slot[field] for slot in self.slots())

    def count_not_above(self, value: int, field: int = 0) -> int:
        """Count the entries whose stored ``field`` is at most ``value``, a number of any size."""
        if value < _SMALLEST:
            return 0
        value = min(value, _LARGEST)
        return count_not_above(
            self.content, count=self._count, entry_size=self.entry.size, value=value, second=field == 1
        )

    # Growing, for the owner of the segment

    @property
    def is_saved(self) -> bool:
        """True if the file has exactly these entries."""
        return self._saved == len(self.content) and not self._cut

    def append(self, first: int, second: int) -> None:
        """Append an entry of two stored fields."""
        self.extend(self.entry.pack(first, second))

    def extend(self, entries: bytes | bytearray) -> None:
        """Append stored entries."""
        content = self._owned()
        content += entries
        self._count = len(content) // self.entry.size

    def last(self) -> tuple[int, int] | None:
        """The newest entry as stored."""
        return self._slot(self._count - 1) if self._count else None

    @property
    def last_key(self) -> int:
        """The sort key (offset or timestamp, as stored) of the newest entry; -1 without entries."""
        last = self.last()
        return -1 if last is None else last[0]

    def keep(self, count: int) -> None:
        """Remove all entries but the first ``count``."""
        content = self._owned()
        del content[count * self.entry.size :]
        self._count = len(content) // self.entry.size
        if self._saved > len(content):
            self._saved, self._cut = len(content), True

    def _owned(self) -> bytearray:
        if not isinstance(self.content, bytearray):
            raise TypeError("the index of a file that is only read cannot be changed")
        return self.content

    def keep_below(self, offset: int) -> None:
        """Remove the entries from the first one with ``offset`` or a later offset on."""
        field = self.is_offset.index(True)
        self.keep(self.count_not_above(offset - self.base_offset - 1, field))

    def replaces_file(self) -> None:
        """Make the next ``save`` rewrite the whole file."""
        self._saved, self._cut = 0, True

    def save(self, file: DataFile) -> None:
        """Write the entries that the file lacks. Raises OSError."""
        if self._cut:
            file.truncate(self._saved)
            self._cut = False
        if self._saved < len(self.content):
            file.write(self._saved, [bytes(memoryview(self.content)[self._saved :])])
            self._saved = len(self.content)

    # Validating

    def _slot_problems(self) -> list[IndexProblem]:
        found = []
        whole = len(self.content) // self.entry.size
        rest = len(self.content) - whole * self.entry.size
        if rest:
            found.append(IndexProblem(whole, f"{rest} bytes after the last whole entry"))
        tail = memoryview(self.content)[self._count * self.entry.size : whole * self.entry.size]
        pieces = (bytes(tail[begin : begin + _PIECE]) for begin in range(0, len(tail), _PIECE))
        if not all(piece.count(0) == len(piece) for piece in pieces):
            found.append(IndexProblem(self._count, "entries follow an entry of zeros"))
        return found


class OffsetIndex(_SparseIndex):
    """Entries of an ``.index`` file; ``index[i]`` is an ``OffsetPosition``."""

    __slots__ = ()
    entry = OFFSET_ENTRY
    is_offset = (True, False)

    def __getitem__(self, entry: int) -> OffsetPosition:
        relative_offset, position = self._entry(entry)
        return OffsetPosition(self.base_offset + relative_offset, position)

    def __iter__(self) -> Iterator[OffsetPosition]:
        return (OffsetPosition(self.base_offset + relative, position) for relative, position in self.slots())

    def lookup(self, offset: int) -> OffsetPosition:
        """Return the last entry at or below ``offset``; without one, the segment's beginning."""
        return OffsetPosition(*self.entry_below(offset))

    def entry_below(self, offset: int) -> tuple[int, int]:
        """Like ``lookup``, but returns a plain tuple, for frequent calls."""
        base = self.base_offset
        if offset < base:
            return base, 0
        slot = last_not_above(self.content, count=self._count, entry_size=_OFFSET_SIZE, value=offset - base)
        return (base, 0) if slot is None else (base + slot[0], slot[1])

    def at_position(self, position: int) -> int:
        """Return the number of the first entry at or after ``position``; ``len(index)`` without one."""
        return self.count_not_above(position - 1, 1)

    def problems(
        self, log_size: int, *, end_offset: int | None = None, last_offsets: Mapping[int, int] | None = None
    ) -> list[IndexProblem]:
        """Return at most a hundred faults of entries in a log of ``log_size`` bytes that ends before
        ``end_offset``. With ``last_offsets``, by position of each batch, every entry is compared with its
        batch."""
        base = self.base_offset
        found = self._slot_problems()
        found += _column_problems("offset", lambda: self.column(0), base, _end(end_offset, base))
        found += _column_problems("position", lambda: self.column(1), 0, log_size)
        if last_offsets is not None:
            found += _away_from_batches(self, last_offsets)
        return sorted(found)[:_MAX_PROBLEMS]


class TimeIndex(_SparseIndex):
    """Entries of a ``.timeindex`` file; ``index[i]`` is a ``TimestampOffset``."""

    __slots__ = ()
    entry = TIME_ENTRY
    is_offset = (False, True)
    least_preallocated = 2 * TIME_ENTRY.size

    def __getitem__(self, entry: int) -> TimestampOffset:
        timestamp, relative_offset = self._entry(entry)
        return TimestampOffset(timestamp, self.base_offset + relative_offset)

    def __iter__(self) -> Iterator[TimestampOffset]:
        base_offset = self.base_offset
        return (TimestampOffset(timestamp, base_offset + relative) for timestamp, relative in self.slots())

    def lookup(self, timestamp: int) -> TimestampOffset:
        """Return the last entry at or below ``timestamp``; without one, timestamp -1 at the base offset."""
        found = self.count_not_above(timestamp)
        return self[found - 1] if found else TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def problems(self, *, end_offset: int | None = None) -> list[IndexProblem]:
        """Return at most a hundred faults in the order and range of the entries, for a segment that ends
        before ``end_offset``."""
        base = self.base_offset
        found = self._slot_problems()
        found += _column_problems("timestamp", lambda: self.column(0), 0, 2**63)
        found += _column_problems("offset", lambda: self.column(1), base, _end(end_offset, base))
        return sorted(found)[:_MAX_PROBLEMS]


def _used(content: bytes, entry_size: int, least_preallocated: int) -> int:
    """Return the size of all whole entries; a preallocated file ends with zeros, which do not count."""
    used = len(content) if len(content) < least_preallocated else len(content.rstrip(b"\0"))
    used += -used % entry_size
    return min(used, len(content) - len(content) % entry_size)


def _end(end_offset: int | None, base_offset: int) -> int:
    return base_offset + 2**31 if end_offset is None else end_offset


def _column_problems(
    name: str, column: Callable[[], Iterator[int]], low: int, end: int
) -> list[IndexProblem]:
    """Return the entries where a column does not increase, or is outside low .. end - 1."""
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
    """Return True if a column increases strictly within [low, end)."""
    before = low - 1
    for value in column:
        if value <= before:
            return False
        before = value
    return before < end or before < low


def _away_from_batches(index: OffsetIndex, last_offsets: Mapping[int, int]) -> list[IndexProblem]:
    # Brokers before 4.0 store the last offset of the whole append, which may have several batches.
    if all(map(ge, index.column(0), map(last_offsets.get, index.column(1), repeat(2**63)))):
        return []
    bad = (
        IndexProblem(entry, f"no batch at position {position} ends with offset {offset}")
        for entry, (offset, position) in enumerate(index)
        if offset < last_offsets.get(position, 2**63)
    )
    return list(islice(bad, _MAX_PROBLEMS))

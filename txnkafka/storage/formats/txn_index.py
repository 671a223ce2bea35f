"""Parses ``.txnindex`` files, the aborted transactions whose end markers are in a segment, in the order of
the markers.

    0   i16  version (0; Kafka reads the first byte only)
    2   i64  producer id
    10  i64  first offset
    18  i64  last offset: the abort marker's
    26  i64  last stable offset when the marker was appended

The file has no checksum and no length, and Kafka creates no file for a segment without aborts: a missing file
does not prove that nothing was aborted. Parsing never raises; it returns the sound entries and the problems
of the others, and the caller reads the log if there is a problem.

Source: ``TransactionIndex``, ``AbortedTxn``.
"""

from __future__ import annotations

import struct
from itertools import count
from operator import le, lt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Buffer

_ENTRY = struct.Struct(">bbqqqq")  # Kafka's reader uses only the first byte as the version
ENTRY_SIZE = _ENTRY.size
_MAX_PROBLEMS = 100
_PIECE = 4096 * _ENTRY.size


class AbortedTxn(NamedTuple):
    """An aborted transaction; ``last_stable_offset`` is the first offset of the oldest other transaction open
    at its end."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndexProblem(NamedTuple):
    """A fault in a transaction index, at a position of the file."""

    position: int
    text: str


def packed(entries: Iterable[AbortedTxn]) -> bytes:
    """Return the bytes of the entries."""
    return b"".join(_ENTRY.pack(entry.version, 0, *entry[1:]) for entry in entries)


def parse_txn_index(data: Buffer, base_offset: int) -> tuple[list[AbortedTxn], list[TxnIndexProblem]]:
    """Return the sound entries, and the problems of the others; after a hundred problems the rest is not
    read."""
    problems: list[TxnIndexProblem] = []
    return [entry for _, entry in iter_txn_index(data, base_offset, problems)], problems


def iter_txn_index(
    data: Buffer, base_offset: int, problems: list[TxnIndexProblem] | None = None
) -> Iterator[tuple[int, AbortedTxn]]:
    """Yield each sound entry with its position, and append problems to the list. Only a small piece of the
    file at a time is in memory as tuples."""
    problems = [] if problems is None else problems
    view = memoryview(data).cast("B")
    whole = len(view) - len(view) % _ENTRY.size
    # No transaction ends below the segment's base, so its predecessor serves as the first "previous" marker.
    previous = base_offset - 1
    for begin in range(0, whole, _PIECE):
        rows = list(_ENTRY.iter_unpack(view[begin : min(begin + _PIECE, whole)]))
        found: Iterable[tuple[int, AbortedTxn]]
        sound = _sound_entries(rows, previous)
        if sound is not None:
            found = zip(count(begin, _ENTRY.size), sound)
        else:
            found = _sound_ones(rows, begin, (base_offset, previous), problems)
        for position, entry in found:
            previous = entry.last_offset
            yield position, entry
        if len(problems) > _MAX_PROBLEMS:
            return
    if whole < len(view):
        # Kafka appends after such a fragment, which shifts every later entry.
        problems.append(TxnIndexProblem(whole, f"{len(view) - whole} bytes after the last whole entry"))


def _sound_ones(
    rows: list[tuple[int, ...]], begin: int, bounds: tuple[int, int], problems: list[TxnIndexProblem]
) -> Iterator[tuple[int, AbortedTxn]]:
    """Yield the sound entries from position ``begin`` on. ``bounds``: the segment's base offset, and the last
    offset of the previous sound entry."""
    base_offset, previous = bounds
    for position, (version, low_byte, *fields) in zip(count(begin, _ENTRY.size), rows):
        if len(problems) == _MAX_PROBLEMS:
            problems.append(TxnIndexProblem(position, "too many problems, the rest was not read"))
            return
        entry = AbortedTxn(version, *fields)
        text = _fault(entry, base_offset, previous)
        if text is None:
            previous = entry.last_offset
            yield position, entry
            # Kafka accepts such an entry, but the low byte is a sign of damage.
            text = f"version {low_byte & 0xFF} is not known, read as 0" if low_byte else None
        if text is not None:
            problems.append(TxnIndexProblem(position, text))


def _sound_entries(rows: list[tuple[int, ...]], previous: int) -> list[AbortedTxn] | None:
    """Return all entries after checking them column by column, which is several times faster; None for a
    fault."""
    versions, low_bytes, producer_ids, first_offsets, last_offsets, stable_offsets = zip(*rows, strict=True)
    sound = (
        not any(versions)
        and not any(low_bytes)
        and min(producer_ids) >= 0
        and min(first_offsets) >= 0
        and last_offsets[0] > previous
        and min(stable_offsets) >= 0
        and all(map(le, first_offsets, last_offsets))
        and all(map(lt, last_offsets, last_offsets[1:]))
        and all(stable <= last + 1 for stable, last in zip(stable_offsets, last_offsets, strict=True))
    )
    if not sound:
        return None
    return list(map(AbortedTxn, versions, producer_ids, first_offsets, last_offsets, stable_offsets))


def _fault(entry: AbortedTxn, base_offset: int, previous_last_offset: int) -> str | None:
    if entry.version != 0:
        return f"version byte {entry.version} is not known"
    if entry.producer_id < 0:
        return f"producer id {entry.producer_id} is negative"
    if not 0 <= entry.first_offset <= entry.last_offset:
        return f"the transaction begins at {entry.first_offset} and ends at {entry.last_offset}"
    if entry.last_offset < base_offset:
        return f"last offset {entry.last_offset} is below the segment's base offset {base_offset}"
    if entry.last_offset <= previous_last_offset:
        return f"last offset {entry.last_offset} follows {previous_last_offset}"
    if not 0 <= entry.last_stable_offset <= entry.last_offset + 1:
        return f"last stable offset {entry.last_stable_offset} is outside 0..{entry.last_offset + 1}"
    return None

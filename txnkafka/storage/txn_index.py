"""``.txnindex``: the aborted transactions whose end marker lies in a segment, in the order of their markers.

    0   i16  version (0; Kafka reads the first byte only)
    2   i64  producer id
    10  i64  first offset
    18  i64  last offset: the abort marker's
    26  i64  last stable offset when the marker was appended

The file has no checksum and no length, and Kafka makes none when a segment has no aborts: an absent file is
no proof that nothing was aborted. Parsing never raises; it keeps what is sound and names the rest, and it is
for the caller to look into the log when there is a problem.

Source: ``TransactionIndex``, ``AbortedTxn``.
"""

from __future__ import annotations

import struct
from operator import le, lt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["AbortedTxn", "TxnIndexProblem", "parse_txn_index"]

_ENTRY = struct.Struct(">bbqqqq")
_MAX_PROBLEMS = 100


class AbortedTxn(NamedTuple):
    """An aborted transaction; ``last_stable_offset`` is where the oldest other one open at its end begins."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndexProblem(NamedTuple):
    """Something a transaction index should not say, at a position of the file."""

    position: int
    text: str


def parse_txn_index(data: Buffer, base_offset: int) -> tuple[list[AbortedTxn], list[TxnIndexProblem]]:
    """The sound entries, and what is wrong with the others; after a hundred problems the rest is given up."""
    view = memoryview(data).cast("B")
    whole = len(view) - len(view) % _ENTRY.size
    if whole == len(view):
        sound = _sound_entries(list(_ENTRY.iter_unpack(view)), base_offset)
        if sound is not None:
            return sound, []
    entries: list[AbortedTxn] = []
    problems: list[TxnIndexProblem] = []
    # No transaction ends below the segment's base, so its predecessor serves as the first "previous" marker.
    previous_last_offset = base_offset - 1
    for number, (version, low_byte, *fields) in enumerate(_ENTRY.iter_unpack(view[:whole])):
        position = number * _ENTRY.size
        if len(problems) == _MAX_PROBLEMS:
            problems.append(TxnIndexProblem(position, "too many problems, the rest was not read"))
            return entries, problems
        entry = AbortedTxn(version, *fields)
        text = _fault(entry, base_offset, previous_last_offset)
        if text is None:
            entries.append(entry)
            previous_last_offset = entry.last_offset
            # Kafka reads such an entry all the same, but the low byte did not get there by itself.
            text = f"version {low_byte & 0xFF} is not known, read as 0" if low_byte else None
        if text is not None:
            problems.append(TxnIndexProblem(position, text))
    if whole < len(view):
        # Kafka appends behind such a fragment, which shifts every later entry.
        problems.append(TxnIndexProblem(whole, f"{len(view) - whole} bytes behind the last whole entry"))
    return entries, problems


def _sound_entries(rows: list[tuple[int, ...]], base_offset: int) -> list[AbortedTxn] | None:
    """All entries, checked column by column, which is several times quicker; None when there is a fault
    to name."""
    if not rows:
        return []
    versions, low_bytes, producer_ids, first_offsets, last_offsets, stable_offsets = zip(*rows, strict=True)
    sound = (
        not any(versions)
        and not any(low_bytes)
        and min(producer_ids) >= 0
        and min(first_offsets) >= 0
        and last_offsets[0] >= base_offset
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
        return f"last offset {entry.last_offset} lies below the segment's base offset {base_offset}"
    if entry.last_offset <= previous_last_offset:
        return f"last offset {entry.last_offset} follows {previous_last_offset}"
    if not 0 <= entry.last_stable_offset <= entry.last_offset + 1:
        return f"last stable offset {entry.last_stable_offset} is outside 0..{entry.last_offset + 1}"
    return None

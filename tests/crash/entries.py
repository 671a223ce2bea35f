"""The batches of a log as a checker stores them, and what is derived from them: transactions, bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["CRC_AND_BEHIND", "Entry", "Transaction", "as_log", "transactions"]

CRC_AND_BEHIND = slice(16, None)  # base offset and leader epoch are assigned by the log
_BEFORE = struct.Struct(">qii")


class Entry(NamedTuple):
    """A batch in a log: its offsets, its producer id (-1: none), whether it is transactional, and for a
    marker whether it aborts."""

    first_offset: int
    last_offset: int
    content: bytes
    producer_id: int
    transactional: bool
    aborts: bool | None


class Transaction(NamedTuple):
    """An aborted transaction: its data, its marker, and the last stable offset after the marker."""

    producer_id: int
    data: Sequence[Entry]
    last_offset: int
    last_stable_offset: int


def transactions(entries: Iterable[Entry]) -> tuple[list[Transaction], dict[int, int]]:
    """Return the aborted transactions, in the order of their markers, and the first offset of each open
    one."""
    begun: dict[int, list[Entry]] = {}
    aborted = []
    for entry in entries:
        if entry.aborts is None and entry.transactional:
            begun.setdefault(entry.producer_id, []).append(entry)
        elif entry.aborts is not None:
            data = begun.pop(entry.producer_id, [])
            stable = min((each[0].first_offset for each in begun.values()), default=entry.last_offset + 1)
            if entry.aborts and data:
                aborted.append(Transaction(entry.producer_id, data, entry.last_offset, stable))
    return aborted, {producer_id: data[0].first_offset for producer_id, data in begun.items()}


def as_log(entries: Iterable[Entry]) -> bytes:
    """Encode the batches as they are in a log, all with leader epoch 0."""
    return b"".join(
        _BEFORE.pack(entry.first_offset, len(entry.content) + 4, 0) + entry.content for entry in entries
    )

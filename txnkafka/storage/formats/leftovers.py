"""Finds the deletions and compactions that a crash interrupted in a partition directory, by file names. An
owner finishes them; a reader treats the directory as if they were finished.

``.deleted`` and ``.cleaned`` files are useless. A ``.swap`` segment is complete and durable: it replaces the
segments whose offsets it covers. If ``.cleaned`` files exist, swaps at or above the smallest of their offsets
are parts of an unfinished split, and also useless.

Source: ``LogLoader.load``, ``LogLoader.removeTempFilesAndCollectSwapFiles``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from txnkafka.storage.formats.layout import SegmentFile

_NEVER = 1 << 63


class Leftovers(NamedTuple):
    """Files to delete, and files to rename by removing their suffix."""

    useless: list[SegmentFile]
    swaps: list[SegmentFile]


def leftovers(files: Iterable[SegmentFile]) -> Leftovers:
    """Return the leftovers among the files of a partition directory."""
    temporary = [file for file in files if file.suffix]
    cleaned = min((file.base_offset for file in temporary if file.suffix == ".cleaned"), default=_NEVER)
    found = Leftovers([], [])
    for file in temporary:
        is_swapped = file.suffix == ".swap" and file.base_offset < cleaned
        (found.swaps if is_swapped else found.useless).append(file)
    return found


def replaced_offsets(ends: Mapping[int, int]) -> range:
    """Return the range of base offsets that swapped segments replace, for ``is_replaced``. ``ends`` maps the
    base offset of each swapped segment to its end offset; a swapped segment without batches replaces the
    segment with the same base offset."""
    if not ends:
        return range(0)
    start = min(ends)
    return range(start, max(start + 1, *ends.values()))


def is_replaced(base_offset: int, kind: str, replaced: range) -> bool:
    """Return True if swapped segments replace a file without suffix. Unlike in ``LogLoader``, the snapshot at
    their start stays: it has the state before them, which no other file has for deleted segments."""
    return base_offset in replaced and (kind != "snapshot" or base_offset != replaced.start)

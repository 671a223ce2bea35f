"""What a crash has left half done in a partition directory, by the names of the files: deletions, and
compactions that were to be swapped in. An owner finishes it, a reader looks at the directory as if it were.

``.deleted`` and ``.cleaned`` files are useless. A ``.swap`` segment is complete and durable: it takes the
place of the segments whose offsets it covers. With ``.cleaned`` files there, swaps at or above the smallest
of them are parts of a split that did not finish, and are useless, too.

Source: ``LogLoader.load``, ``LogLoader.removeTempFilesAndCollectSwapFiles``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from txnkafka.storage.formats.layout import SegmentFile

__all__ = ["Leftovers", "leftovers", "replaced_offsets"]

_NEVER = 1 << 63


class Leftovers(NamedTuple):
    """Files that are to be deleted, and files that lose their suffix."""

    useless: list[SegmentFile]
    swaps: list[SegmentFile]


def leftovers(files: Iterable[SegmentFile]) -> Leftovers:
    """Those among the files of a partition directory."""
    temporary = [file for file in files if file.suffix]
    cleaned = min((file.base_offset for file in temporary if file.suffix == ".cleaned"), default=_NEVER)
    found = Leftovers([], [])
    for file in temporary:
        is_swapped = file.suffix == ".swap" and file.base_offset < cleaned
        (found.swaps if is_swapped else found.useless).append(file)
    return found


def replaced_offsets(ends: Mapping[int, int]) -> range:
    """Base offsets of the segments, and offsets of the snapshots, that swapped segments replace. ``ends`` are
    the offsets where these end, by their base offsets; one without batches replaces the segment that begins
    where it does."""
    if not ends:
        return range(0)
    start = min(ends)
    return range(start, max(start + 1, *ends.values()))

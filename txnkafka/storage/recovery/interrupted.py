"""What a crash has left half done in a partition directory: deletions, and compactions that were to be
swapped in.

``.deleted`` and ``.cleaned`` files are nothing any more. A ``.swap`` segment is complete and durable: the
segments whose offsets it covers go, then it takes its place. With ``.cleaned`` files there, swaps at or above
the smallest of them are halves of a split that did not finish, and go too.

Source: ``LogLoader.load``, ``LogLoader.removeTempFilesAndCollectSwapFiles``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txnkafka.errors import LogDirError
from txnkafka.storage.formats.layout import (
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    SegmentFile,
    parse_segment_file,
)
from txnkafka.storage.formats.partition_names import fault_of_file
from txnkafka.storage.formats.segment_reader import SegmentReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from txnkafka.env import DataFiles, DirectoryEntry

__all__ = ["finish_interrupted"]

SWAP, CLEANED = ".swap", ".cleaned"
TEMPORARY = {f"{LEADER_EPOCH_CHECKPOINT}.tmp", f"{PARTITION_METADATA}.tmp"}


class _Found(NamedTuple):
    name: str
    file: SegmentFile
    size: int


def finish_interrupted(
    files: DataFiles, directory: str, note: Callable[[str, str, str], None]
) -> list[DirectoryEntry]:
    """Finish or undo it, durably; returns the files that are there then. Running it again, after any part of
    it, comes to the same end. Raises LogDirError, before anything is changed, when a file of a segment is a
    link or cannot be looked at."""
    listed = files.list(directory)
    for entry in listed:
        fault = fault_of_file(entry)
        if fault:
            raise LogDirError(f"{files.join(directory, entry.name)} {fault}")
    entries = [entry for entry in listed if not entry.is_directory]
    found = [
        _Found(entry.name, parsed, entry.size)
        for entry in entries
        if (parsed := parse_segment_file(entry.name))
    ]
    useless = _useless(found)
    swaps = [each for each in found if each.file.suffix == SWAP and each not in useless]
    replaced = _replaced(files, directory, found, swaps)
    doomed = [each.name for each in (*useless, *replaced)]
    doomed += [entry.name for entry in entries if entry.name in TEMPORARY]
    if not doomed and not swaps:
        return entries
    _finish(files, directory, doomed, swaps, note)
    return [entry for entry in files.list(directory) if not entry.is_directory]


def _finish(
    files: DataFiles,
    directory: str,
    doomed: list[str],
    swaps: list[_Found],
    note: Callable[[str, str, str], None],
) -> None:
    if swaps:
        files.sync_directory(directory)  # their names, before what they replace goes
        names = ", ".join(each.name for each in swaps)
        note(f"a compaction in {directory}", "finished", f"{names} take their places")
    for name in doomed:
        files.remove(files.join(directory, name))
    files.sync_directory(directory)
    # the log goes last: while it is a swap, all of this is done again
    for each in sorted(swaps, key=lambda each: each.file.kind == "log"):
        files.rename(files.join(directory, each.name), files.join(directory, each.name.removesuffix(SWAP)))
    files.sync_directory(directory)


def _useless(found: Iterable[_Found]) -> list[_Found]:
    cleaned = [each.file.base_offset for each in found if each.file.suffix == CLEANED]
    return [
        each
        for each in found
        if each.file.suffix in (".deleted", CLEANED)
        or (each.file.suffix == SWAP and cleaned and each.file.base_offset >= min(cleaned))
    ]


def _replaced(
    files: DataFiles, directory: str, found: Iterable[_Found], swaps: Iterable[_Found]
) -> list[_Found]:
    """The files without suffix whose offsets the swapped segments cover."""
    logs = [each for each in swaps if each.file.kind == "log"]
    if not logs:
        return []
    start = min(each.file.base_offset for each in logs)
    # what one without batches replaces begins with it, too
    end = max(start + 1, *(_end_offset(files, directory, each) for each in logs))
    return [each for each in found if not each.file.suffix and start <= each.file.base_offset < end]


def _end_offset(files: DataFiles, directory: str, swap: _Found) -> int:
    path = files.join(directory, swap.name)
    segment = SegmentReader(files, swap.file.base_offset, {"log": path}, swap.size)
    try:
        return segment.end_offset()
    finally:
        segment.close()

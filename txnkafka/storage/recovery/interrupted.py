"""Finishes deletions and compactions that a crash interrupted: see ``storage.formats.leftovers``.

Source: ``LogLoader.load``, ``LogLoader.removeTempFilesAndCollectSwapFiles``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.errors import LogDirError
from txnkafka.storage.formats.layout import (
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    SegmentFile,
    file_name,
    parse_segment_file,
)
from txnkafka.storage.formats.leftovers import is_replaced, leftovers, replaced_offsets
from txnkafka.storage.formats.partition_names import fault_of_file
from txnkafka.storage.formats.segment_reader import SegmentReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.env import DataFiles, DirectoryEntry

SWAP = ".swap"
TEMPORARY = {f"{LEADER_EPOCH_CHECKPOINT}.tmp", f"{PARTITION_METADATA}.tmp"}


def finish_interrupted(
    files: DataFiles, directory: str, note: Callable[[str, str, str], None]
) -> list[DirectoryEntry]:
    """Finish or undo all interrupted changes of a directory durably; return the files that exist afterwards.
    The function is idempotent, even if it is interrupted itself. Raises LogDirError, before any change, if a
    file of a segment is a link or cannot be opened."""
    listed = files.list(directory)
    for entry in listed:
        fault = fault_of_file(entry)
        if fault:
            raise LogDirError(f"{files.join(directory, entry.name)} {fault}")
    entries = [entry for entry in listed if not entry.is_directory]
    sizes = {file: entry.size for entry in entries if (file := parse_segment_file(entry.name))}
    useless, swaps = leftovers(sizes)
    replaced = replaced_offsets(
        {
            file.base_offset: _end_offset(files, directory, file, sizes[file])
            for file in swaps
            if file.kind == "log"
        }
    )
    doomed = [_name(file) for file in useless]
    whole = [file for file in sizes if not file.suffix]
    doomed += [_name(file) for file in whole if is_replaced(file.base_offset, file.kind, replaced)]
    doomed += [entry.name for entry in entries if entry.name in TEMPORARY]
    if not doomed and not swaps:
        return entries
    _finish(files, directory, doomed, swaps, note)
    return [entry for entry in files.list(directory) if not entry.is_directory]


def _finish(
    files: DataFiles,
    directory: str,
    doomed: list[str],
    swaps: list[SegmentFile],
    note: Callable[[str, str, str], None],
) -> None:
    if swaps:
        files.sync_directory(directory)  # sync their names before the replaced files are removed
        names = ", ".join(map(_name, swaps))
        note(f"a compaction in {directory}", "finished", f"{names} take their places")
    for name in doomed:
        files.remove(files.join(directory, name))
    files.sync_directory(directory)
    # the log is renamed last: while it is a swap, the next start repeats everything
    for file in sorted(swaps, key=lambda file: file.kind == "log"):
        name = _name(file)
        files.rename(files.join(directory, name), files.join(directory, name.removesuffix(SWAP)))
    files.sync_directory(directory)


def _name(file: SegmentFile) -> str:
    return file_name(file.base_offset, file.kind) + file.suffix


def _end_offset(files: DataFiles, directory: str, swap: SegmentFile, size: int) -> int:
    path = files.join(directory, _name(swap))
    segment = SegmentReader(files, swap.base_offset, {"log": path}, size)
    try:
        return segment.end_offset()
    finally:
        segment.close()

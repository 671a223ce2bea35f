"""Lists the segments and snapshots of a partition directory, treating leftovers of a crash as recovery would.

``storage.formats.leftovers`` defines the leftovers. A reader never writes: it only ignores leftovers.
"""

from __future__ import annotations

from typing import NamedTuple

from txnkafka.env import DirectoryEntry, FileSystem
from txnkafka.errors import LogDirError
from txnkafka.storage.formats import SegmentFile, parse_segment_file
from txnkafka.storage.formats.leftovers import is_replaced, leftovers, replaced_offsets
from txnkafka.storage.formats.segment_reader import SegmentReader

MAX_LISTINGS = 100
SIDE_FILES = ("index", "timeindex", "txnindex", "snapshot")


class PartitionFiles(NamedTuple):
    """The files of a partition: segments in offset order; ``snapshots`` maps offsets to paths; ``leftovers``
    are the names that recovery would delete or rename."""

    segments: list[SegmentReader]
    snapshots: dict[int, str]
    orphans: list[str]
    leftovers: list[str]


def list_partition(file_system: FileSystem, path: str, only_base_offset: int | None = None) -> PartitionFiles:
    """List a partition directory; with ``only_base_offset``, only that segment. Raises LogDirError."""
    found = []
    for entry in _entries(file_system, path):
        parsed = parse_segment_file(entry.name)
        if parsed is not None and not entry.is_directory:
            found.append((parsed, entry))
        elif parsed is not None and parsed.kind == "log" and not parsed.suffix:
            raise LogDirError(f"{file_system.join(path, entry.name)} is a directory, where a segment belongs")
    leftovers = [entry.name for parsed, entry in found if parsed.suffix]
    current: Files = {
        (parsed.base_offset, parsed.kind): entry for parsed, entry in found if not parsed.suffix
    }
    _complete_swap(file_system, path, found, current)
    logs = sorted(base_offset for base_offset, kind in current if kind == "log")
    if only_base_offset is not None:
        logs = [base_offset for base_offset in logs if base_offset == only_base_offset]
    segments = [_segment(file_system, path, base_offset, current) for base_offset in logs]
    for segment in segments[:-1]:
        segment.final_size = segment.size
    return PartitionFiles(
        segments,
        {
            offset: file_system.join(path, entry.name)
            for (offset, kind), entry in current.items()
            if kind == "snapshot"
        },
        sorted(
            entry.name
            for (base, kind), entry in current.items()
            if kind not in ("log", "snapshot") and base not in logs
        ),
        leftovers,
    )


def _entries(file_system: FileSystem, path: str) -> list[DirectoryEntry]:
    """List a directory until two consecutive listings have the same names.

    Within one listing, a broker may rename a file after its name was read, but before its size was: the first
    segments of a log would be missing while its cleaner replaces them. The sizes come from the second
    listing, so every segment but the last has its final size."""
    try:
        listed = file_system.list(path)
        for _ in range(MAX_LISTINGS):
            before, listed = listed, file_system.list(path)
            if [entry.name for entry in before] == [entry.name for entry in listed]:
                return listed
    except OSError as error:
        raise LogDirError(f"cannot list {path}: {error.strerror or error}") from error
    raise LogDirError(f"{path} changes faster than it can be listed; try again, or read a copy of it")


Files = dict[tuple[int, str], DirectoryEntry]
Found = list[tuple[SegmentFile, DirectoryEntry]]


def _segment(file_system: FileSystem, path: str, base_offset: int, current: Files) -> SegmentReader:
    files = {
        kind: file_system.join(path, entry.name)
        for kind in ("log", *SIDE_FILES)
        if (entry := current.get((base_offset, kind))) is not None
    }
    return SegmentReader(file_system, base_offset, files, current[base_offset, "log"].size)


def _complete_swap(file_system: FileSystem, path: str, found: Found, current: Files) -> None:
    """Replace segments by the ``.swap`` files of an interrupted compaction."""
    swaps = set(leftovers(file for file, _ in found).swaps)
    swapped: Files = {(file.base_offset, file.kind): entry for file, entry in found if file in swaps}
    bases = [base_offset for base_offset, kind in swapped if kind == "log"]
    replaced = replaced_offsets(
        {base: _next_offset(_segment(file_system, path, base, swapped)) for base in bases}
    )
    for base_offset, kind in list(current):
        if is_replaced(base_offset, kind, replaced):
            del current[base_offset, kind]
    current.update(swapped)


def _next_offset(segment: SegmentReader) -> int:
    try:
        return segment.end_offset()
    finally:
        segment.close()

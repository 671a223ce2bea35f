"""Decides by names alone whether a directory is a data directory, before anything is written to it.

A name like ``app-1`` may look like a partition's by chance. A directory without ``meta.properties`` is
therefore accepted only if each directory named like a partition contains only files that Kafka writes, at
least one of them, and no foreign file is next to it.

Source: ``LogLoader``, ``LogManager``, ``FileQuorumStateStore``, ``Snapshots``, ``RemoteIndexCache``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.storage.formats.layout import (
    BROKER_FILES,
    CLEAN_SHUTDOWN_FILE,
    LEADER_EPOCH_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    is_metadata_snapshot,
    parse_partition_directory,
    parse_segment_file,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from txnkafka.env import DirectoryEntry, FileSystem

_TEMPORARY: Final = ".tmp"  # suffix of a small file during its replacement
_OF_A_DIRECTORY: Final = BROKER_FILES | {CLEAN_SHUTDOWN_FILE, META_PROPERTIES, "remote-log-index-cache"}
_OF_A_PARTITION: Final = frozenset((LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, "quorum-state"))
# Names that a file system, its snapshots or a version control system keep in an empty directory.
_OF_THE_SYSTEM: Final = frozenset(
    (".DS_Store", ".gitignore", ".gitkeep", ".snapshot", ".snapshots", ".zfs", "lost+found")
)


def holds_log(names: Collection[str]) -> bool:
    """Return True if one of the names in a directory shows that it is a partition."""
    return any(name == PARTITION_METADATA or parse_segment_file(name) is not None for name in names)


def foreign_names(files: FileSystem, path: str, entries: Collection[DirectoryEntry]) -> list[str]:
    """Return the names that Kafka did not write among the ``entries`` of the directory at ``path``, which has
    no ``meta.properties``: names in it, and names in directories named like a partition, as
    ``app-1/notes.txt``. A partition-like directory without any of Kafka's files is returned itself, as
    ``app-1/``. Raises OSError.

    A directory that is a link, or cannot be listed, is left out: it is never written to."""
    found = []
    for entry in entries:
        if entry.may_be_directory and parse_partition_directory(entry.name) is not None:
            if not entry.is_link and not entry.fault:
                found += _foreign_in_partition(files, files.join(path, entry.name), entry.name)
        elif not _is_known(entry.name, _OF_A_DIRECTORY):
            found.append(entry.name)
    return found


def _foreign_in_partition(files: FileSystem, directory: str, shown: str) -> list[str]:
    try:
        names = [entry.name for entry in files.list(directory)]
    except PermissionError:
        return []
    if _OF_THE_SYSTEM.issuperset(names):
        return [f"{shown}/"]
    return [f"{shown}/{name}" for name in names if not _is_of_partition(name)]


def _is_of_partition(name: str) -> bool:
    is_of_log = parse_segment_file(name) is not None or is_metadata_snapshot(name)
    return is_of_log or _is_known(name, _OF_A_PARTITION)


def _is_known(name: str, known: frozenset[str]) -> bool:
    return name in _OF_THE_SYSTEM or name.removesuffix(_TEMPORARY) in known

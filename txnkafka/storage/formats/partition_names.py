"""Selects the directories of a data directory that can be opened as partitions, and the errors that concern a
single partition.

Names are untrusted. A directory is refused if no checkpoint could contain its name (whitespace, not UTF-8),
if Kafka would write the name differently (``t-007``), or if it is a link: recovery truncates and replaces
files, which must not happen elsewhere.
"""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.env import LINK
from txnkafka.errors import KafkaStorageError, LogDirError
from txnkafka.storage.formats.layout import parse_partition_directory, parse_segment_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from txnkafka.env import DirectoryEntry
    from txnkafka.storage.formats.layout import PartitionDirectory

LOG = logging.getLogger("txnkafka.storage")
_WHITESPACE = " \t\n\x0b\f\r"
# Errors of one path, its permissions, or one inode. A failing or full disk, and a lack of
# memory or descriptors, concern all partitions.
_OF_ONE_FILE = frozenset(
    getattr(errno, name)
    for name in (
        "EACCES", "EBADMSG", "EEXIST", "EFBIG", "EINVAL", "EISDIR", "ELOOP", "ENAMETOOLONG", "ENODEV",
        "ENOENT", "ENOTDIR", "ENOTEMPTY", "ENXIO", "EPERM", "ESTALE", "EUCLEAN", "EXDEV",
    )
    if hasattr(errno, name)
)  # fmt: skip


class NamedPartition(NamedTuple):
    """A directory with the name of a partition; ``fault`` is the reason for not opening it, or empty."""

    name: str
    parsed: PartitionDirectory
    fault: str

    @property
    def is_copy(self) -> bool:
        """True for Kafka's unfinished copy for another disk, which it recovers unless it finds the marker."""
        return self.parsed.state == "future"


def named_partitions(entries: Iterable[DirectoryEntry]) -> Iterator[NamedPartition]:
    """Yield the partition directories among the entries of a data directory. A directory whose name is
    another spelling of an existing partition is ignored."""
    listed = list(entries)
    names = {entry.name for entry in listed}
    for entry in listed:
        parsed = parse_partition_directory(entry.name)
        if parsed is None or not entry.may_be_directory:
            if entry.is_directory:
                LOG.warning("%r is not a partition; Kafka would not start with it", entry.name)
            continue
        canonical = str(parsed.topic_partition)
        if parsed.state == "current" and entry.name != canonical and canonical in names:
            LOG.warning("%r is another spelling of %s, and is left alone", entry.name, canonical)
            continue
        yield NamedPartition(entry.name, parsed, _fault(entry, parsed))


def _fault(entry: DirectoryEntry, parsed: PartitionDirectory) -> str:
    if entry.is_link:
        return LINK
    if entry.fault:
        return f"cannot be opened: {entry.fault}"
    if not fits_checkpoint(parsed.topic_partition.topic):
        return "has a name that no checkpoint can hold: it has whitespace, or is not UTF-8"
    if parsed.state == "current" and entry.name != str(parsed.topic_partition):
        return f"is called {parsed.topic_partition} by Kafka: rename it"
    return ""


def fits_checkpoint(topic: str) -> bool:
    """Return True if a checkpoint line can contain the topic: UTF-8 words, separated by ASCII whitespace."""
    try:
        topic.encode()
    except UnicodeEncodeError:
        return False
    return not any(character in topic for character in _WHITESPACE)


def fault_of_file(entry: DirectoryEntry) -> str:
    """Return the reason why a file of a partition must not be written, or an empty string. Links are refused:
    their target is elsewhere."""
    if parse_segment_file(entry.name) is None:
        return ""
    if entry.is_link:
        return LINK
    if entry.fault:
        return f"cannot be opened: {entry.fault}"
    return "is a directory, where a file belongs" if entry.is_directory else ""


def concerns_one_partition(error: Exception) -> bool:
    """Return True if the error concerns only one partition, so that the others can be opened."""
    cause = error if isinstance(error, OSError) else error.__cause__
    if isinstance(cause, OSError):
        return cause.errno in _OF_ONE_FILE
    return not isinstance(error, KafkaStorageError)


def unreadable(error: OSError) -> LogDirError:
    """Return the error of a partition that cannot be opened because of ``error``."""
    found = LogDirError(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    found.__cause__ = error
    return found

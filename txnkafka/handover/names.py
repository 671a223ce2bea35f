"""Finds names of files and directories that keep Apache Kafka from starting, and damaged small files of the
metadata log that do the same; this package's readers ignore all of them. Also finds directories and special
files in place of regular files that both owners need.

Source: ``LogLoader.load``, ``LogFileUtils.offsetFromFile``, ``Snapshots.parse``, ``LogManager.loadLogs``,
``LeaderEpochCheckpointFile``, ``PartitionMetadataFile``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from txnkafka.errors import CorruptFileError
from txnkafka.handover.registry import METADATA_DIRECTORY
from txnkafka.handover.report import error
from txnkafka.storage.formats.checkpoint import parse_leader_epoch_checkpoint, parse_partition_metadata
from txnkafka.storage.formats.layout import (
    BROKER_FILES,
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    is_metadata_snapshot,
    parse_partition_directory,
    parse_segment_file,
)
from txnkafka.storage.formats.limits import EPOCHS_LIMIT, SMALL_FILE_LIMIT

if TYPE_CHECKING:
    from txnkafka.env import DataFiles
    from txnkafka.logdir import Finding

_SEGMENTS: Final = re.compile(r".*\.(log|index|timeindex|txnindex|snapshot)(\.swap|\.cleaned)?", re.DOTALL)
_SNAPSHOTS: Final = re.compile(r".*\.checkpoint(\.part|\.deleted)?", re.DOTALL)
_METADATA_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAQ"


def check_kinds(files: DataFiles, path: str) -> Iterator[Finding]:
    """Yield an error for each entry of the data directory at ``path`` that should be a file, but is a
    directory or cannot be opened. Raises OSError."""
    for entry in files.list(path):
        if entry.name in BROKER_FILES and (entry.is_directory or entry.fault):
            message = f"no broker starts with it: {entry.fault or 'a directory'}, where a file belongs"
            yield error("not-a-file", files.join(path, entry.name), message, "move it away")


def check_names(files: DataFiles, path: str) -> Iterator[Finding]:
    """Yield the faults that keep Apache Kafka from starting on the data directory at ``path``. Raises
    OSError."""
    entries = files.list(path)
    names = {entry.name for entry in entries}
    for entry in entries:
        found = parse_partition_directory(entry.name)
        if found is None or not entry.may_be_directory or entry.fault:
            continue
        directory = files.join(path, entry.name)
        if found.state == "future" and str(found.topic_partition) in names:
            yield error(
                "future-directory", directory,
                f"a copy of {found.topic_partition}, made for another directory of log.dirs, is next to it: "
                "Apache Kafka does not start with both",
                "move it away",
            )  # fmt: skip
        elif found.state == "current":
            yield from _files(files, directory, is_metadata=entry.name == METADATA_DIRECTORY)
    yield from _metadata_files(files, files.join(path, METADATA_DIRECTORY))


def _files(files: DataFiles, directory: str, *, is_metadata: bool) -> Iterator[Finding]:
    for entry in files.list(directory):
        name = entry.name
        is_wrong = _SEGMENTS.fullmatch(name) is not None and parse_segment_file(name) is None
        is_wrong |= is_metadata and bool(_SNAPSHOTS.fullmatch(name)) and not is_metadata_snapshot(name)
        if is_wrong and not entry.is_directory:
            yield error(
                "foreign-file", files.join(directory, name),
                "the name looks like a log file, but has no offset of 20 digits: Apache Kafka does "
                "not start, or reads it as a log file",
                "move it away",
            )  # fmt: skip


def _metadata_files(files: DataFiles, directory: str) -> Iterator[Finding]:
    checks = (LEADER_EPOCH_CHECKPOINT, _fault_of_epochs), (PARTITION_METADATA, _fault_of_topic_id)
    for name, fault_of in checks:
        path = files.join(directory, name)
        fault = fault_of(files, path) if files.exists(path) else ""
        if fault:
            message = f"Apache Kafka does not start with it: {fault}"
            yield error("bad-metadata-file", path, message, "remove the file: Apache Kafka writes it again")


def _fault_of_epochs(files: DataFiles, path: str) -> str:
    try:
        parse_leader_epoch_checkpoint(files.read(path, EPOCHS_LIMIT))
    except CorruptFileError as fault:
        return str(fault)
    return ""


def _fault_of_topic_id(files: DataFiles, path: str) -> str:
    try:
        topic_id = parse_partition_metadata(files.read(path, SMALL_FILE_LIMIT)).topic_id
    except CorruptFileError as fault:
        return str(fault)
    return "" if topic_id == _METADATA_TOPIC_ID else f"it has the topic id {topic_id}"

"""Parses and builds the names of directories and files in a log directory.

Kafka finds everything by name: a directory named ``orders-3`` is a partition, a file named
``00000000000000000042.log`` is a segment. These functions parse such names by Kafka's own rules and return
None for names that Kafka would not accept.

Source: ``LocalLog.parseTopicPartitionName``, ``LogFileUtils``, ``LogLoader``, ``Snapshots``.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from txnkafka.model import TopicPartition

LOCK_FILE: Final = ".lock"
META_PROPERTIES: Final = "meta.properties"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"
RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT: Final = "log-start-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT: Final = "cleaner-offset-checkpoint"
BOOTSTRAP_CHECKPOINT: Final = "bootstrap.checkpoint"
# the files, outside partitions, that a running broker reads and replaces
BROKER_FILES: Final = frozenset(
    (
        BOOTSTRAP_CHECKPOINT, CLEANER_OFFSET_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT, LOCK_FILE,
        LOG_START_OFFSET_CHECKPOINT, RECOVERY_POINT_CHECKPOINT,
    )
)  # fmt: skip
LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"

DirectoryState = Literal["current", "future", "delete", "stray"]
FileKind = Literal["log", "index", "timeindex", "txnindex", "snapshot"]
FileSuffix = Literal["", ".deleted", ".cleaned", ".swap"]

_MARKED_STATES: Final[tuple[DirectoryState, ...]] = ("delete", "future", "stray")
_METADATA_SNAPSHOT = re.compile(r"\d{20}-\d{10}\.checkpoint(\.part|\.deleted)?", re.ASCII)
_PARTITION_NUMBER = re.compile(r"\+?[0-9]+")
_SEGMENT_FILE = re.compile(
    r"([0-9]{20})\.(log|index|timeindex|txnindex|snapshot)(\.deleted|\.cleaned|\.swap)?"
)
_LARGEST_PARTITION: Final = 2**31 - 1
_LARGEST_OFFSET: Final = 2**63 - 1
_LONGEST_NAME: Final = 255  # bytes, in all common file systems


class PartitionDirectory(NamedTuple):
    """The parsed name of a partition directory; ``unique_id`` is set unless the state is ``current``."""

    topic_partition: TopicPartition
    state: DirectoryState
    unique_id: str | None


class SegmentFile(NamedTuple):
    """The parsed name of a segment's file; a snapshot covers the offsets below its own."""

    base_offset: int
    kind: FileKind
    suffix: FileSuffix


def parse_partition_directory(name: str) -> PartitionDirectory | None:
    """Parse the name of a partition directory; return None if Kafka would not accept it."""
    for state in _MARKED_STATES:
        if name.endswith(f"-{state}"):
            stem, _, unique_id = name.removesuffix(f"-{state}").rpartition(".")
            if not unique_id or "-" not in stem[1:-1] or any(map(str.isspace, name)):
                return None
            return _directory(stem, state, unique_id)
    return _directory(name, "current", None)


def _directory(name: str, state: DirectoryState, unique_id: str | None) -> PartitionDirectory | None:
    topic, _, number = name.rpartition("-")
    # Twenty digits bound the conversion; more never fit in 32 bits unless they are leading zeros.
    if not topic or len(number) > 20 or not _PARTITION_NUMBER.fullmatch(number):
        return None
    partition = int(number)
    if partition > _LARGEST_PARTITION:
        return None
    return PartitionDirectory(TopicPartition(topic, partition), state, unique_id)


def marked_directory(topic_partition: TopicPartition, state: DirectoryState, unique_id: str) -> str:
    """Return the name of a partition directory that is not ``current``. In a name that would be too long, the
    topic is cut: without the partition number, neither this loader nor Kafka's would recognize the directory
    (``LocalLog.logDirNameWithSuffixCappedLength``)."""
    topic, rest = topic_partition.topic, f"-{topic_partition.partition}.{unique_id}-{state}"
    while len(topic.encode("utf-8", "surrogateescape")) > _LONGEST_NAME - len(rest):
        topic = topic[:-1]
    return topic + rest


def parse_segment_file(name: str) -> SegmentFile | None:
    """Parse the name of a segment's file; None for foreign files and unpadded offsets."""
    match = _SEGMENT_FILE.fullmatch(name)
    if match is None or int(match[1]) > _LARGEST_OFFSET:
        return None
    return SegmentFile(int(match[1]), match[2], match[3] or "")  # type: ignore[arg-type]


def file_name(base_offset: int, kind: FileKind) -> str:
    """Return the name of a segment's file: the base offset with twenty digits, and the kind."""
    if not 0 <= base_offset <= _LARGEST_OFFSET:
        raise ValueError(f"no file name for base offset {base_offset}")
    return f"{base_offset:020d}.{kind}"


def is_metadata_snapshot(name: str) -> bool:
    """Return True for the name of a metadata log snapshot: end offset and epoch, finished or not
    (``Snapshots.parse``)."""
    return _METADATA_SNAPSHOT.fullmatch(name) is not None

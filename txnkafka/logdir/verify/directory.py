"""Checks the files around the logs: names in directories, checkpoints, ids, owners of the directory.

A broker reads all these files when it starts, and some faults keep it from starting. The required files
depend on the directory: a broker's log directory, or a copy of some partitions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from txnkafka.env import DirectoryEntry
from txnkafka.errors import CorruptFileError
from txnkafka.logdir.noted_offsets import beyond_log_end
from txnkafka.logdir.partition_files import PartitionFiles
from txnkafka.logdir.partition_source import PartitionSource
from txnkafka.logdir.verify.findings import Findings
from txnkafka.shown import counted
from txnkafka.storage.formats import (
    CLEAN_SHUTDOWN_FILE,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    EpochEntry,
    MetaProperties,
    parse_clean_shutdown,
    parse_leader_epoch_checkpoint,
    parse_meta_properties,
    parse_partition_directory,
    parse_segment_file,
)
from txnkafka.storage.formats.limits import EPOCHS_LIMIT, SMALL_FILE_LIMIT

if TYPE_CHECKING:
    from txnkafka.logdir.directory import LogDir

REMOTE_INDEX_CACHE = "remote-log-index-cache"
DERIVED_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")
BROKER_FILES = {
    CLEAN_SHUTDOWN_FILE,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
}


def check_directories(log_dir: LogDir, findings: Findings) -> None:
    """Check the log directories themselves, without their partitions."""
    for finding in log_dir.findings:
        findings.take(finding)
    owners: dict[str, MetaProperties] = {}
    for path in log_dir.paths:
        if log_dir.file_system.is_directory(path):
            entries = log_dir.file_system.list(path)
            if any(entry.name in BROKER_FILES for entry in entries):
                _log_directory(log_dir, path, entries, findings, owners)
    for path, parsed in log_dir.other_directories:
        text = f"a directory of {parsed.topic_partition} that the broker has marked {parsed.state!r}"
        findings.add("other-directory", path, text)
    _owners(owners, findings)


def _log_directory(
    log_dir: LogDir,
    path: str,
    entries: list[DirectoryEntry],
    findings: Findings,
    owners: dict[str, MetaProperties],
) -> None:
    files = log_dir.file_system
    names = {entry.name for entry in entries}
    for entry in entries:
        if (
            entry.is_directory
            and entry.name != REMOTE_INDEX_CACHE
            and not parse_partition_directory(entry.name)
        ):
            text = "the name is not a topic and a partition number"
            findings.add("foreign-directory", files.join(path, entry.name), text)
    full = files.join(path, META_PROPERTIES)
    if META_PROPERTIES not in names:
        findings.add("missing-meta-properties", full, "the file is missing from a broker's log directory")
    else:
        try:
            owners[full] = parse_meta_properties(files.read(full, SMALL_FILE_LIMIT))
        except (CorruptFileError, OSError) as error:
            findings.add("bad-meta-properties", full, _reason(error))
    if CLEAN_SHUTDOWN_FILE in names:
        full = files.join(path, CLEAN_SHUTDOWN_FILE)
        try:
            parse_clean_shutdown(files.read(full, SMALL_FILE_LIMIT))
        except (CorruptFileError, OSError) as error:
            findings.add("bad-clean-shutdown-file", full, _reason(error))


def _owners(owners: dict[str, MetaProperties], findings: Findings) -> None:
    for field in ("cluster_id", "node_id"):
        values = {path: getattr(owner, field) for path, owner in owners.items()}
        if len(set(values.values())) > 1:
            for path, value in values.items():
                text = f"{field.replace('_', '.')} is {value}, which differs between these directories"
                findings.add("meta-properties-mismatch", path, text)


def check_topic_ids(sources: list[PartitionSource], findings: Findings) -> None:
    """Check that all partitions of a topic have the same id. If no id has a majority, every partition is a
    finding."""
    by_topic: defaultdict[str, list[PartitionSource]] = defaultdict(list)
    for source in sources:
        if source.topic_id is not None:
            by_topic[source.topic_partition.topic].append(source)
    for topic, same_topic in by_topic.items():
        counts = Counter(source.topic_id for source in same_topic).most_common(2)
        if len(counts) < 2:
            continue
        right = counts[0][0] if counts[0][1] > counts[1][1] else None
        for source in same_topic:
            if source.topic_id != right:
                text = f"topic id {source.topic_id} differs from that of other partitions of {topic}"
                findings.add("topic-id-mismatch", _join(source, PARTITION_METADATA), text)


def check_names(source: PartitionSource, files: PartitionFiles, findings: Findings) -> None:
    """Check the names in a partition directory."""
    _missing_indexes(files, findings, being_written=source.being_written)
    if source.only_base_offset is not None:
        return
    entries = source.file_system.list(source.path)
    names = {entry.name for entry in entries}
    for entry in entries:
        if (
            not entry.is_directory
            and entry.name.endswith(DERIVED_SUFFIXES)
            and not parse_segment_file(entry.name)
        ):
            text = "the name does not begin with an offset of 20 digits: no broker reads it as a segment"
            findings.add("foreign-file", _join(source, entry.name), text)
    for name in files.leftovers:
        findings.add("leftover-file", _join(source, name), "left over from an interrupted change")
    for name in files.orphans:
        findings.add("orphan-index", _join(source, name), "there is no segment for it")
    # before 2.8, and with ZooKeeper, topic ids were not on disk: then no partition has one
    if PARTITION_METADATA not in names and _expects_metadata(source):
        findings.add("missing-partition-metadata", _join(source, PARTITION_METADATA), "the file is missing")


def _missing_indexes(files: PartitionFiles, findings: Findings, *, being_written: bool) -> None:
    # a running broker may have the newest segment's entries in memory
    segments = files.segments[:-1] if being_written else files.segments
    for kind, code in (("index", "missing-index"), ("timeindex", "missing-timeindex")):
        without = [segment for segment in segments if kind not in segment.files]
        if without:
            path = f"{without[0].path.removesuffix('.log')}.{kind}"
            total = counted(len(files.segments), "segment")
            first = ", this is the first" if len(without) > 1 else ""
            text = f"missing for {len(without):,} of {total}{first}"
            findings.add(code, path, text)


def _expects_metadata(source: PartitionSource) -> bool:
    full = source.file_system.join(_parent(source), META_PROPERTIES)
    try:
        if source.state != "current" or not source.file_system.exists(full):
            return False
        return parse_meta_properties(source.file_system.read(full, SMALL_FILE_LIMIT)).version >= 1
    except (CorruptFileError, OSError):
        return False


def read_epochs(source: PartitionSource, findings: Findings) -> list[EpochEntry] | None:
    """Return the leader epochs of the checkpoint; None if it is missing or damaged."""
    path = _join(source, LEADER_EPOCH_CHECKPOINT)
    try:
        if not source.file_system.exists(path):
            return None
        return parse_leader_epoch_checkpoint(source.file_system.read(path, EPOCHS_LIMIT))
    except (CorruptFileError, OSError) as error:
        findings.add("bad-leader-epoch-checkpoint", path, _reason(error))
        return None


def check_epochs_exist(source: PartitionSource, findings: Findings) -> None:
    """Report a log whose batches have leader epochs, but without a checkpoint of the epochs."""
    path = _join(source, LEADER_EPOCH_CHECKPOINT)
    if not source.file_system.exists(path):
        findings.add("missing-leader-epoch-checkpoint", path, "the file is missing")


def check_offsets(source: PartitionSource, end_offset: int, findings: Findings) -> None:
    """Compare the offsets in the checkpoints of the log directory with the end of the log."""
    for finding in beyond_log_end(source, end_offset):
        findings.take(finding)


def _join(source: PartitionSource, name: str) -> str:
    return source.file_system.join(source.path, name)


def _parent(source: PartitionSource) -> str:
    return source.file_system.split(source.path)[0]


def _reason(error: CorruptFileError | OSError) -> str:
    return (
        error.reason if isinstance(error, CorruptFileError) else f"cannot be read: {error.strerror or error}"
    )

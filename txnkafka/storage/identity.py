"""Reads and writes the identity of a data directory (``meta.properties``) and the topic id of a partition
directory (``partition.metadata``).

Source: ``MetaProperties``, ``PartitionMetadataFile``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.env import unique_name, write_durably
from txnkafka.errors import CorruptFileError, LogDirError
from txnkafka.storage.formats.checkpoint import format_partition_metadata, parse_partition_metadata
from txnkafka.storage.formats.layout import META_PROPERTIES, PARTITION_METADATA, parse_segment_file
from txnkafka.storage.formats.limits import SMALL_FILE_LIMIT
from txnkafka.storage.formats.meta_properties import (
    MetaProperties,
    format_meta_properties,
    parse_meta_properties,
)
from txnkafka.storage.formats.topic_id import topic_id_from_bytes

if TYPE_CHECKING:
    from txnkafka.env import DataFiles


def identify(
    files: DataFiles, path: str, cluster_id: str | None, node_id: int | None
) -> MetaProperties | None:
    """Read the identity of the directory at ``path``; None without one. Raises LogDirError if the file is
    damaged, or names another cluster or node; OSError."""
    path = files.join(path, META_PROPERTIES)
    if not files.exists(path):
        return None
    try:
        found = parse_meta_properties(files.read(path, SMALL_FILE_LIMIT))
    except CorruptFileError as error:
        raise LogDirError(
            f"{path} is damaged, and the directory has no identity without it: {error.reason}. Restore it "
            "from a copy, or write version=1, cluster.id, node.id and directory.id of its broker into it"
        ) from error
    for name, wanted, there in (
        ("cluster.id", cluster_id, found.cluster_id),
        ("node.id", node_id, found.node_id),
    ):
        if wanted is not None and there is not None and wanted != there:
            raise LogDirError(
                f"{path} has {name}={there}, not {wanted}: the directory belongs to another cluster or node"
            )
    return found


def identify_or_make(
    files: DataFiles, path: str, cluster_id: str | None, node_id: int | None
) -> MetaProperties:
    """Read the identity of a directory for its writing owner, or create it, durably. Raises like
    ``identify``, and LogDirError if the file names no cluster: Kafka does not start with it."""
    found = identify(files, path, cluster_id, node_id)
    if found is None:
        return _make_identity(files, path, cluster_id, node_id)
    if found.cluster_id is None:
        raise LogDirError(
            f"{files.join(path, META_PROPERTIES)} names no cluster: add the line cluster.id= with its id"
        )
    return found


def _make_identity(
    files: DataFiles, path: str, cluster_id: str | None, node_id: int | None
) -> MetaProperties:
    made = MetaProperties(1, cluster_id or random_uuid(), 1 if node_id is None else node_id, random_uuid())
    write_durably(files, files.join(path, META_PROPERTIES), format_meta_properties(made))
    return made


def topic_id_at_opening(files: DataFiles, directory: str, *, had_batches: bool) -> tuple[str | None, bool]:
    """Return the topic id of a partition, and True if its damaged file was removed, which a crash left during
    the creation of a partition that never ``had_batches``. Raises CorruptFileError and OSError."""
    try:
        return _topic_id_of(files, directory), False
    except CorruptFileError:
        if had_batches or not _remove_torn_topic_id(files, directory):
            raise
        return None, True


def write_topic_id(files: DataFiles, directory: str, topic_id: str) -> None:
    """Write the topic id of a partition directory, durably. Raises OSError."""
    path = files.join(directory, PARTITION_METADATA)
    write_durably(files, path, format_partition_metadata(topic_id))


def _topic_id_of(files: DataFiles, directory: str) -> str | None:
    """Read the topic id of a partition directory; None if a broker before 2.8, which wrote no ids, created
    it. Raises CorruptFileError and OSError."""
    path = files.join(directory, PARTITION_METADATA)
    if not files.exists(path):
        return None
    try:
        return parse_partition_metadata(files.read(path, SMALL_FILE_LIMIT)).topic_id
    except CorruptFileError as error:
        error.locate(file=path)
        raise


def _remove_torn_topic_id(files: DataFiles, directory: str) -> bool:
    """Remove a damaged topic id file if its log was never written to, as after a crash during the partition's
    creation; return True if it was removed. Call before recovery, which may truncate a damaged log to zero
    bytes. Raises OSError."""
    if was_written(files, directory):
        return False
    files.remove(files.join(directory, PARTITION_METADATA))
    files.sync_directory(directory)  # else the file may reappear, and be refused once the log has batches
    return True


def was_written(files: DataFiles, directory: str) -> bool:
    """Return True if a segment has bytes, or a base offset that shows that earlier segments existed."""
    named = ((parse_segment_file(entry.name), entry.size) for entry in files.list(directory))
    return any(file.kind == "log" and (size or file.base_offset) for file, size in named if file)


def random_uuid() -> str:
    """Return a new id for a topic, a cluster or a directory: 22 characters. It does not begin with ``-``,
    which Kafka's tools would parse as an option (``Uuid.randomUuid``)."""
    while (found := topic_id_from_bytes(bytes.fromhex(unique_name()))).startswith("-"):
        pass
    return found

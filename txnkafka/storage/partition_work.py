"""Creates and deletes partitions: the part that waits for the disk.

Source: ``LogManager.getOrCreateLog``, ``LogManager.asyncDelete``.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.env import remove_tree, replace_file, sync_new_directories
from txnkafka.storage.formats.layout import PARTITION_METADATA
from txnkafka.storage.formats.partition_names import concerns_one_partition
from txnkafka.storage.identity import was_written
from txnkafka.storage.recovery.log_loader import Start, new_log, open_log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from txnkafka.config import LogConfig
    from txnkafka.env import DataFiles
    from txnkafka.model import TopicPartition
    from txnkafka.storage.log.log_resources import LogResources
    from txnkafka.storage.log.partition_log import PartitionLog
    from txnkafka.storage.work import Work

LOG = logging.getLogger("txnkafka.storage")


class NewPartition(NamedTuple):
    """A partition to create in ``directory``; ``is_there``: the directory is left over from an interrupted or
    failed creation."""

    topic_partition: TopicPartition
    directory: str
    metadata: bytes
    config: LogConfig
    is_there: bool


def is_unfinished(files: DataFiles, path: str, name: str) -> bool:
    """Return True if ``name`` in the data directory is a directory that never had a batch: the creation of
    its partition was interrupted or failed. Raises OSError."""
    there = [entry for entry in files.list(path) if entry.name == name]
    is_directory = all(entry.is_directory and not entry.is_link for entry in there)
    return is_directory and not was_written(files, files.join(path, name))


def remove_leftover(files: DataFiles, path: str) -> None:
    """Remove files left over from a deletion; if a directory cannot be removed, log that and keep it. Raises
    an OSError that concerns all partitions."""
    try:
        remove_tree(files, path)
    except OSError as error:
        if not concerns_one_partition(error):
            raise
        LOG.warning("%s is left over from a deletion, and cannot be removed: %s", path, error)


class Creation:
    """Work that runs ``first``, then creates partitions in the data directory ``path``, all or none.
    ``on_finished`` gets their logs, which share ``resources``, or no logs after a failure."""

    def __init__(
        self,
        files: DataFiles,
        path: str,
        partitions: Sequence[NewPartition],
        *,
        first: Work | None,
        on_finished: Callable[[Mapping[TopicPartition, PartitionLog]], None],
        now_ms: int,
        resources: LogResources,
    ) -> None:
        self._files = files
        self._path = path
        self._partitions = partitions
        self._first = first
        self._on_finished = on_finished
        self._now_ms = now_ms
        self._resources = resources
        self._logs: dict[TopicPartition, PartitionLog] = {}

    def run(self) -> None:
        """Create the directories, the empty logs and the topic id files, and sync them together. Raises
        OSError and KafkaStorageError, after removing all created files as far as possible."""
        if self._first is not None:
            self._first.run()
        try:
            for partition in self._partitions:
                self._logs[partition.topic_partition] = self._create(partition)
            sync_new_directories(self._files, self._path, [new.directory for new in self._partitions])
        except BaseException:
            for partition in self._partitions:
                with contextlib.suppress(OSError):  # raise the first error
                    remove_tree(self._files, partition.directory)
            raise

    def _create(self, partition: NewPartition) -> PartitionLog:
        named = self._files, partition.directory, partition.topic_partition, partition.config
        if partition.is_there:
            log = open_log(*named, Start(), now_ms=self._now_ms, resources=self._resources).log
        else:
            self._files.make_directory(partition.directory)
            log = new_log(*named, now_ms=self._now_ms, resources=self._resources)
        path = self._files.join(partition.directory, PARTITION_METADATA)
        replace_file(self._files, path, partition.metadata, is_synced=False)
        return log

    def finish(self, error: Exception | None) -> None:
        """Report the new logs, or release them all after an error."""
        if self._first is not None:
            self._first.finish(error)
        if error is not None:
            for log in self._logs.values():
                log.release()
        self._on_finished({} if error is not None else self._logs)


class Deletion:
    """Work that removes the directory ``doomed`` of a deleted partition, which was renamed in ``path``."""

    def __init__(self, files: DataFiles, path: str, doomed: str, on_finished: Callable[[str], None]) -> None:
        self._files = files
        self._path = path
        self._doomed = doomed
        self._on_finished = on_finished

    def run(self) -> None:
        """Sync the new name, then remove the files. Raises OSError; the next owner removes the remaining
        files."""
        self._files.sync_directory(self._path)
        remove_tree(self._files, self._doomed)

    def finish(self, error: Exception | None) -> None:
        """Report the end of the deletion; even after an error, the partition does not exist for this
        owner."""
        self._on_finished(self._doomed)


class DirectorySync:
    """Work that makes new names in a directory durable."""

    def __init__(self, files: DataFiles, path: str) -> None:
        self._files = files
        self._path = path

    def run(self) -> None:
        """Sync the directory. Raises OSError."""
        self._files.sync_directory(self._path)

    def finish(self, error: Exception | None) -> None:
        """Do nothing: only callers that wait for the work depend on it."""

"""Partitions that are created and deleted: the part that waits for the disk.

Source: ``LogManager.getOrCreateLog``, ``LogManager.asyncDelete``.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.env import remove_tree, replace_file, sync_new_directories
from txnkafka.storage.formats.layout import PARTITION_METADATA
from txnkafka.storage.recovery.log_loader import Start, new_log, open_log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from txnkafka.config import LogConfig
    from txnkafka.env import DataFiles
    from txnkafka.model import TopicPartition
    from txnkafka.storage.log.log_resources import LogResources
    from txnkafka.storage.log.partition_log import PartitionLog
    from txnkafka.storage.work import Work

__all__ = ["Creation", "Deletion", "NewPartition"]


class NewPartition(NamedTuple):
    """A partition to create in ``directory``, which ``is_there`` when a crash has left it."""

    topic_partition: TopicPartition
    directory: str
    metadata: bytes
    config: LogConfig
    is_there: bool


class Creation:
    """Work that creates partitions in the data directory ``path``, after ``first``, all of them or none.
    ``on_finished`` gets their logs, which share ``resources``, none when it failed."""

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
        """Create the directories, the empty logs and the files with the topic ids, and make all of it durable
        at once. Raises OSError and KafkaStorageError; then everything that was created has been removed, as
        far as that is possible."""
        if self._first is not None:
            self._first.run()
        try:
            for partition in self._partitions:
                self._logs[partition.topic_partition] = self._create(partition)
            sync_new_directories(self._files, self._path, [each.directory for each in self._partitions])
        except BaseException:
            for partition in self._partitions:
                with contextlib.suppress(OSError):  # the caller has an error already
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
        """Put the logs into service, or none of them after an error."""
        if self._first is not None:
            self._first.finish(error)
        if error is not None:
            for log in self._logs.values():
                log.release()
        self._on_finished({} if error is not None else self._logs)


class Deletion:
    """Work that removes the directory ``doomed`` of a partition, which has left ``path`` under another
    name."""

    def __init__(self, files: DataFiles, path: str, doomed: str, on_finished: Callable[[str], None]) -> None:
        self._files = files
        self._path = path
        self._doomed = doomed
        self._on_finished = on_finished

    def run(self) -> None:
        """Sync the new name, then remove the files. Raises OSError; the next owner removes what is left."""
        self._files.sync_directory(self._path)
        remove_tree(self._files, self._doomed)

    def finish(self, error: Exception | None) -> None:
        """The partition is gone: after an error it is gone for this owner."""
        self._on_finished(self._doomed)

"""Opens and owns a data directory: its lock, identity, checkpoints, and the logs of all partitions.

It maintains all files that Kafka keeps in a log directory, so that Kafka can continue with the directory, and
vice versa. The marker of a clean shutdown is removed, durably, before the first change, and written again
when all derived files are on the disk.

Source: ``LogManager``, ``OffsetCheckpointFile``, ``CleanShutdownFileHandler``, ``MetaProperties``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Self

from txnkafka.config import LogConfig
from txnkafka.env import LocalDataFiles, SystemClock, unique_name
from txnkafka.errors import FlushUnderWayError, KafkaError, LogDirError, UnknownTopicOrPartitionError
from txnkafka.model import TopicPartition, validate_partition
from txnkafka.storage import partition_work
from txnkafka.storage.clean_marker import NO_EPOCH, noted_repair, write_clean_marker
from txnkafka.storage.formats.checkpoint import format_partition_metadata
from txnkafka.storage.formats.layout import (
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    DirectoryState,
    marked_directory,
)
from txnkafka.storage.formats.partition_names import (
    NamedPartition,
    concerns_one_partition,
    named_partitions,
    unreadable,
)
from txnkafka.storage.identity import topic_id_at_opening, write_topic_id
from txnkafka.storage.locked_directory import lock_directory
from txnkafka.storage.log import truncation
from txnkafka.storage.log.log_resources import LogResources
from txnkafka.storage.log.repair_step import RepairStep
from txnkafka.storage.offset_checkpoints import OffsetCheckpoints
from txnkafka.storage.open_logs import OpenLogs
from txnkafka.storage.partition_work import Creation, Deletion, DirectorySync, NewPartition
from txnkafka.storage.recovery.log_loader import Repair, Start, open_log
from txnkafka.storage.work import perform

if TYPE_CHECKING:
    from txnkafka.env import DataFiles
    from txnkafka.storage.clean_marker import CleanMarker
    from txnkafka.storage.locked_directory import LockedDirectory
    from txnkafka.storage.log.partition_log import PartitionLog
    from txnkafka.storage.offset_checkpoints import CheckpointWork

LOG = logging.getLogger("txnkafka.storage")
_METADATA_TOPIC = "__cluster_metadata"  # not a log of this class: it has another owner


class DataDirectory:
    """An open data directory. ``logs`` are its partitions, ``retired`` the logs waiting for deletion;
    ``refused`` has the error of each partition that cannot be opened: damaged below its recovery point,
    unreadable, or a link. ``repairs`` lists the repairs made by opening. ``was_clean``: the last owner
    stopped cleanly; ``is_left_clean``: this one did. Only one thread at a time may use it, except for ``run``
    of the returned work, for which a host releases its lock.

    ``config`` returns the settings of a topic's logs. A ``repair`` of ``only`` some partitions leaves the
    others unchanged; a repair creates no missing identity. ``locked`` is the directory if the caller has
    locked it; the ids are not compared then. With ``holds_recovery_points``, the recovery points of an owner
    that did not stop cleanly stay on the disk until ``checkpoints.release``. Raises the errors of
    ``lock_directory``, and OSError."""

    def __init__(
        self,
        files: DataFiles,
        path: str,
        config: Callable[[str], LogConfig],
        *,
        now_ms: int,
        cluster_id: str | None = None,
        node_id: int | None = None,
        repair: Repair | None = None,
        only: Collection[TopicPartition] | None = None,
        holds_recovery_points: bool = False,
        locked: LockedDirectory | None = None,
    ) -> None:
        if not callable(config):
            raise TypeError("config must be a function: lambda topic: LogConfig(); or use DataDirectory.open")
        self.files, self.path = files, path
        self.logs = OpenLogs()
        self.retired: dict[TopicPartition, PartitionLog] = {}
        self.topic_ids: dict[TopicPartition, str] = {}
        self.refused: dict[TopicPartition, KafkaError] = {}
        self.repairs: list[str] = []
        self.is_left_clean = False
        self.repairs_of_directory: list[RepairStep] = []  # repairs of files outside partitions
        self.in_creation: dict[TopicPartition, str] = {}  # topic ids of an unfinished creation
        self._deletions: set[str] = set()
        self.broker_epoch = NO_EPOCH
        self._config, self._repair, self._only = config, repair, only
        self._holds_recovery_points = holds_recovery_points
        self._resources = LogResources()
        if locked is None:
            locked = lock_directory(files, path, cluster_id, node_id, makes_identity=repair is None)
        self._owner, self.identity = locked.owner, locked.identity
        try:
            self._open_all(locked.begin_logs(), now_ms)
        except BaseException:
            self._give_back()
            raise

    @classmethod
    def open(cls, path: str, config: LogConfig | None = None) -> Self:
        """Open or create the directory at ``path`` on a local disk, using the system's clock; ``config``
        applies to the logs of all topics. Raises the errors of the constructor."""
        settings = config or LogConfig()
        return cls(LocalDataFiles(), path, lambda topic: settings, now_ms=SystemClock().now_ms())

    def __repr__(self) -> str:
        return f"DataDirectory({self.path!r}, {len(self.logs)} logs{', closed' * self.is_closed})"

    def _open_all(self, marker: CleanMarker | None, now_ms: int) -> None:
        found = list(named_partitions(self.files.list(self.path)))
        there = {named.parsed.topic_partition for named in found}
        self.checkpoints = OffsetCheckpoints(self.files, self.path, there, self._note, self._owner)
        self.was_clean, self.broker_epoch = marker is not None, marker.broker_epoch if marker else NO_EPOCH
        self._repaired = noted_repair(marker, None if self._repair is None else self._repair.hands_over)
        copies = {each.parsed.topic_partition for each in found if each.is_copy}
        self._untouched: set[TopicPartition] = set()
        self.recovered_from: dict[TopicPartition, int] = {}  # recovery points of the previous owner
        for partition, fault in self._partitions(found):
            if self._only is not None and partition not in self._only:
                self._untouched.add(partition)
                continue
            if fault:
                self._refuse(partition, LogDirError(fault))
                continue
            point, log_start, mark = self.checkpoints.noted(partition)
            self.recovered_from[partition] = point or 0
            self._open(partition, Start(self.was_clean, point, log_start, self._repair, mark), now_ms)
        closed = self._untouched | self.refused.keys()
        self.checkpoints.keep_only(closed, copies, self.logs, repairs=bool(self._repair))
        self._untouched |= copies
        if self._holds_recovery_points and not self.was_clean:
            self.checkpoints.hold(self.recovered_from)
        self.checkpoint()

    def _note(self, step: RepairStep) -> None:
        """Log and record a repair that concerns no single partition."""
        LOG.warning("%s", step)
        self.repairs.append(str(step))
        self.repairs_of_directory.append(step)

    def _partitions(self, there: Iterable[NamedPartition]) -> Iterator[tuple[TopicPartition, str]]:
        """Yield the partitions in the directory, each with the fault that prevents opening it, or an empty
        text; remove remaining files of deleted partitions."""
        for name, found, fault in there:
            path = self._file(name)
            if found.state == "delete" and self._only is None:
                partition_work.remove_leftover(self.files, path)
            elif found.state == "current" and found.topic_partition.topic != _METADATA_TOPIC:
                yield found.topic_partition, fault and f"{path} {fault}"

    def _open(self, partition: TopicPartition, start: Start, now_ms: int) -> None:
        directory = self._file(str(partition))
        had_batches = bool(start.recovery_point or start.log_start_offset)
        try:
            topic_id, is_torn = topic_id_at_opening(self.files, directory, had_batches=had_batches)
            opened = open_log(
                self.files, directory, partition, self._config(partition.topic), start,
                now_ms=now_ms, resources=self._resources,
            )  # fmt: skip
        except (KafkaError, OSError) as error:
            if not concerns_one_partition(error):
                raise
            self._refuse(partition, error if isinstance(error, KafkaError) else unreadable(error))
            return
        log = self.logs[partition] = opened.log
        if is_torn:
            log.note("partition.metadata", "removed", "the partition is empty, and the file damaged")
        self.repairs += [f"{partition}: {repair}" for repair in log.repairs]
        if topic_id is not None:
            self.topic_ids[partition] = topic_id

    def _refuse(self, partition: TopicPartition, error: KafkaError) -> None:
        LOG.error("%s is not opened: %s", partition, error)
        self.refused[partition] = error

    def create(self, partition: TopicPartition, topic_id: str, *, now_ms: int) -> PartitionLog:
        """Create one partition; see ``creation``. Also raises OSError and KafkaStorageError."""
        perform(self.creation({partition: topic_id}, now_ms=now_ms))
        return self.logs[partition]

    def creation(self, topic_ids: Mapping[TopicPartition, str], *, now_ms: int) -> Creation:
        """Return the work that creates partitions with their topics' ids. After it, all the partitions exist
        durably; after a failure, no part of them remains.

        An existing partition that is empty without a topic id, or not open, is left over from an interrupted
        creation: it gets the topic id. Raises LogDirError for any other partition that exists or is being
        created, InvalidTopicError, ValueError for an invalid topic id or partition number, FlushUnderWayError
        while other work is unfinished."""
        self.check_idle()
        wanted = [self._new(partition, topic_id) for partition, topic_id in topic_ids.items()]
        for partition in topic_ids:
            if (log := self.logs.pop(partition, None)) is not None:
                log.release()
            self.checkpoints.forget(partition)  # entries of a former partition of this name, after a crash
        stale = any(map(self.checkpoints.mentions, topic_ids))
        first = self.checkpoints.work(self.logs) if stale else None
        self.in_creation = dict(topic_ids)
        return Creation(
            self.files, self.path, wanted, first=first, on_finished=self._created, now_ms=now_ms,
            resources=self._resources,
        )  # fmt: skip

    def _new(self, partition: TopicPartition, topic_id: str) -> NewPartition:
        validate_partition(partition)
        metadata, config = format_partition_metadata(topic_id), self._config(partition.topic)
        directory = self._file(str(partition))
        is_known = any(partition in known for known in (self.topic_ids, self.retired, self.refused))
        is_there = self.files.exists(directory)
        if is_there and (is_known or not partition_work.is_unfinished(self.files, self.path, str(partition))):
            raise LogDirError(f"{directory} exists already")
        return NewPartition(partition, directory, metadata, config, is_there)

    def _created(self, logs: Mapping[TopicPartition, PartitionLog]) -> None:
        for partition, log in logs.items():
            log.update_config(self._config(partition.topic))  # the settings may have changed
            self.logs[partition], self.topic_ids[partition] = log, self.in_creation[partition]
        self.in_creation = {}

    def give_topic_id(self, partition: TopicPartition, topic_id: str) -> None:
        """Write the topic id of an open partition that has none, durably. Raises OSError."""
        write_topic_id(self.files, self._file(str(partition)), topic_id)
        self.topic_ids[partition] = topic_id
        self.logs[partition].note("partition.metadata", "written", "it was not there")

    def delete(self, partition: TopicPartition) -> None:
        """Delete a partition; see ``deletion``. Raises OSError and UnknownTopicOrPartitionError."""
        perform(self.deletion(partition))

    def deletion(self, partition: TopicPartition) -> Deletion:
        """Remove a partition, and return the work that deletes its files. After this call the partition does
        not exist, even if the work fails. Raises OSError if its directory cannot be renamed: then the
        partition is unchanged. Raises UnknownTopicOrPartitionError."""
        target = self._rename(partition, "delete")
        self._deletions.add(target)
        return Deletion(self.files, self.path, target, self._deletions.discard)

    def retire(self, partition: TopicPartition) -> None:
        """Remove a partition from ``logs``: its topic is gone, the next ``deletion`` handles its files."""
        if partition in self.logs:
            self.retired[partition] = self.logs.pop(partition)

    def setting_aside(self, partition: TopicPartition) -> DirectorySync:
        """Like ``deletion``, but keeps the files, under the name that Kafka gives to strays."""
        self._rename(partition, "stray")
        return DirectorySync(self.files, self.path)

    def _rename(self, partition: TopicPartition, state: DirectoryState) -> str:
        self._owner.check()
        if not any(partition in known for known in (self.logs, self.retired, self.refused)):
            raise self._unknown(partition)
        target = self._file(marked_directory(partition, state, unique_name()))
        self.files.rename(self._file(str(partition)), target)
        for logs in (self.logs, self.retired):
            if (log := logs.pop(partition, None)) is not None:
                log.release()
        for known in (self.topic_ids, self.refused):
            known.pop(partition, None)
        self.checkpoints.forget(partition)
        return target

    def _log(self, partition: TopicPartition) -> PartitionLog:
        if partition not in self.logs:
            raise self.refused.get(partition) or self._unknown(partition)
        return self.logs[partition]

    def _unknown(self, partition: TopicPartition) -> UnknownTopicOrPartitionError:
        return UnknownTopicOrPartitionError(f"{self.path} has no partition {partition}")

    def check_idle(self) -> None:
        """Raise FlushUnderWayError during a creation or a write of checkpoints, which an immediate change
        would contradict."""
        self._owner.check()
        if self.in_creation or self.checkpoints.is_under_way:
            raise FlushUnderWayError(f"work in {self.path} is under way: finish it first")

    def truncate(self, partition: TopicPartition, offset: int, *, now_ms: int) -> bool:
        """Truncate a log at ``offset``, durably; see ``truncation.truncate_to``. The recovery point is
        lowered first: after a crash, missing data below it would count as damage."""
        self.check_idle()
        log = self._log(partition)
        truncation.check_cut(log, offset)
        end = truncation.end_below(log, offset)
        if end < log.recovery_point or self.checkpoints.lacks(RECOVERY_POINT_CHECKPOINT):
            log.local.flushing.lower_recovery_point(end)
            self.checkpoint()
        self.checkpoints.lower_cleaner_offset(partition, offset)  # later appends there are dirty
        before = log.log_start_offset
        was_cut = truncation.truncate_to(log, offset, now_ms=now_ms)
        if log.log_start_offset != before:
            try:
                perform(self.checkpoints.log_start_work(self.logs))
            except OSError as error:  # recovery would treat appends below the old log start as deleted
                log.fence(error)
                log.check_usable()
        return was_cut

    def delete_records(self, partition: TopicPartition, offset: int) -> int:
        """Move the start of a log to ``offset`` (-1: the high watermark), durably; return the new start."""
        start, work = self.records_deletion(partition, offset)
        if work is not None:
            perform(work)
        return start

    def records_deletion(self, partition: TopicPartition, offset: int) -> tuple[int, CheckpointWork | None]:
        """Move the start of a log to ``offset`` (-1: the high watermark); return the new start, and the work
        that makes it durable, or None if it is already durable. Raises OffsetOutOfRangeError,
        FlushUnderWayError and KafkaStorageError."""
        self.check_idle()
        log = self._log(partition)
        before = log.log_start_offset
        start = truncation.delete_records(log, offset)
        is_durable = start == before and not self.checkpoints.lacks(LOG_START_OFFSET_CHECKPOINT)
        return start, None if is_durable else self.checkpoints.deletion_work(self.logs)

    def checkpoint(self) -> None:
        """Write recovery point, high watermark and log start of each log; a host with a lock uses
        ``checkpoints.work``. Raises OSError."""
        self._owner.check()
        perform(self.checkpoints.work(self.logs))

    @property
    def is_closed(self) -> bool:
        """True after the lock was released: changing methods raise KafkaStorageError."""
        return self._owner.is_over

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop cleanly: flush all logs, and write the marker of a clean shutdown. If a log has failed or was
        refused, no marker is written, so that the next owner runs recovery. A second call does nothing.

        Raises FlushUnderWayError, and changes nothing, while work is unfinished. An error of closing one log
        is raised after all other logs are closed and recorded."""
        if self.is_closed:
            return
        self.check_idle()
        if self._deletions or any(log.is_flushing for log in self.logs.values()):
            raise FlushUnderWayError(f"work in {self.path} is under way: finish it, then close")
        failed: Exception | None = None
        try:
            for log in self.logs.values():
                try:
                    log.close()
                except Exception as error:
                    LOG.error("%s is not closed cleanly: %s", log.topic_partition, error)
                    log.fence(error if isinstance(error, OSError) else OSError(f"it was not closed: {error}"))
                    failed = failed or error
            self.checkpoint()
            if failed is None and not self.refused and (self.was_clean or not self._untouched):
                write_clean_marker(self.files, self.path, self.broker_epoch, self._repaired)
                self.is_left_clean = True
        finally:
            self._give_back()
        if failed is not None:
            raise failed

    def abandon(self) -> None:
        """Close all files and release the lock, without making data durable or writing checkpoints: to the
        next owner, this one has crashed."""
        self._give_back()

    def _give_back(self) -> None:
        for log in (*self.logs.values(), *self.retired.values()):
            log.release()
            log.local.close_files()  # no caller will finish a running flush
        self._owner.give_back()

    def check_owner(self) -> None:
        """Raise KafkaStorageError once the directory is closed, LogDirError in any process but its owner: a
        forked child does not own it."""
        self._owner.check()

    def _file(self, name: str) -> str:
        return self.files.join(self.path, name)

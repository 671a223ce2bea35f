"""A data directory that one process owns: its lock, its identity, its checkpoints, the logs of all
partitions.

Everything that Kafka keeps in a log directory is kept, so that Kafka takes it over where this stopped, and
the other way round. The marker of a clean shutdown is taken away, durably, before anything is changed, and
put back when everything that follows from the logs is on the disk.

Source: ``LogManager``, ``OffsetCheckpointFile``, ``CleanShutdownFileHandler``, ``MetaProperties``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from txnkafka.env import remove_tree, unique_name, write_durably
from txnkafka.errors import CorruptFileError, CorruptRecordError, KafkaError, KafkaStorageError, LogDirError
from txnkafka.model import TopicPartition
from txnkafka.storage.checkpoint import (
    format_clean_shutdown,
    format_offset_checkpoint,
    format_partition_metadata,
    parse_clean_shutdown,
    parse_offset_checkpoint,
    parse_partition_metadata,
)
from txnkafka.storage.compaction import DEFAULT_CLEANER, CleanStats, LogToClean, clean, dirtiest_first
from txnkafka.storage.deed import Deed
from txnkafka.storage.flush import FlushTickets
from txnkafka.storage.layout import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOCK_FILE,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    parse_partition_directory,
)
from txnkafka.storage.meta_properties import MetaProperties, format_meta_properties, parse_meta_properties
from txnkafka.storage.recovery import Repair, Start, open_log
from txnkafka.storage.topic_id import topic_id_from_bytes
from txnkafka.storage.truncation import delete_old_segments, delete_records, end_below, truncate_to

if TYPE_CHECKING:
    from txnkafka.config import CleanerConfig, LogConfig
    from txnkafka.env import DataFiles, Lock
    from txnkafka.storage.partition_log import PartitionLog

__all__ = ["DataDirectory"]

LOG = logging.getLogger("txnkafka.storage")
_LIMIT = 64 << 20  # of a checkpoint: a million partitions
_METADATA_TOPIC = "__cluster_metadata"  # not one of the logs; it has an owner of its own
_NO_EPOCH = -1


class DataDirectory:
    """An open data directory. ``logs`` are its partitions, ``refused`` those that are damaged where they must
    not be, with the error; ``repairs`` says what opening had to put right, ``was_clean`` whether the last
    owner had stopped cleanly. For one thread at a time.

    ``config`` gives the settings of a topic's logs. For a ``repair`` of ``only`` some partitions the others
    stay as they are, and a directory without an identity gets none. Raises LogDirError when somebody else
    holds the directory, or it belongs to another cluster or node; OSError.
    """

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
    ) -> None:
        self.files = files
        self.path = path
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.topic_ids: dict[TopicPartition, str] = {}
        self.refused: dict[TopicPartition, KafkaError] = {}
        self.uncleanable: dict[TopicPartition, KafkaError] = {}
        self.repairs: list[str] = []
        self.repairs_of_directory: list[Deed] = []  # those that concern no partition
        self.tickets = FlushTickets()
        self.broker_epoch = _NO_EPOCH
        self._config = config
        self._repair = repair
        self._only = only
        self._lock = self._take_lock()
        try:
            self.identity = self._identify(cluster_id, node_id)
            self._open_all(now_ms)
        except BaseException:
            self._give_back()
            raise

    # Opening

    def _take_lock(self) -> Lock:
        if not self.files.is_directory(self.path):
            self.files.make_directory(self.path)
            self.files.sync_directory(self.files.split(self.path)[0])
        lock = self.files.lock(self._file(LOCK_FILE))
        if lock is None:
            raise LogDirError(f"{self.path} is held by somebody else: stop the broker that uses it first")
        return lock

    def _identify(self, cluster_id: str | None, node_id: int | None) -> MetaProperties:
        path = self._file(META_PROPERTIES)
        if not self.files.exists(path):
            if self._repair is not None:
                return MetaProperties(0, None, None, None)
            found = MetaProperties(1, cluster_id or _new_id(), 1 if node_id is None else node_id, _new_id())
            write_durably(self.files, path, format_meta_properties(found))
            return found
        try:
            found = parse_meta_properties(self.files.read(path, _LIMIT))
        except CorruptFileError as error:
            raise LogDirError(f"{path} is damaged, and says whose directory this is: {error}") from error
        for name, wanted, there in (
            ("cluster.id", cluster_id, found.cluster_id),
            ("node.id", node_id, found.node_id),
        ):
            if wanted is not None and there is not None and wanted != there:
                raise LogDirError(f"{path} says {name}={there}, not {wanted}: this is somebody else's")
        return found

    def _open_all(self, now_ms: int) -> None:
        points = self._read_checkpoint(RECOVERY_POINT_CHECKPOINT)
        starts = self._read_checkpoint(LOG_START_OFFSET_CHECKPOINT) or {}
        marks = self._read_checkpoint(HIGH_WATERMARK_CHECKPOINT) or {}
        self.cleaner_offsets = self._read_checkpoint(CLEANER_OFFSET_CHECKPOINT) or {}
        self.was_clean = self._take_clean_marker()
        self._untouched: set[TopicPartition] = set()
        for partition in self._partitions():
            if self._only is not None and partition not in self._only:
                self._untouched.add(partition)
                continue
            point = None if points is None else points.get(partition, 0)
            start = Start(self.was_clean, point, starts.get(partition, 0), self._repair)
            self._open(partition, start, now_ms)
        closed = self._untouched | self.refused.keys()
        self._kept_points = {each: (points or {}).get(each, 0) for each in closed}
        # nothing else says that damage in what is not open lies below what was durable
        self._keeps_damaged_points = points is None and bool(closed)
        self._kept_starts = {each: starts[each] for each in closed if each in starts}
        self._kept_marks = {each: marks[each] for each in closed if each in marks}
        self.checkpoint()

    def _partitions(self) -> Iterator[TopicPartition]:
        """The partitions that are there; what is left of those that were deleted goes."""
        for entry in self.files.list(self.path):
            if not entry.is_directory:
                continue
            found = parse_partition_directory(entry.name)
            if found is None:
                LOG.warning("%s in %s is no partition; Kafka would not start with it", entry.name, self.path)
            elif found.state == "delete" and self._only is None:
                remove_tree(self.files, self._file(entry.name))
            elif found.state == "current" and found.topic_partition.topic != _METADATA_TOPIC:
                yield found.topic_partition

    def _take_clean_marker(self) -> bool:
        """Whether the last owner stopped cleanly; it is only true once."""
        path = self._file(CLEAN_SHUTDOWN_FILE)
        if not self.files.exists(path):
            return False
        try:
            self.broker_epoch = parse_clean_shutdown(self.files.read(path, _LIMIT)).broker_epoch or _NO_EPOCH
        except CorruptFileError as error:
            LOG.warning("%s says no broker epoch: %s", path, error)
        self.files.remove(path)
        self.files.sync_directory(self.path)
        return True

    def _open(self, partition: TopicPartition, start: Start, now_ms: int) -> None:
        directory = self._file(str(partition))
        try:
            topic_id = self._topic_id(directory)
            opened = open_log(
                self.files, directory, partition, self._config(partition.topic), start, now_ms=now_ms
            )
        except (CorruptRecordError, CorruptFileError) as error:
            LOG.error("%s is not opened: %s", partition, error)
            self.refused[partition] = error
            return
        self.logs[partition] = opened.log
        self.repairs += [f"{partition}: {repair}" for repair in opened.repairs]
        if topic_id is not None:
            self.topic_ids[partition] = topic_id

    def _topic_id(self, directory: str) -> str | None:
        path = self.files.join(directory, PARTITION_METADATA)
        if not self.files.exists(path):
            return None  # brokers before 2.8 wrote none
        try:
            return parse_partition_metadata(self.files.read(path, _LIMIT)).topic_id
        except CorruptFileError as error:
            error.locate(file=path)
            raise

    def _read_checkpoint(self, name: str) -> dict[TopicPartition, int] | None:
        """None when it is damaged: then nobody knows."""
        path = self._file(name)
        try:
            return parse_offset_checkpoint(self.files.read(path, _LIMIT))
        except FileNotFoundError:
            return {}
        except CorruptFileError as error:
            deed = Deed(path, "rebuilt", f"it is damaged, {error.reason}")
            LOG.warning("%s", deed)
            self.repairs.append(str(deed))
            self.repairs_of_directory.append(deed)
            return None

    # Partitions

    def create(self, partition: TopicPartition, topic_id: str, *, now_ms: int) -> PartitionLog:
        """A new partition, durably. Raises LogDirError when it is there already; one that is empty and
        nobody's is what a crash has left of a ``create``."""
        directory = self._file(str(partition))
        log = self.logs.get(partition)
        if log is not None and partition not in self.topic_ids and not log.log_end_offset:
            self.logs.pop(partition).close_files()
        elif log is not None or self.files.exists(directory):
            raise LogDirError(f"{directory} is there already")
        else:
            self.files.make_directory(directory)
        metadata = self.files.join(directory, PARTITION_METADATA)
        write_durably(self.files, metadata, format_partition_metadata(topic_id))
        self.files.sync_directory(self.path)
        opened = open_log(
            self.files, directory, partition, self._config(partition.topic), Start(), now_ms=now_ms
        )
        self.logs[partition] = opened.log
        self.topic_ids[partition] = topic_id
        return opened.log

    def delete(self, partition: TopicPartition) -> None:
        """Delete a partition: from now on it is not there, whatever happens."""
        log = self.logs.pop(partition, None)
        if log is not None:
            log.close_files()
        self.topic_ids.pop(partition, None)
        self.refused.pop(partition, None)
        self.uncleanable.pop(partition, None)
        if self.cleaner_offsets.pop(partition, None) is not None:
            self.write_cleaner_offsets()  # before another partition of this name begins at 0
        target = self._file(f"{str(partition)[:200]}.{unique_name()}-delete")
        self.files.rename(self._file(str(partition)), target)
        self.files.sync_directory(self.path)
        remove_tree(self.files, target)
        self.checkpoint()

    def truncate(self, partition: TopicPartition, offset: int, *, now_ms: int) -> bool:
        """Cut a log at ``offset``, durably; see ``truncation.truncate_to``. First of all the recovery point
        goes back, else what is missing after a crash would be taken for damage."""
        log = self.logs[partition]
        end = end_below(log, max(offset, 0))
        if end < log.recovery_point:
            log.recovery_point = end
            self.checkpoint()
        if offset < self.cleaner_offsets.get(partition, 0):
            self.cleaner_offsets[partition] = offset  # what is appended there is dirty
            self.write_cleaner_offsets()
        before = log.log_start_offset
        was_cut = truncate_to(log, offset, now_ms=now_ms)
        if log.log_start_offset != before:
            self._write_log_starts()  # else what is appended below the old one would be taken for deleted
        return was_cut

    def delete_records(self, partition: TopicPartition, offset: int) -> int:
        """Let a log begin at ``offset`` (-1: the high watermark), durably; returns where it begins now."""
        before = self.logs[partition].log_start_offset
        start = delete_records(self.logs[partition], offset)
        if start != before:
            self._write_log_starts()
        return start

    # Keeping

    def flush(self) -> None:
        """Make everything appended durable, of all logs at once."""
        self._flush([log for log in self.logs.values() if log.needs_flush])

    def _flush(self, logs: Iterable[PartitionLog]) -> None:
        for log in logs:
            if log.fenced is None:
                self.tickets.take(log)
        flush = self.tickets.begin()
        if flush is not None:
            self.tickets.finish(flush, flush.run())

    def maintain(self, now_ms: int) -> None:
        """What is to be done now and then: flushes that are due, retention, idle producers, deleted files,
        checkpoints."""
        self._flush([log for log in self.logs.values() if log.flush_is_due(now_ms)])
        for log in self.logs.values():
            if log.fenced is None:
                delete_old_segments(log, now_ms)
                log.producers.expire(now_ms, log.config.producer_id_expiration_ms)
                log.producers.evict(log.config.max_idle_producers)
                log.verification.expire(now_ms, log.config.producer_id_expiration_ms)
                log.remove_deleted(now_ms)
        self.checkpoint()

    def clean(self, now_ms: int, config: CleanerConfig = DEFAULT_CLEANER) -> CleanStats | None:
        """Compact the dirtiest of the compacted logs; None when none is due. One that is damaged is named in
        ``uncleanable`` and not tried again. Raises KafkaStorageError and OSError."""
        logs = (
            LogToClean.of(log, self.cleaner_offsets.get(partition), now_ms)
            for partition, log in self.logs.items()
            if log.config.compact and log.fenced is None and partition not in self.uncleanable
        )
        for each in dirtiest_first(logs):
            partition = each.log.topic_partition
            try:
                stats = clean(each.log, now_ms=now_ms, dirty_from=each.first_dirty_offset, config=config)
            except KafkaStorageError:
                raise
            except KafkaError as error:
                LOG.error("%s is not compacted any more: %s", partition, error)
                self.uncleanable[partition] = error
                continue
            self.cleaner_offsets[partition] = stats.end_offset
            self.write_cleaner_offsets()
            return stats
        return None

    def checkpoint(self) -> None:
        """Write where each log is durable, visible, and begins. Raises OSError."""
        points = {partition: log.recovery_point for partition, log in self.logs.items()}
        if not self._keeps_damaged_points:
            self._write_checkpoint(RECOVERY_POINT_CHECKPOINT, {**points, **self._kept_points})
        marks = {partition: log.high_watermark for partition, log in self.logs.items()}
        self._write_checkpoint(HIGH_WATERMARK_CHECKPOINT, {**marks, **self._kept_marks})
        self._write_log_starts()

    def _write_log_starts(self) -> None:
        starts = {
            partition: log.log_start_offset
            for partition, log in self.logs.items()
            if log.log_start_offset > log.segments[0].base_offset
        }
        self._write_checkpoint(LOG_START_OFFSET_CHECKPOINT, {**starts, **self._kept_starts})

    def write_cleaner_offsets(self) -> None:
        """Write where the cleaner goes on in each compacted log. Raises OSError."""
        self._write_checkpoint(CLEANER_OFFSET_CHECKPOINT, self.cleaner_offsets)

    def _write_checkpoint(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        write_durably(self.files, self._file(name), format_offset_checkpoint(offsets))

    # Closing

    def close(self) -> None:
        """Stop cleanly: everything is durable, and the marker says so; not when a log has failed or was
        refused, for then the next owner has to look. Raises KafkaStorageError after all of it."""
        failed: KafkaError | None = None
        try:
            for log in self.logs.values():
                try:
                    log.close()
                except KafkaError as error:
                    failed = failed or error
            self.checkpoint()
            if failed is None and not self.refused and (self.was_clean or not self._untouched):
                content = format_clean_shutdown(self.broker_epoch)
                write_durably(self.files, self._file(CLEAN_SHUTDOWN_FILE), content)
        finally:
            self._give_back()
        if failed is not None:
            raise failed

    def _give_back(self) -> None:
        for log in self.logs.values():
            log.close_files()
        self._lock.close()

    def _file(self, name: str) -> str:
        return self.files.join(self.path, name)


def _new_id() -> str:
    return topic_id_from_bytes(bytes.fromhex(unique_name()))

"""Manages all logs of a data directory: group flushes, maintenance, compaction.

A call that waits for an append (``flushes.when_durable``) is released by everything that ends its wait: a
flush of the host or of this manager, the deletion or truncation of its log, the close.

Source: ``LogManager``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self, TypeVar

from txnkafka.broker.flush import FlushQueue
from txnkafka.errors import (
    FlushUnderWayError,
    KafkaError,
    KafkaStorageError,
    UnknownTopicOrPartitionError,
)
from txnkafka.storage.cleaner.compaction import DEFAULT_CLEANER, clean_dirtiest
from txnkafka.storage.log.truncation import delete_old_segments, retention, timestamp_reading
from txnkafka.storage.work import perform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from txnkafka.config import CleanerConfig
    from txnkafka.model import TopicPartition
    from txnkafka.storage.cleaner.cleaner_pass import CleanStats
    from txnkafka.storage.data_directory import DataDirectory
    from txnkafka.storage.log.partition_log import PartitionLog
    from txnkafka.storage.partition_work import Deletion, DirectorySync
    from txnkafka.storage.work import Work

_Work = TypeVar("_Work", bound="Work")
_NEVER: Final = (1 << 63) - 1  # flush.ms by default


class LogManager:
    """The owner of the logs in ``data``, an open data directory. Only one thread at a time may use it.
    ``uncleanable`` has damaged compacted logs with their errors; they are not compacted again."""

    def __init__(self, directory: DataDirectory) -> None:
        self.data = directory
        self.flushes = FlushQueue()
        self.uncleanable: dict[TopicPartition, KafkaError] = {}

    @property
    def logs(self) -> dict[TopicPartition, PartitionLog]:
        """The logs of the open partitions."""
        return self.data.logs

    # Partitions

    def create(self, partition: TopicPartition, topic_id: str, *, now_ms: int) -> PartitionLog:
        """Create one partition. Raises the errors of ``DataDirectory.creation`` and of its work."""
        left_over = self.logs.get(partition)
        log = self.data.create(partition, topic_id, now_ms=now_ms)
        if left_over is not None:
            self.flushes.forget(left_over, _deleted(partition))
        return log

    def delete(self, partition: TopicPartition) -> None:
        """Delete a partition; see ``deletion``. Raises OSError."""
        perform(self.deletion(partition))

    def deletion(self, partition: TopicPartition) -> Deletion:
        """Remove a partition: calls that wait for its log get UnknownTopicOrPartitionError. Returns the work
        that deletes its files. Raises OSError when its directory cannot be renamed; then the partition still
        exists."""
        return self._gone(partition, self.data.deletion)

    def setting_aside(self, partition: TopicPartition) -> DirectorySync:
        """Remove a partition like ``deletion``, but keep its files under another name."""
        return self._gone(partition, self.data.setting_aside)

    def _gone(self, partition: TopicPartition, begin: Callable[[TopicPartition], _Work]) -> _Work:
        log = self.logs.get(partition, self.data.retired.get(partition))
        work = begin(partition)
        self.uncleanable.pop(partition, None)
        if log is not None:
            self.flushes.forget(log, _deleted(partition))
        return work

    def truncate(self, partition: TopicPartition, offset: int, *, now_ms: int) -> bool:
        """Truncate a log; see ``DataDirectory.truncate``. Calls that wait for truncated appends get
        KafkaStorageError."""
        return self.data.truncate(partition, offset, now_ms=now_ms)

    def delete_records(self, partition: TopicPartition, offset: int) -> int:
        """Delete the records below ``offset``; see ``DataDirectory.delete_records``."""
        return self.data.delete_records(partition, offset)

    # Maintenance

    def flush(self) -> None:
        """Flush all appends of all logs at once. A log whose flush fails is fenced.

        Raises FlushUnderWayError, and does nothing, while a group flush of ``flushes`` is under way; after
        the flush of all logs, KafkaStorageError when an append to a log is not durable."""
        self.data.check_owner()
        if self.flushes.is_flushing:
            raise FlushUnderWayError(f"a flush of {self.data.path} is under way: finish it first")
        logs = [log for log in self.logs.values() if log.needs_flush]
        self._flush(logs)
        for log in logs:
            if log.needs_flush:
                log.check_usable()

    def _flush(self, logs: Iterable[PartitionLog]) -> None:
        for log in logs:
            if log.fenced is None:
                self.flushes.want(log)
        self.flushes.run()

    def maintain(self, now_ms: int) -> None:
        """Do all maintenance that is due now: flushes by ``flush.messages`` and ``flush.ms``, ``upkeep`` of
        all logs, checkpoints. While a group flush of ``flushes`` is under way, flushes wait for the next one.

        Raises, at the end, the first KafkaStorageError or OSError of a log; that log is fenced unless only
        its deleted files could not be removed."""
        self.data.check_owner()
        self._flush([log for log in self.logs.values() if flush_is_due(log, now_ms)])
        failed: Exception | None = None
        for log in self.logs.values():
            try:
                if log.fenced is None:
                    delete_old_segments(log, now_ms)
                for work in self.upkeep(log, now_ms):
                    perform(work)
            except (KafkaStorageError, OSError) as error:
                failed = failed or error
        self.data.checkpoint()
        if failed is not None:
            raise failed

    def upkeep(self, log: PartitionLog, now_ms: int) -> Iterator[Work]:
        """Expire idle producers of a log, and yield the work that reads how old its segments are, deletes
        old ones, and removes files deleted before. A host with a lock does this for one log after another,
        and runs the work without its lock. Raises KafkaStorageError and OSError."""
        if log.fenced is not None:
            return
        log.producers.expire(now_ms, log.config.producer_id_expiration_ms)
        log.producers.evict(log.config.max_idle_producers)
        log.verification.expire(now_ms, log.config.producer_id_expiration_ms)
        if (reading := timestamp_reading(log, now_ms)) is not None:
            yield reading
            if log.fenced is not None:
                return
        active, failed = log.active, None
        deletion: Work | None = None
        try:
            deletion = retention(log, now_ms)
        except (KafkaError, OSError) as error:
            failed = error
        if log.active is not active:
            self.flushes.want(log)  # the old active segment is deleted once the new one has its final name
        if deletion is not None:
            yield deletion
        removal = log.local.removal(now_ms)
        if removal is not None:
            yield removal
        if failed is not None:
            raise failed

    def clean(self, now_ms: int, config: CleanerConfig = DEFAULT_CLEANER) -> CleanStats | None:
        """Compact the log with the largest dirty share among those that are due; None when none is. A damaged
        log is added to ``uncleanable``. Raises KafkaStorageError and OSError."""
        self.data.check_owner()
        checkpoints = self.data.checkpoints
        cleaned = clean_dirtiest(
            self.logs, checkpoints.cleaner_offsets, self.uncleanable, now_ms=now_ms, config=config
        )
        if cleaned is None:
            return None
        partition, stats = cleaned
        checkpoints.cleaner_offsets[partition] = stats.end_offset
        checkpoints.write_cleaner_offsets()
        return stats

    # Closing

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop cleanly; see ``DataDirectory.close``. Raises FlushUnderWayError, and changes nothing, while a
        group flush or other work is under way."""
        if self.flushes.is_flushing:
            raise FlushUnderWayError(f"a flush of {self.data.path} is under way: finish it, then close")
        self.data.close()


def flush_is_due(log: PartitionLog, now_ms: int) -> bool:
    """Return whether a flush is due by ``flush.messages`` or ``flush.ms``. A batch from the future, after
    the clock was set back, may be of any age, and is due; Kafka waits until the clock has caught up."""
    age_ms, config = log.local.flushing.age_ms(now_ms), log.config
    if age_ms is None:
        return False
    is_old = age_ms >= config.flush_ms or (age_ms < 0 and config.flush_ms < _NEVER)
    return is_old or log.log_end_offset - log.recovery_point >= config.flush_messages


def _deleted(partition: TopicPartition) -> UnknownTopicOrPartitionError:
    return UnknownTopicOrPartitionError(f"{partition} was deleted")

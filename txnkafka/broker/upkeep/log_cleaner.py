"""Compacts the logs of a running broker: the dirtiest one first, one after another, in pieces.

A piece of compaction runs only when no other work waits, so that it delays a request by at most one piece. A
segment swap that has begun is finished before other work; all else is abandoned when the broker stops, and
begins anew after the next start.

Source: ``LogCleaner``, ``LogCleanerManager.grabFilthiestCompactedLog``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from txnkafka.broker.jobs import Job
from txnkafka.config import CleanerConfig
from txnkafka.errors import KafkaError, KafkaStorageError
from txnkafka.storage.cleaner.cleaner_pass import CleanerPass
from txnkafka.storage.cleaner.log_to_clean import LogToClean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnkafka.broker.services import Services
    from txnkafka.model import TopicPartition
    from txnkafka.storage.cleaner.cleaner_pass import CleanStats
    from txnkafka.storage.log.partition_log import PartitionLog
    from txnkafka.storage.work import Work

LOG = logging.getLogger("txnkafka.broker")
_LOGS_AT_ONCE: Final = 100  # logs checked in one call
_NEVER: Final = 2**63 - 1


class LogCleaner:
    """The compaction of a broker's logs, as background work of ``broker.jobs``."""

    def __init__(self, services: Services, now_ms: int) -> None:
        config = services.config
        self._services = services
        self._ticks = now_ms  # of the last call of ``advance``
        self._next_ms = now_ms + config.log_cleaner_backoff_ms if config.log_cleaner_enable else _NEVER
        self._search: Iterator[PartitionLog] | None = None  # in progress, for the next log
        self._dirtiest: LogToClean | None = None
        self._postponed: set[TopicPartition] = set()  # after a disk error: other logs go first
        self._pass: CleanerPass | None = None
        services.jobs.add_background(self._job)

    def advance(self, now_ms: int, ticks: int) -> int:
        """Look for a log to compact when it is time; return the ticks at which to call again."""
        self._ticks = ticks
        if self._pass is not None or ticks < self._next_ms:
            return _NEVER if self._pass is not None else self._next_ms
        if self._search is None:
            self._search, self._dirtiest = iter(list(self._services.logs.values())), None
        for _ in range(_LOGS_AT_ONCE):
            log = next(self._search, None)
            if log is None:
                self._search = None
                self._start(now_ms)
                return self._next_ms if self._pass is None else _NEVER
            self._look_at(log, now_ms)
        return ticks

    def _look_at(self, log: PartitionLog, now_ms: int) -> None:
        services, partition = self._services, log.topic_partition
        is_open = services.logs.get(partition) is log and log.fenced is None
        if not is_open or not services.serves(partition) or len(log.segments) == 1 or not log.config.compact:
            return
        if partition in services.manager.uncleanable:
            return
        try:
            found = LogToClean.of(log, services.data.checkpoints.cleaner_offsets.get(partition), now_ms)
        except (KafkaError, OSError) as error:
            self._failed(log, error)
            return
        if found.is_due and (self._dirtiest is None or self._rank(found) > self._rank(self._dirtiest)):
            self._dirtiest = found

    def _rank(self, log: LogToClean) -> tuple[bool, float]:
        return log.log.topic_partition not in self._postponed, log.ratio

    def _start(self, now_ms: int) -> None:
        """Start to compact the log that was found; without one, look again later."""
        due, self._dirtiest = self._dirtiest, None
        if due is None or self._services.logs.get(due.log.topic_partition) is not due.log:
            self._next_ms = self._ticks + self._services.config.log_cleaner_backoff_ms
            return
        if due.log.topic_partition in self._postponed:  # no other log is due
            self._postponed.clear()
        config = self._services.config
        cleaner = CleanerConfig(
            dedupe_buffer_size=config.log_cleaner_dedupe_buffer_size,
            io_buffer_load_factor=config.log_cleaner_io_buffer_load_factor,
        )
        self._pass = CleanerPass(due, cleaner, now_ms=now_ms)
        self._services.manager.flushes.want(due.log)

    # The pieces of a pass

    def _job(self) -> Job | None:
        return None if self._pass is None else Job(self._begin, self._done)

    def _begin(self) -> Work | None:
        """Return the next piece of the pass; None when it is over, or waits for a flush."""
        current = self._pass
        if current is None:
            return None
        log = current.log
        if not log.config.compact and not current.is_swapping:  # compaction was disabled
            current.abandon()
            self._rest()
            return None
        try:
            work = current.begin()
        except Exception as error:
            self._rest()
            if self._services.logs.get(log.topic_partition) is log:
                self._failed(log, error)
            return None
        if current.is_over:
            self._rest()
            if current.stats is not None:
                self._finished(log, current.stats)
        return work

    def _rest(self) -> None:
        self._pass = None
        self._next_ms = self._ticks + self._services.config.log_cleaner_backoff_ms
        self._services.look_again()

    def _done(self, _: Exception | None) -> None:
        """Continue a swap before other work; an error of the piece is raised again when the pass
        continues."""
        if self._pass is not None and self._pass.is_swapping:
            self._services.jobs.add_first(Job(self._begin, self._done))

    def _finished(self, log: PartitionLog, stats: CleanStats) -> None:
        services, partition = self._services, log.topic_partition
        LOG.info(
            "%s: compacted up to offset %d, from %d bytes in %d segments to %d bytes in %d",
            partition, stats.end_offset, stats.bytes_before, stats.segments_before, stats.bytes_after,
            stats.segments_after,
        )  # fmt: skip
        if stats.end_offset > stats.first_dirty_offset:
            self._next_ms = self._ticks  # another log may be due
        if services.logs.get(partition) is log:
            services.data.checkpoints.cleaner_offsets[partition] = stats.end_offset
            services.jobs.add(services.data.checkpoints.cleaner_offsets_work, _logged)

    def _failed(self, log: PartitionLog, error: Exception) -> None:
        """Handle a failed compaction. A disk error may be temporary, and must not stop the compaction of
        other logs; a damaged log is never compacted again."""
        partition = log.topic_partition
        if isinstance(error, OSError | KafkaStorageError):
            self._postponed.add(partition)
            LOG.error("%s", error)
            return
        LOG.error(
            "%s is damaged, and is not compacted any more: %s", partition, error,
            exc_info=None if isinstance(error, KafkaError) else error,
        )  # fmt: skip
        known = error if isinstance(error, KafkaError) else KafkaError(repr(error))
        self._services.manager.uncleanable[partition] = known

    def close(self) -> None:
        """Abandon the pass; none of its pieces may be running."""
        self._search, current, self._pass = None, self._pass, None
        if current is not None:
            current.abandon()


def _logged(error: Exception | None) -> None:
    if error is not None:
        LOG.error("the cleaner's checkpoint could not be written: %s", error)

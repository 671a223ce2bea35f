"""Periodic work of a broker: flushes by ``flush.ms``, retention, removal of files, checkpoints.

Everything that waits for the disk is a job, for one log after another. Requests are served between the jobs,
and so are the jobs that these requests add; the job for the next log follows them.

Source: ``LogManager.startupWithConfigOverrides``: the flush, retention and checkpoint tasks.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from txnkafka.broker.log_manager import flush_is_due
from txnkafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnkafka.broker.services import Services
    from txnkafka.storage.log.partition_log import PartitionLog
    from txnkafka.storage.work import Work

LOG = logging.getLogger("txnkafka.broker")
FLUSH_CHECK_MS: Final = 3_000  # interval of checks for flush.ms and deleted files
INITIAL_DELAY_MS: Final = 30_000  # log.initial.task.delay.ms
PIECES: Final = 3  # largest number of pieces in the upkeep of a log
CHECKPOINT_MS: Final = 60_000  # log.flush.offset.checkpoint.interval.ms
NEVER: Final = (1 << 63) - 1


class Maintenance:
    """The periodic work of a broker."""

    def __init__(self, services: Services, now_ms: int) -> None:
        self._services = services
        self._next_flush_ms = now_ms + FLUSH_CHECK_MS
        self._next_checkpoint_ms = now_ms + CHECKPOINT_MS
        # not a whole interval: a broker that restarts more often would never delete anything
        self._next_upkeep_ms = now_ms + min(INITIAL_DELAY_MS, services.config.log_retention_check_interval_ms)
        # logs with deleted files: the ticks of the next removal, and its wall-clock time
        self._removals: dict[PartitionLog, tuple[int, int]] = {}

    def advance(self, now_ms: int, ticks: int) -> int:
        """Schedule the work that is due at these ticks; return the ticks at which work is next due."""
        services = self._services
        if ticks >= self._next_flush_ms:
            self._next_flush_ms = ticks + FLUSH_CHECK_MS
            for log in services.logs.values():
                if flush_is_due(log, now_ms):
                    services.manager.flushes.want(log)
                self._look_for_deleted(log, now_ms, ticks)
            self._removals = {log: due for log, due in self._removals.items() if self._has(log)}
        if ticks >= self._next_upkeep_ms:
            self._next_upkeep_ms = ticks + services.config.log_retention_check_interval_ms
            self._keep_up(iter(list(services.logs.values())), now_ms)
        if ticks >= self._next_checkpoint_ms:
            self._next_checkpoint_ms = ticks + CHECKPOINT_MS
            services.jobs.add(lambda: services.data.checkpoints.work(services.logs), _logged)
        removals_at = self._remove(ticks)
        return min(self._next_flush_ms, self._next_upkeep_ms, self._next_checkpoint_ms, removals_at)

    def _has(self, log: PartitionLog) -> bool:
        partition = log.topic_partition
        return self._services.logs.get(partition) is log and self._services.serves(partition)

    def _keep_up(self, logs: Iterator[PartitionLog], now_ms: int) -> None:
        """Maintain the next log: expire idle producers, delete old segments, remove deleted files. Files
        of a partition that is missing in the registry stay, because its retention is unknown."""
        log = next(logs, None)
        if log is None:
            return
        pieces = self._services.manager.upkeep(log, now_ms)

        def begin() -> Work | None:
            return next(pieces, None) if self._has(log) else None

        def done(error: Exception | None) -> None:
            _logged(error)
            self._keep_up(logs, now_ms)

        for then in (*[_logged] * (PIECES - 1), done):
            self._services.jobs.add(begin, then)

    def _look_for_deleted(self, log: PartitionLog, now_ms: int, ticks: int) -> None:
        """Note when the next deleted files of a log are to be removed; in ticks, because the clock may be
        set."""
        due_ms = log.local.deleted.next_ms
        if due_ms is not None and log not in self._removals and log.fenced is None:
            delay_ms = min(max(due_ms - now_ms, 0), log.config.file_delete_delay_ms)
            self._removals[log] = ticks + delay_ms, due_ms

    def _remove(self, ticks: int) -> int:
        """Schedule the removals that are due (``LocalLog.deleteSegmentFiles``); return the ticks of the
        next one."""
        for log in [log for log, (at, _) in self._removals.items() if at <= ticks]:
            _, due_ms = self._removals.pop(log)
            removal, removed = partial(self._removal, log, due_ms), partial(self._removed, log, due_ms)
            self._services.jobs.add(removal, removed)
        return min((at for at, _ in self._removals.values()), default=NEVER)

    def _removal(self, log: PartitionLog, due_ms: int) -> Work | None:
        return log.local.removal(due_ms) if self._has(log) and log.fenced is None else None

    def _removed(self, log: PartitionLog, due_ms: int, error: Exception | None) -> None:
        _logged(error)
        if error is not None:  # not every few seconds
            again = self._services.ticks.now + self._services.config.log_retention_check_interval_ms
            self._removals[log] = again, due_ms


def _logged(error: Exception | None) -> None:
    if isinstance(error, KafkaError | OSError):
        LOG.error("maintenance: %s", error)

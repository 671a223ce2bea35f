"""What a broker does by the clock: flushes that topics want, retention, removal of files, checkpoints.

Everything that waits for the disk is a job, for one log after the other, so that requests come in between.

Source: ``LogManager.startup``: the flush, retention and checkpoint tasks; ``LogCleaner``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from txnkafka.broker.log_manager import flush_is_due
from txnkafka.errors import KafkaError

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.storage.log.partition_log import PartitionLog
    from txnkafka.storage.work import Work

__all__ = ["Maintenance"]

LOG = logging.getLogger("txnkafka.broker")
FLUSH_CHECK_MS: Final = 3_000  # how often flush.ms is looked at
PIECES: Final = 2  # of work that the upkeep of a log has at most
CHECKPOINT_MS: Final = 60_000  # log.flush.offset.checkpoint.interval.ms


class Maintenance:
    """The periodic work of a broker."""

    def __init__(self, broker: Broker, now_ms: int) -> None:
        self._broker = broker
        self._next_flush_ms = now_ms + FLUSH_CHECK_MS
        self._next_checkpoint_ms = now_ms + CHECKPOINT_MS
        self._next_upkeep_ms = now_ms + broker.config.log_retention_check_interval_ms

    def advance(self, now_ms: int, ticks: int) -> int:
        """Ask for what is due at these ticks; returns the ticks at which something is due next."""
        broker = self._broker
        if ticks >= self._next_flush_ms:
            self._next_flush_ms = ticks + FLUSH_CHECK_MS
            for log in broker.logs.values():
                if flush_is_due(log, now_ms):
                    broker.manager.tickets.want(log)
        if ticks >= self._next_upkeep_ms:
            self._next_upkeep_ms = ticks + broker.config.log_retention_check_interval_ms
            for log in list(broker.logs.values()):
                self._keep_up(log, now_ms)
        if ticks >= self._next_checkpoint_ms:
            self._next_checkpoint_ms = ticks + CHECKPOINT_MS
            broker.jobs.add(lambda: broker.data.checkpoints.work(broker.logs), _logged)
        return min(self._next_flush_ms, self._next_upkeep_ms, self._next_checkpoint_ms)

    def _keep_up(self, log: PartitionLog, now_ms: int) -> None:
        """One log: idle producers are forgotten, old segments deleted, deleted files removed. The files of a
        partition that the registry does not have stay as they are: nobody has said how long to keep them."""
        broker, partition = self._broker, log.topic_partition
        pieces = broker.manager.upkeep(log, now_ms)

        def begin() -> Work | None:
            is_here = broker.logs.get(partition) is log and broker.serves(partition)
            return next(pieces, None) if is_here else None

        for _ in range(PIECES):
            broker.jobs.add(begin, _logged)


def _logged(error: Exception | None) -> None:
    if isinstance(error, KafkaError | OSError):
        LOG.error("maintenance: %s", error)

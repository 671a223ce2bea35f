"""Retries the creation of logs of registered partitions, after their directories could not be created.

The disk was full, or failed for a while. Until then clients get KAFKA_STORAGE_ERROR. At a start
``Topics.reconcile`` does the same.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from txnkafka.model import TopicPartition

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.storage.work import Work

__all__ = ["MissingLogs"]

LOG = logging.getLogger("txnkafka.broker")
RETRY_MS: Final = 1_000
_NEVER: Final = (1 << 63) - 1


class MissingLogs:
    """Retries a failed creation after a second."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._has_failed = False
        self._retry_ticks = _NEVER
        self._said = ""  # error of the last creation

    def creation_failed(self) -> None:
        """Note that a creation has failed; retry it in a second."""
        self._has_failed = True
        self._broker.deadlines.look_again()

    def advance(self, now_ms: int, ticks: int) -> int:
        """Retry when it is time; return the ticks at which to call again."""
        if self._has_failed:
            self._has_failed, self._retry_ticks = False, ticks + RETRY_MS
        elif ticks >= self._retry_ticks:
            self._retry_ticks = _NEVER
            self._broker.jobs.add(lambda: self._creation(now_ms), self._created)
        return self._retry_ticks

    def _creation(self, now_ms: int) -> Work | None:
        broker = self._broker
        missing = {
            partition: topic.topic_id
            for topic in broker.image.topics.values()
            if not broker.topics.is_in_creation(topic.name)
            for partition in (TopicPartition(topic.name, number) for number in topic.partitions)
            if partition not in broker.logs and partition not in broker.data.refused
        }
        return broker.data.creation(missing, now_ms=now_ms) if missing else None

    def _created(self, error: Exception | None) -> None:
        if error is not None:
            if str(error) != self._said:
                self._said = str(error)
                LOG.error("partitions without a directory, retried every second: %s", error)
            self.creation_failed()
        else:
            self._said = ""
            self._broker.load_coordinators()

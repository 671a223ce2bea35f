"""Retries the creation of logs of registered partitions, after their directories could not be created.

The disk was full, or failed for a while. Until then clients get KAFKA_STORAGE_ERROR. At a start
``Topics.reconcile`` does the same.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from txnkafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.broker.services import Services
    from txnkafka.storage.work import Work

LOG = logging.getLogger("txnkafka.broker")
RETRY_MS: Final = 1_000
_NEVER: Final = (1 << 63) - 1


class MissingLogs:
    """Retries a failed creation after a second."""

    def __init__(
        self, services: Services, is_in_creation: Callable[[str], bool], on_created: Callable[[], None]
    ) -> None:
        self._services = services
        self._is_in_creation = is_in_creation
        self._on_created = on_created
        self._has_failed = False
        self._retry_ticks = _NEVER
        self._said = ""  # error of the last creation

    def creation_failed(self) -> None:
        """Note that a creation has failed; retry it in a second."""
        self._has_failed = True
        self._services.look_again()

    def advance(self, now_ms: int, ticks: int) -> int:
        """Retry when it is time; return the ticks at which to call again."""
        if self._has_failed:
            self._has_failed, self._retry_ticks = False, ticks + RETRY_MS
        elif ticks >= self._retry_ticks:
            self._retry_ticks = _NEVER
            self._services.jobs.add(lambda: self._creation(now_ms), self._created)
        return self._retry_ticks

    def _creation(self, now_ms: int) -> Work | None:
        services = self._services
        missing = {
            partition: topic.topic_id
            for topic in services.image.topics.values()
            if not self._is_in_creation(topic.name)
            for partition in (TopicPartition(topic.name, number) for number in topic.partitions)
            if partition not in services.logs and partition not in services.data.refused
        }
        return services.data.creation(missing, now_ms=now_ms) if missing else None

    def _created(self, error: Exception | None) -> None:
        if error is not None:
            if str(error) != self._said:
                self._said = str(error)
                LOG.error("partitions without a directory, retried every second: %s", error)
            self.creation_failed()
        else:
            self._said = ""
            self._on_created()

"""Transactions that hold back the last stable offset, and with it a stream: how they are reported."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from txnkafka.model import TopicPartition
from txnkafka.shown import duration

LOG = logging.getLogger("txnkafka.spark")
PATIENCE_MS: Final = 10_000  # most transactions end earlier


class HeldBack(NamedTuple):
    """The oldest open transaction of a partition. ``begun_ms``: the time of its first known record, in
    milliseconds, None if it is unknown; ``transactional_id``: None if it is unknown."""

    topic_partition: TopicPartition
    offset: int
    log_end: int
    producer_id: int
    producer_epoch: int
    transactional_id: str | None
    begun_ms: int | None

    def age_ms(self, now_ms: int) -> int | None:
        """Return how long the transaction has been open."""
        return None if self.begun_ms is None else max(0, now_ms - self.begun_ms)

    def to_json(self, now_ms: int) -> dict[str, Any]:
        """Return the entry of the query's progress, without unknown values."""
        facts = {
            "lastStableOffset": self.offset,
            "logEndOffset": self.log_end,
            "producerId": self.producer_id,
            "producerEpoch": self.producer_epoch,
            "transactionalId": self.transactional_id,
            "ageMs": self.age_ms(now_ms),
        }
        return {name: value for name, value in facts.items() if value is not None}

    def text(self, now_ms: int) -> str:
        """Return the message for the log."""
        age = self.age_ms(now_ms)
        since = "" if age is None else f", open for {duration(age)},"
        owner = "" if self.transactional_id is None else f" ({self.transactional_id!r})"
        return (
            f"{self.topic_partition}: a transaction of producer {self.producer_id}{owner}, "
            f"epoch {self.producer_epoch}{since} holds the stream back at offset {self.offset}; the log ends "
            f"at {self.log_end}. 'txnkafka lso' explains it, and how to end it"
        )


class HeldBackLog:
    """Logs a warning for each transaction that holds the stream back for long, again whenever its age has
    doubled."""

    def __init__(self) -> None:
        self._next: dict[tuple[TopicPartition, int, int], int] = {}

    def report(self, found: Iterable[HeldBack], now_ms: int) -> None:
        """Log the transactions that are due."""
        due = {}
        for each in found:
            key = each.topic_partition, each.producer_id, each.offset
            age = each.age_ms(now_ms)
            age = PATIENCE_MS if age is None else age
            due[key] = self._next.get(key, PATIENCE_MS)
            if age >= due[key]:
                due[key] = 2 * age
                LOG.warning("%s", each.text(now_ms))
        self._next = due

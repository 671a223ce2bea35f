"""``CoordinatorHost``: what a transaction coordinator needs of the broker around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from txnkafka.coordinator.markers import Marker
from txnkafka.model import TopicPartition

__all__ = ["CoordinatorHost"]


class CoordinatorHost(Protocol):
    """None of these waits for the disk, and none calls the coordinator back before it has returned.

    Each ticket is handed back once, by ``TransactionCoordinator.flushed``: durable, or with an error. Tickets
    of one partition of ``__transaction_state`` come back in the order of the appends, and a log that is read
    after a crash ends behind some record of it: a record that is durable has all before it.
    """

    def append(
        self, partition: int, records: Sequence[tuple[bytes, bytes | None]], *, is_awaited: bool = True
    ) -> int:
        """Append one batch to a partition of ``__transaction_state``; returns its ticket. What is not awaited
        may become durable with what is appended later. Raises KafkaError when nothing was appended."""

    def max_batch_bytes(self, partition: int) -> int:
        """The largest batch that the log of a partition of ``__transaction_state`` takes: ask for each batch,
        because it may change at any time."""

    def flush_data(self, producer_id: int, partitions: frozenset[TopicPartition]) -> int | None:
        """The ticket of a flush of everything that the producer has appended to these partitions so far, or
        None when all of it is durable. Raises KafkaError when it can never be."""

    def write_marker(self, marker: Marker) -> None:
        """Append an end marker. When it is durable or was refused, ``marker_written`` is called, once. A
        marker of a smaller coordinator epoch than the partition has seen is written with that epoch: there
        is one owner. For a partition whose topic is not in the registry, ``partition_deleted`` is called."""

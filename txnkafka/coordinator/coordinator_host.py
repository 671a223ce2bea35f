"""``CoordinatorHost``: what a transaction coordinator needs of the broker around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from txnkafka.coordinator.markers import Marker
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

__all__ = ["CoordinatorHost"]


class CoordinatorHost(Protocol):
    """No method waits for the disk, and none calls the coordinator back before it has returned.

    Each ``call`` is made once: with NONE when the data is durable, or with the error by which it never will
    be. The calls for one partition of ``__transaction_state`` are made in the order of the appends. When a
    record is durable, all records before it in the log are.
    """

    @property
    def now_ms(self) -> int:
        """The time of the request or call that runs."""

    def append(
        self,
        partition: int,
        records: Sequence[tuple[bytes, bytes | None]],
        call: Callable[[ErrorCode], None],
        *,
        is_awaited: bool = True,
    ) -> None:
        """Append one batch to a partition of ``__transaction_state``. A batch that is not awaited may become
        durable with later ones. Raises KafkaError when nothing was appended; then ``call`` is not made."""

    def max_batch_bytes(self, partition: int) -> int:
        """The largest batch that the log of a partition of ``__transaction_state`` takes: ask for each batch,
        because it may change at any time."""

    def flush_data(
        self, producer_id: int, partitions: frozenset[TopicPartition], call: Callable[[ErrorCode], None]
    ) -> bool:
        """Flush everything that the producer has appended to these partitions so far. Returns False, and does
        not ``call``, when all of it is durable. Raises KafkaError when it can never be."""

    def write_marker(self, marker: Marker) -> None:
        """Append an end marker. When it is durable or was refused, ``marker_written`` is called, once. A
        marker of a smaller coordinator epoch than the partition has seen is written with that epoch: there
        is one owner. For a partition whose topic is not in the registry, ``partition_deleted`` is called."""

"""``CoordinatorHost``: the broker as seen by a transaction coordinator, beside the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from txnkafka.coordinator.txn.markers import Marker
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition


class CoordinatorHost(Protocol):
    """No method waits for the disk, and none calls the coordinator back before it has returned."""

    @property
    def now_ms(self) -> int:
        """The time of the request or call that runs."""

    def flush_data(
        self, producer_id: int, partitions: frozenset[TopicPartition], call: Callable[[ErrorCode], None]
    ) -> bool:
        """Flush all data of the producer in these partitions. Return False, without ``call``, if it is
        durable already. Raises KafkaError if it can never be durable."""

    def write_marker(self, marker: Marker) -> None:
        """Append an end marker. When it is durable or was refused, ``marker_written`` is called, once. A
        marker with a lower coordinator epoch than the partition has seen is written with the seen epoch: the
        node has one coordinator. For a partition without a topic in the registry, ``partition_deleted`` is
        called."""

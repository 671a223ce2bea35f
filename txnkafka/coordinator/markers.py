"""Markers on their way: which partitions get one, which have one, which is to be tried again and when.

A machine without clock and sockets, for all transactions of a coordinator. ``begin`` takes the effect of
PREPARE_*, ``due`` says which markers are to be written now, ``acknowledge`` takes what became of one:
durable, or an error. With the last partition of a transaction comes ``MarkersWritten``, once.

A marker is known by producer id, marker epoch and coordinator epoch: an acknowledgement that belongs to an
earlier transaction of the same id, or to the time before a restart, changes nothing (KAFKA-10080,
KAFKA-16352). To write a marker twice is harmless, to forget one is not: whatever error there is, it is tried
again. The exceptions:

- The topic is deleted (``partition_deleted``): there is nothing to end; the other partitions go on.
- UNSUPPORTED_FOR_MESSAGE_FORMAT, UNSUPPORTED_VERSION: no transactional batch can be there.
- INVALID_PRODUCER_EPOCH: the partition has a later marker of the producer, or the transaction that follows,
  so it has had this marker. After a crash that happens where COMPLETE_* was lost and data was not.
- TRANSACTION_COORDINATOR_FENCED ``MAX_REFUSALS`` times: an administrator wrote a marker with a greater
  coordinator epoch by hand. Kafka stops there, and the transactional id is blocked until a restart. A node
  that owns its partitions can do better, and write with the epoch that the partition has.

Source: TransactionMarkerChannelManager, TransactionMarkerRequestCompletionHandler.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from txnkafka.coordinator.txn_events import MarkersWritten, WriteMarkers
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

__all__ = ["MAX_REFUSALS", "Marker", "Markers"]

FIRST_BACKOFF_MS: Final = 20
LONGEST_BACKOFF_MS: Final = 1_000
MAX_REFUSALS: Final = 10

WRITTEN: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)


class Marker(NamedTuple):
    """An end marker for one partition; ``transaction_version`` decides how the partition checks its epoch."""

    transactional_id: str
    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int


@dataclass(slots=True)
class _Pending:
    """The markers of one transaction that are not written yet, and how often each was tried in vain."""

    effect: WriteMarkers
    coordinator_epoch: int
    failures: dict[TopicPartition, int] = field(default_factory=dict)

    def marker(self, partition: TopicPartition) -> Marker:
        effect = self.effect
        return Marker(
            effect.transactional_id,
            partition,
            effect.producer_id,
            effect.producer_epoch,
            self.coordinator_epoch,
            effect.committed,
            effect.transaction_version,
        )

    def written(self) -> MarkersWritten:
        effect = self.effect
        return MarkersWritten(effect.transactional_id, effect.producer_id, effect.producer_epoch)


class Markers:
    """All markers that a coordinator has to write; one transaction for each transactional id."""

    def __init__(self) -> None:
        self._pending: dict[str, _Pending] = {}
        self._due: list[tuple[int, int, Marker]] = []  # a heap: time, order of arrival
        self._arrivals = 0

    def __len__(self) -> int:
        """Transactions whose markers are not all written."""
        return len(self._pending)

    def remaining(self, transactional_id: str) -> frozenset[TopicPartition]:
        """The partitions whose marker is not durable yet."""
        pending = self._pending.get(transactional_id)
        return frozenset(pending.failures) if pending else frozenset()

    def begin(self, effect: WriteMarkers, coordinator_epoch: int, now_ms: int) -> MarkersWritten | None:
        """Take in the markers of a transaction, instead of those that its id had before. A transaction
        without partitions is written at once."""
        pending = _Pending(effect, coordinator_epoch, dict.fromkeys(sorted(effect.partitions), 0))
        if not effect.partitions:
            self._pending.pop(effect.transactional_id, None)
            return pending.written()
        self._pending[effect.transactional_id] = pending
        for partition in pending.failures:
            self._push(now_ms, pending.marker(partition))
        return None

    def due(self, now_ms: int) -> list[Marker]:
        """The markers to write now, in the order in which they came due; each must be acknowledged."""
        found = []
        while self._due and self._due[0][0] <= now_ms:
            marker = heapq.heappop(self._due)[2]
            if self._awaits(marker):
                found.append(marker)
        return found

    def deadline(self) -> int | None:
        """When the next marker is due."""
        while self._due and not self._awaits(self._due[0][2]):
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def acknowledge(self, marker: Marker, error: ErrorCode, now_ms: int) -> MarkersWritten | None:
        """A marker is durable in its partition, or was refused."""
        if not self._awaits(marker):
            return None
        if error in WRITTEN:
            return self._written(marker)
        failures = self._pending[marker.transactional_id].failures
        failures[marker.partition] += 1
        if error == ErrorCode.TRANSACTION_COORDINATOR_FENCED and failures[marker.partition] >= MAX_REFUSALS:
            return self._written(marker)
        backoff = FIRST_BACKOFF_MS << min(failures[marker.partition] - 1, 10)
        self._push(now_ms + min(backoff, LONGEST_BACKOFF_MS), marker)
        return None

    def partition_deleted(self, partition: TopicPartition) -> list[MarkersWritten]:
        """The topic of the partition is really gone, not merely without a log for a moment."""
        hit = [pending for pending in self._pending.values() if partition in pending.failures]
        done = [self._written(pending.marker(partition)) for pending in hit]
        return [event for event in done if event is not None]

    def forget(self, transactional_id: str) -> None:
        """Another coordinator goes on with the transaction."""
        self._pending.pop(transactional_id, None)

    def _awaits(self, marker: Marker) -> bool:
        pending = self._pending.get(marker.transactional_id)
        if pending is None or marker.partition not in pending.failures:
            return False
        return pending.marker(marker.partition) == marker

    def _written(self, marker: Marker) -> MarkersWritten | None:
        pending = self._pending[marker.transactional_id]
        del pending.failures[marker.partition]
        if pending.failures:
            return None
        del self._pending[marker.transactional_id]
        return pending.written()

    def _push(self, time_ms: int, marker: Marker) -> None:
        self._arrivals += 1
        heapq.heappush(self._due, (time_ms, self._arrivals, marker))

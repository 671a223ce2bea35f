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
from dataclasses import dataclass
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
    """The markers of one transaction that are not written yet, by partition; how often those that failed did;
    and what follows when all are written."""

    markers: dict[TopicPartition, Marker]
    written: MarkersWritten
    failures: dict[TopicPartition, int]


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
        return frozenset(pending.markers) if pending else frozenset()

    @property
    def has_deadline(self) -> bool:
        """Whether ``deadline`` may be more than None."""
        return bool(self._due)

    def begin(self, effect: WriteMarkers, coordinator_epoch: int, now_ms: int) -> MarkersWritten | None:
        """Take in the markers of a transaction, instead of those that its id had before. A transaction
        without partitions is written at once."""
        transactional_id, producer_id, epoch, committed, partitions, version = effect
        written = MarkersWritten(transactional_id, producer_id, epoch)
        if not partitions:
            self._pending.pop(transactional_id, None)
            return written
        markers: dict[TopicPartition, Marker] = {}
        self._pending[transactional_id] = _Pending(markers, written, {})
        for partition in sorted(partitions):
            marker = markers[partition] = Marker(
                transactional_id, partition, producer_id, epoch, coordinator_epoch, committed, version
            )
            self._push(now_ms, marker)
        return None

    def due(self, now_ms: int) -> list[Marker]:
        """The markers to write now, in the order in which they came due; each must be acknowledged."""
        found = []
        while self._due and self._due[0][0] <= now_ms:
            marker = heapq.heappop(self._due)[2]
            if self._awaiting(marker) is not None:
                found.append(marker)
        return found

    def deadline(self) -> int | None:
        """When the next marker is due."""
        while self._due and self._awaiting(self._due[0][2]) is None:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def acknowledge(self, marker: Marker, error: ErrorCode, now_ms: int) -> MarkersWritten | None:
        """A marker is durable in its partition, or was refused."""
        pending = self._awaiting(marker)
        if pending is None:
            return None
        if error in WRITTEN:
            return self._written(pending, marker)
        failures = pending.failures
        failed = failures[marker.partition] = failures.get(marker.partition, 0) + 1
        if error == ErrorCode.TRANSACTION_COORDINATOR_FENCED and failed >= MAX_REFUSALS:
            return self._written(pending, marker)
        backoff = FIRST_BACKOFF_MS << min(failed - 1, 10)
        self._push(now_ms + min(backoff, LONGEST_BACKOFF_MS), marker)
        return None

    def partition_deleted(self, partition: TopicPartition) -> list[MarkersWritten]:
        """The topic of the partition is really gone, not merely without a log for a moment."""
        hit = [pending for pending in self._pending.values() if partition in pending.markers]
        done = [self._written(pending, pending.markers[partition]) for pending in hit]
        return [event for event in done if event is not None]

    def forget(self, transactional_id: str) -> None:
        """Another coordinator goes on with the transaction."""
        self._pending.pop(transactional_id, None)

    def _awaiting(self, marker: Marker) -> _Pending | None:
        pending = self._pending.get(marker.transactional_id)
        if pending is None or pending.markers.get(marker.partition) != marker:
            return None
        return pending

    def _written(self, pending: _Pending, marker: Marker) -> MarkersWritten | None:
        del pending.markers[marker.partition]
        if pending.markers:
            return None
        del self._pending[marker.transactional_id]
        return pending.written

    def _push(self, time_ms: int, marker: Marker) -> None:
        self._arrivals += 1
        heapq.heappush(self._due, (time_ms, self._arrivals, marker))

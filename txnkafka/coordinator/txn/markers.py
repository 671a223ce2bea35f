"""End markers in progress: which partitions still need one, and when to retry.

A state machine without clock and sockets, for all transactions of a coordinator. ``begin`` takes the effect
of PREPARE_*, ``due`` returns the markers to write now, ``acknowledge`` takes the result of one: durable, or
an error. The last partition of a transaction returns ``MarkersWritten``, once.

A marker is identified by producer id, marker epoch and coordinator epoch: an acknowledgement for an earlier
transaction of the same id, or from before a restart, changes nothing (KAFKA-10080, KAFKA-16352). Writing a
marker twice is harmless, losing one is not. So a marker is retried after every error, except:

- The topic is deleted (``partition_deleted``): nothing is left to end; the other partitions continue.
- UNSUPPORTED_FOR_MESSAGE_FORMAT, UNSUPPORTED_VERSION: the partition cannot contain a transactional batch.
- INVALID_PRODUCER_EPOCH: the partition has a later marker of the producer, or its next transaction, so it
  already has this marker. This happens after a crash that lost COMPLETE_* but no data.
- TRANSACTION_COORDINATOR_FENCED ``MAX_REFUSALS`` times: an administrator wrote a marker with a greater
  coordinator epoch by hand. Kafka stops here, and the transactional id is blocked until a restart. A node
  that owns its partitions can instead write with the epoch of the partition.

Source: TransactionMarkerChannelManager, TransactionMarkerRequestCompletionHandler.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Final, NamedTuple

from txnkafka.coordinator.txn.txn_events import MarkersWritten, WriteMarkers
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

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
    """One transaction: its unwritten markers by partition, their failures so far, and the event for when
    all are written."""

    markers: dict[TopicPartition, Marker]
    written: MarkersWritten
    failures: dict[TopicPartition, int]


class Markers:
    """All markers that a coordinator has to write; at most one transaction for each transactional id."""

    def __init__(self) -> None:
        self._pending: dict[str, _Pending] = {}
        self._due: list[tuple[int, int, Marker]] = []  # a heap of time, order of arrival, marker
        self._arrivals = 0

    def __len__(self) -> int:
        """Return the number of transactions with unwritten markers."""
        return len(self._pending)

    def remaining(self, transactional_id: str) -> frozenset[TopicPartition]:
        """Return the partitions whose marker is not durable."""
        pending = self._pending.get(transactional_id)
        return frozenset(pending.markers) if pending else frozenset()

    @property
    def has_deadline(self) -> bool:
        """Return whether ``deadline`` may return a time."""
        return bool(self._due)

    def begin(self, effect: WriteMarkers, coordinator_epoch: int, now_ms: int) -> MarkersWritten | None:
        """Add the markers of a transaction, in place of earlier ones of its id. Without partitions it is
        complete at once."""
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
        """Return the markers to write now, in the order in which they became due; each must be
        acknowledged."""
        found = []
        while self._due and self._due[0][0] <= now_ms:
            marker = heapq.heappop(self._due)[2]
            if self._awaiting(marker) is not None:
                found.append(marker)
        return found

    def deadline(self) -> int | None:
        """Return the time when the next marker is due, or None."""
        while self._due and self._awaiting(self._due[0][2]) is None:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def acknowledge(self, marker: Marker, error: ErrorCode, now_ms: int) -> MarkersWritten | None:
        """Note that a marker is durable in its partition, or was refused."""
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
        """Drop the markers of a partition whose topic was deleted; not for one that only lacks a log for a
        moment."""
        hit = [pending for pending in self._pending.values() if partition in pending.markers]
        done = [self._written(pending, pending.markers[partition]) for pending in hit]
        return [event for event in done if event is not None]

    def forget(self, transactional_id: str) -> None:
        """Drop the markers of a transaction that another coordinator continues."""
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

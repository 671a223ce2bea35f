"""Producer state of a partition, slow and obvious, after Kafka's classes.

org.apache.kafka.storage.internals.log: ProducerStateManager, ProducerAppendInfo, ProducerStateEntry,
UnifiedLog.analyzeAndValidateProducerState. ``check`` is what a leader checks before an append, ``update``
what the append or a replay changes. ``write_snapshot`` is ProducerStateManager.writeSnapshot.

Two rules are txnkafka's own. A transactional batch that the cleaner emptied opens no transaction; its marker,
or that of the data after it, completes one that began with it. And a transactional batch repeats only batches
of the transaction that is open.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from crc32c import crc32c

from tests.models.record_batch import CONTROL, TRANSACTIONAL, BatchHeader

__all__ = ["CachedBatch", "ProducerStateManager", "Request", "write_snapshot"]

REPLICATION, COORDINATOR, CLIENT = range(3)
LARGEST = 2**31 - 1


class CachedBatch(NamedTuple):
    """The fields that are kept of a batch."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int


class Request(NamedTuple):
    """The leader's knowledge of an append besides its batch."""

    origin: int
    transaction_version: int = -1
    verified: bool = True
    lowest_sequence: int | None = None
    supports_epoch_bump: bool = False


def increment(sequence: int, by: int) -> int:
    return (sequence + by) % (LARGEST + 1)


def last_sequence_of(batch: BatchHeader) -> int:
    if batch.base_sequence < 0:
        return -1
    return increment(batch.base_sequence, batch.last_offset - batch.base_offset)


@dataclass
class _Entry:
    producer_epoch: int
    batches: list[CachedBatch] = field(default_factory=list)  # at most five
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    current_txn_first_offset: int = -1
    emptied_first_offset: int = -1

    def same_as(self, batch: BatchHeader) -> CachedBatch | None:
        """Return the batch with this epoch, these sequences and this size."""
        if self.producer_epoch == batch.producer_epoch and batch.base_sequence >= 0:
            for cached in self.batches:
                same_size = cached.offset_delta == batch.last_offset - batch.base_offset
                if same_size and cached.last_sequence == last_sequence_of(batch):
                    return cached
        return None

    def set_epoch(self, producer_epoch: int) -> None:
        if producer_epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch


class ProducerStateManager:
    """The state after all batches so far."""

    def __init__(self) -> None:
        self.entries: dict[int, _Entry] = {}
        self.ongoing: dict[int, int] = {}  # first offset → producer id
        self.completed: list[tuple[int, int, int, bool, int]] = []

    def check(self, batch: BatchHeader, request: Request) -> int | CachedBatch:
        """Return the error code, 0 when the batch may be appended, or the batch that it repeats."""
        if batch.producer_id < 0:
            return 0
        known = self.entries.get(batch.producer_id)
        entry = known or _Entry(-1)
        same_epoch = entry.producer_epoch == batch.producer_epoch
        if request.origin == CLIENT and (cached := entry.same_as(batch)):
            is_open = 0 <= entry.current_txn_first_offset <= cached.last_offset
            if is_open or not batch.attributes & TRANSACTIONAL:
                return cached
        in_transaction = same_epoch and entry.current_txn_first_offset != -1
        if batch.attributes & TRANSACTIONAL and request.origin != REPLICATION and not in_transaction:
            if known and batch.producer_epoch < known.producer_epoch:
                return 47
            if not batch.attributes & CONTROL and not request.verified:
                return 48
        if batch.attributes & CONTROL:
            return self._check_marker(entry, batch, request)
        return self._check_data(entry, batch, request)

    def _check_marker(self, entry: _Entry, batch: BatchHeader, request: Request) -> int:
        if request.origin == REPLICATION:
            return 0
        if request.transaction_version == -1:
            return -1
        is_retry = entry.current_txn_first_offset == -1 or batch.producer_epoch == 32767
        if batch.producer_epoch == entry.producer_epoch and request.transaction_version == 2 and not is_retry:
            return 47
        if batch.producer_epoch < entry.producer_epoch:
            return 47
        return 52 if batch.coordinator_epoch < entry.coordinator_epoch else 0

    def _check_data(self, entry: _Entry, batch: BatchHeader, request: Request) -> int:
        if request.origin != REPLICATION and batch.producer_epoch < entry.producer_epoch:
            return 47
        if request.origin == CLIENT and not self._in_sequence(entry, batch, request):
            return 45
        is_plain = not batch.attributes & TRANSACTIONAL
        return 48 if entry.current_txn_first_offset != -1 and is_plain else 0

    def _in_sequence(self, entry: _Entry, batch: BatchHeader, request: Request) -> bool:
        sequence = batch.base_sequence
        if request.lowest_sequence is not None:
            if request.supports_epoch_bump and sequence != 0 and not entry.batches:
                return False
            if sequence > request.lowest_sequence:
                return False
        if entry.producer_epoch == -1:
            return True
        if entry.producer_epoch != batch.producer_epoch:
            return sequence == 0
        if entry.same_as(batch):
            return False
        last = entry.batches[-1].last_sequence if entry.batches else -1
        return sequence == increment(last, 1)

    def update(self, batch: BatchHeader) -> None:
        if batch.producer_id < 0:
            return
        if batch.attributes & CONTROL and (not batch.count or batch.control_type not in (0, 1)):
            return
        entry = self.entries.setdefault(batch.producer_id, _Entry(batch.producer_epoch))
        if batch.attributes & CONTROL:
            self._end_transaction(entry, batch)
        else:
            self._append(entry, batch)

    def _append(self, entry: _Entry, batch: BatchHeader) -> None:
        entry.set_epoch(batch.producer_epoch)
        offset_delta = batch.last_offset - batch.base_offset
        cached = CachedBatch(last_sequence_of(batch), batch.last_offset, offset_delta, batch.max_timestamp)
        entry.batches = [*entry.batches[-4:], cached]
        entry.last_timestamp = batch.max_timestamp
        if not batch.attributes & TRANSACTIONAL or entry.current_txn_first_offset != -1:
            return
        if not batch.count:
            if entry.emptied_first_offset == -1:
                entry.emptied_first_offset = batch.base_offset
        else:
            entry.current_txn_first_offset = batch.base_offset
            self.ongoing[batch.base_offset] = batch.producer_id

    def _end_transaction(self, entry: _Entry, batch: BatchHeader) -> None:
        self.ongoing.pop(entry.current_txn_first_offset, None)
        first_offset = entry.current_txn_first_offset
        if entry.emptied_first_offset != -1:
            first_offset = entry.emptied_first_offset
        if first_offset != -1:
            others = [offset for offset, owner in self.ongoing.items() if owner != batch.producer_id]
            last_stable_offset = min(others, default=batch.base_offset + 1)
            aborted = batch.control_type == 0
            self.completed.append(
                (batch.producer_id, first_offset, batch.base_offset, aborted, last_stable_offset)
            )
        entry.set_epoch(batch.producer_epoch)
        entry.coordinator_epoch = batch.coordinator_epoch
        entry.current_txn_first_offset = entry.emptied_first_offset = -1
        entry.last_timestamp = batch.max_timestamp

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Return the lowest first offset of the transactions that are open or whose markers are not below the
        high watermark."""
        unreplicated = [first for _, first, last, _, _ in self.completed if last >= high_watermark]
        return min([*self.ongoing, *unreplicated], default=None)

    def rows(self) -> list[tuple[int, ...]]:
        """Return the fields of each producer in the order of txnkafka's entries."""
        return [
            (producer_id, entry.producer_epoch, entry.coordinator_epoch, entry.last_timestamp,
             entry.current_txn_first_offset, *(entry.batches[-1][:3] if entry.batches else (-1, -1, 0)))
            for producer_id, entry in sorted(self.entries.items())
        ]  # fmt: skip


def write_snapshot(rows: Iterable[tuple[int, ...]], version: int = 1) -> bytes:
    """Encode a snapshot file of producers; their fields are as in ``rows()``."""
    entries = [
        struct.pack(
            ">qhiqiqiq", producer_id, epoch, sequence, last_offset, delta, timestamp, coordinator_epoch, first
        )
        for producer_id, epoch, coordinator_epoch, timestamp, first, sequence, last_offset, delta in rows
    ]
    content = struct.pack(">i", len(entries)) + b"".join(entries)
    return struct.pack(">hI", version, crc32c(content)) + content

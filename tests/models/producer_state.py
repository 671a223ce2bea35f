"""Producer state of a partition, the slow and obvious way: Kafka's classes for it, without their checks.

org.apache.kafka.storage.internals.log: ProducerStateManager, ProducerAppendInfo, ProducerStateEntry, in the
way they replay a log. ``write_snapshot`` is ProducerStateManager.writeSnapshot.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.models.crc32c import crc32c
from tests.models.record_batch import CONTROL, TRANSACTIONAL, BatchHeader

__all__ = ["ProducerStateManager", "write_snapshot"]


@dataclass
class _Entry:
    producer_epoch: int
    batches: list[tuple[int, int, int]] = field(
        default_factory=list
    )  # last sequence, last offset, offset delta
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    current_txn_first_offset: int = -1

    def set_epoch(self, producer_epoch: int) -> None:
        if producer_epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch


class ProducerStateManager:
    """State after all batches so far."""

    def __init__(self) -> None:
        self.entries: dict[int, _Entry] = {}
        self.ongoing: dict[int, int] = {}  # first offset → producer id
        self.completed: list[tuple[int, int, int, bool, int]] = []

    def update(self, batch: BatchHeader) -> None:
        if batch.producer_id < 0:
            return
        entry = self.entries.setdefault(batch.producer_id, _Entry(batch.producer_epoch))
        if batch.attributes & CONTROL:
            self._end_transaction(entry, batch)
        else:
            self._append(entry, batch)

    def _append(self, entry: _Entry, batch: BatchHeader) -> None:
        entry.set_epoch(batch.producer_epoch)
        offset_delta = batch.last_offset - batch.base_offset
        last_sequence = batch.base_sequence
        for _ in range(offset_delta):
            last_sequence = 0 if last_sequence == 2**31 - 1 else last_sequence + 1
        entry.batches.append((last_sequence, batch.last_offset, offset_delta))
        entry.last_timestamp = batch.max_timestamp
        if batch.attributes & TRANSACTIONAL and entry.current_txn_first_offset == -1:
            entry.current_txn_first_offset = batch.base_offset
            self.ongoing[batch.base_offset] = batch.producer_id

    def _end_transaction(self, entry: _Entry, batch: BatchHeader) -> None:
        first_offset = entry.current_txn_first_offset
        if first_offset != -1:
            others = [offset for offset, owner in self.ongoing.items() if owner != batch.producer_id]
            last_stable_offset = min(others, default=batch.base_offset + 1)
            aborted = batch.control_type == 0
            self.completed.append(
                (batch.producer_id, first_offset, batch.base_offset, aborted, last_stable_offset)
            )
            del self.ongoing[first_offset]
        entry.set_epoch(batch.producer_epoch)
        entry.coordinator_epoch = batch.coordinator_epoch
        entry.current_txn_first_offset = -1
        entry.last_timestamp = batch.max_timestamp

    def rows(self) -> list[tuple[int, ...]]:
        """Fields of each producer in the order of txnkafka's entries."""
        return [
            (producer_id, entry.producer_epoch, entry.coordinator_epoch, entry.last_timestamp,
             entry.current_txn_first_offset, *(entry.batches[-1] if entry.batches else (-1, -1, 0)))
            for producer_id, entry in sorted(self.entries.items())
        ]  # fmt: skip


def write_snapshot(rows: Iterable[tuple[int, ...]], version: int = 1) -> bytes:
    """A snapshot file of producers whose fields are as in ``rows()``."""
    entries = [
        struct.pack(
            ">qhiqiqiq", producer_id, epoch, sequence, last_offset, delta, timestamp, coordinator_epoch, first
        )
        for producer_id, epoch, coordinator_epoch, timestamp, first, sequence, last_offset, delta in rows
    ]
    content = struct.pack(">i", len(entries)) + b"".join(entries)
    return struct.pack(">hI", version, crc32c(content)) + content

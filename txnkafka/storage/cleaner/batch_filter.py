"""Decides which records and batches compaction keeps.

The last record of each key stays. Aborted data is removed. A marker stays until a pass finds no data of its
transaction; that pass gives it a delete horizon, now + ``delete.retention.ms``, and a pass after the horizon
removes it. Tombstones get a horizon in the first pass and are removed in the same way. A batch without
remaining records is also removed, unless

- it has the last known sequence of a producer, or is a marker that alone has a producer's epoch.
  This marker stays unchanged: Kafka empties it, but replaying an empty marker restores no epoch;
- it ends a segment. Kafka keeps only a batch that ends at the high watermark (before 4.4: the last batch of
  the pass). Because the last batch of each segment stays, no gap looks like a missing segment, and each
  segment shows where it ends.

Source: ``Cleaner.cleanInto``, ``MemoryRecords.filterTo``; KIP-98, KIP-534.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka._core.compact import survivors
from txnkafka._core.encode import empty_batch, replace_payload
from txnkafka.errors import CorruptRecordError
from txnkafka.model import NO_PRODUCER_ID
from txnkafka.record.batch_header import (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
    CONTROL_ABORT,
    HEADER_SIZE,
    MAGIC_2,
)
from txnkafka.record.compression import CompressionType, Compressor
from txnkafka.storage.cleaner.batch_reader import BatchReader

if TYPE_CHECKING:
    from txnkafka._core.compact import Survivors
    from txnkafka._core.offset_map import OffsetMap
    from txnkafka._core.producer_table import ProducerTable
    from txnkafka._core.scan import BatchHeader
    from txnkafka.env import Bytes
    from txnkafka.storage.cleaner.batch_reader import Window
    from txnkafka.storage.cleaner.cleaned_transactions import CleanedTransactions

_LAST_MS = 2**63 - 1  # largest timestamp; with a longer retention, tombstones and markers stay for ever


class BatchFilter:
    """Filters the batches of a log in offset order, beginning with the first.

    ``kept`` and ``dropped`` count data records; ``kept_aborts`` are the ABORT markers whose transactions
    still have batches."""

    def __init__(
        self,
        producers: ProducerTable,
        keys: OffsetMap,
        transactions: CleanedTransactions,
        *,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self.kept = self.dropped = 0
        self.kept_aborts: list[BatchHeader] = []
        self._producers = producers
        self._keys = keys
        self._transactions = transactions
        self._now_ms = now_ms
        self._horizon_ms = min(now_ms + delete_retention_ms, _LAST_MS)
        self._reader = BatchReader()
        self._compressors: dict[int, Compressor] = {}

    def filter(self, window: Window, number: int, header: BatchHeader, *, ends_segment: bool) -> Bytes | None:
        """Return the bytes to write for a batch, or None. Raises CorruptRecordError."""
        if header.attributes & ATTRIBUTE_CONTROL:
            left = self._filter_marker(window, number, header)
        else:
            left = self._filter_data(window, number, header)
        if left is None and (ends_segment or self._is_last_of_producer(header)):
            return _emptied(header)
        return left

    def _filter_marker(self, window: Window, number: int, header: BatchHeader) -> Bytes | None:
        if header.count == 0:
            return None  # already emptied by another cleaner
        if not self._transactions.see_marker(header):
            if header.control_type == CONTROL_ABORT:
                self.kept_aborts.append(header)
            return window.batch(number)
        horizon = _delete_horizon(header)
        if horizon is None:
            return survivors(*self._reader.records(window, number)).build(delete_horizon=self._horizon_ms)
        if self._now_ms < horizon or self._is_last_of_producer(header):
            return window.batch(number)
        return None

    def _filter_data(self, window: Window, number: int, header: BatchHeader) -> Bytes | None:
        self._transactions.see_data(header)
        if not header.count or self._transactions.is_aborted(header):
            self.dropped += max(header.count, 0)
            return None
        horizon = _delete_horizon(header)
        try:
            chosen = survivors(
                *self._reader.records(window, number),
                self._keys,
                keep_tombstones=horizon is None or self._now_ms < horizon,
            )
        except CorruptRecordError as error:
            window.locate(error, number)
            raise
        self.kept += chosen.kept
        self.dropped += chosen.dropped
        if not chosen.kept:
            return None
        if chosen.has_tombstone and horizon is None:
            return self._built(header, chosen, self._horizon_ms)
        if chosen.dropped or header.magic < MAGIC_2:
            return self._built(header, chosen, horizon)
        return window.batch(number)

    def _built(self, header: BatchHeader, chosen: Survivors, horizon: int | None) -> Bytes:
        if header.magic < MAGIC_2:  # the old formats cannot keep the offsets of an empty batch
            batch = chosen.build(
                delete_horizon=horizon, base_offset=chosen.first_offset, last_offset=chosen.last_offset
            )
        else:
            batch = chosen.build(delete_horizon=horizon)
        codec = header.attributes & ATTRIBUTE_CODEC
        if not codec:
            return batch
        if codec not in self._compressors:
            self._compressors[codec] = Compressor(CompressionType.of(codec))
        payload = self._compressors[codec].compress(memoryview(batch)[HEADER_SIZE:])
        return replace_payload(batch, payload, codec=codec)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        """Return True if the batch has the last sequence or epoch of an unexpired producer."""
        producer_id = header.producer_id
        if producer_id == NO_PRODUCER_ID or not self._producers.is_active(producer_id):
            return False
        last_data_offset = self._producers.last_data_offset(producer_id)
        if last_data_offset >= 0:
            return header.last_offset == last_data_offset
        entry = self._producers.entry(producer_id)
        is_marker = bool(header.attributes & ATTRIBUTE_CONTROL)
        return is_marker and entry is not None and entry.producer_epoch == header.producer_epoch


def _delete_horizon(header: BatchHeader) -> int | None:
    if header.magic < MAGIC_2 or not header.attributes & ATTRIBUTE_DELETE_HORIZON:
        return None
    return header.base_timestamp


def _emptied(header: BatchHeader) -> bytes:
    """Return an empty batch (``DefaultRecordBatch.writeEmptyHeader``); a set of magic 0 or 1 becomes one
    offset, its last."""
    is_legacy = header.magic < MAGIC_2
    return empty_batch(
        base_offset=header.last_offset if is_legacy else header.base_offset,
        last_offset=header.last_offset,
        max_timestamp=header.max_timestamp,
        timestamp_type=int(bool(header.attributes & ATTRIBUTE_LOG_APPEND_TIME)),
        partition_leader_epoch=-1 if is_legacy else header.partition_leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=bool(header.attributes & ATTRIBUTE_TRANSACTIONAL) and not is_legacy,
        control=bool(header.attributes & ATTRIBUTE_CONTROL) and not is_legacy,
    )

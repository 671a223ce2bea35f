"""Rewrites segments of a compacted log into one new segment; ``storage.cleaner.segment_swap`` replaces them
by it.

A transaction's entry in the ``.txnindex`` is removed by the pass that gives its marker a delete horizon: then
no batch is left that the entry could hide.

Source: ``Cleaner.cleanSegments``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from txnkafka.errors import CorruptRecordError, RecordListTooLargeError
from txnkafka.record.batch_header import header_fields
from txnkafka.storage.cleaner.batch_filter import BatchFilter
from txnkafka.storage.cleaner.batch_reader import BatchReader
from txnkafka.storage.cleaner.cleaned_segment import CleanedSegment
from txnkafka.storage.log.transactions import transactions_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka._core.offset_map import OffsetMap
    from txnkafka.env import Bytes
    from txnkafka.storage.cleaner.batch_reader import Window
    from txnkafka.storage.cleaner.cleaned_transactions import CleanedTransactions
    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["Cleaner"]

_LARGEST = 2**31 - 1  # positions in an index


class Cleaner:
    """One pass over a log, from its first segment on. ``filter`` has the counts of records."""

    def __init__(
        self, log: PartitionLog, keys: OffsetMap, transactions: CleanedTransactions, now_ms: int
    ) -> None:
        self.filter = BatchFilter(log, keys, transactions, now_ms)
        self._log = log
        self._transactions = transactions
        self._reader = BatchReader()

    def rewrite(self, group: Sequence[LogSegment]) -> CleanedSegment:
        """Rewrite the next segments into one with the suffix ``.cleaned``, whose bytes are durable.

        Raises CorruptRecordError and OSError; then the new segment is removed.
        """
        log = self._log
        cleaned = CleanedSegment(log.files, log.directory, group[0].base_offset, log.config, created_ms=0)
        cleaned.files.remove_leftovers()
        try:
            self._fill(cleaned, group)
            cleaned.make_durable(group[-1].modified_ms)
        except BaseException:
            with suppress(OSError):
                cleaned.files.remove()
            raise
        return cleaned

    def _fill(self, cleaned: CleanedSegment, group: Sequence[LogSegment]) -> None:
        last = [segment for segment in group if segment.size][-1:]
        for segment in group:
            end = segment.size if segment in last else -1
            for window in self._reader.windows(segment):
                self._clean_window(cleaned, window, end)
                self._keep_aborts(cleaned, segment)

    def _clean_window(self, cleaned: CleanedSegment, window: Window, end: int) -> None:
        parts: list[tuple[Bytes, int, int]] = []
        for number, header in enumerate(window.index):
            ends_segment = header.position + header.size == end
            left = self.filter.filter(window, number, header, ends_segment=ends_segment)
            if left is None:
                continue
            fields = header_fields(left)
            last_offset = fields.base_offset + fields.last_offset_delta
            if not cleaned.fits(last_offset):
                error = CorruptRecordError(f"offset {last_offset} is too far from the segment's base offset")
                window.locate(error, number)
                raise error
            parts.append((left, last_offset, fields.max_timestamp))
        size = cleaned.size + sum(memoryview(batch).nbytes for batch, _, _ in parts)
        if size > _LARGEST:
            raise RecordListTooLargeError(f"{cleaned.path('log')} becomes larger than {_LARGEST} bytes")
        if parts:
            cleaned.extend(parts)

    def _keep_aborts(self, cleaned: LogSegment, segment: LogSegment) -> None:
        """Return the unchanged entries of the transactions whose markers have no delete horizon yet."""
        entries = {txn.last_offset: txn for txn in transactions_of(self._log, segment).entries}
        index = transactions_of(self._log, cleaned)
        for offset in self.filter.kept_aborts:
            if (entry := entries.get(offset)) is not None:
                index.append(entry.producer_id, entry.first_offset, offset, entry.last_stable_offset)
        self.filter.kept_aborts.clear()

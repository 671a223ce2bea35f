"""Rewrites segments of a compacted log into one new segment; ``storage.cleaner.segment_swap`` replaces the
old segments.

This code neither changes an open log nor reads state that appends change: a host runs it without its lock.

The pass that gives a transaction's marker a delete horizon also removes its ``.txnindex`` entry: no batch is
left that the entry could hide.

Source: ``Cleaner.cleanSegments``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from txnkafka.errors import CorruptFileError, CorruptRecordError, KafkaError, RecordListTooLargeError
from txnkafka.record.batch_header import header_fields
from txnkafka.storage.cleaner.batch_filter import BatchFilter
from txnkafka.storage.cleaner.batch_reader import BatchReader, cost_of
from txnkafka.storage.cleaner.cleaned_segment import CleanedSegment
from txnkafka.storage.formats.limits import TXN_INDEX_LIMIT
from txnkafka.storage.formats.txn_index import parse_txn_index

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from txnkafka._core.offset_map import OffsetMap
    from txnkafka._core.producer_table import ProducerTable
    from txnkafka.env import Bytes
    from txnkafka.storage.cleaner.batch_reader import Window
    from txnkafka.storage.cleaner.cleaned_transactions import CleanedTransactions
    from txnkafka.storage.formats.txn_index import AbortedTxn
    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.log.partition_log import PartitionLog

_LARGEST = 2**31 - 1  # positions in an index
_PART_BYTES = 128 << 10  # bytes per write
_SYNC_BYTES = 1 << 20  # bytes between two syncs, to keep each sync short


class Cleaner:
    """One pass over a log, from its first segment on. ``filter`` has the counts of records, ``cleaned`` is
    the new segment of the last rewritten group."""

    def __init__(
        self,
        log: PartitionLog,
        producers: ProducerTable,
        keys: OffsetMap,
        transactions: CleanedTransactions,
        now_ms: int,
    ) -> None:
        self.filter = BatchFilter(
            producers,
            keys,
            transactions,
            now_ms=now_ms,
            delete_retention_ms=log.config.delete_retention_ms,
        )
        self.cleaned: CleanedSegment | None = None
        self._log = log
        self._transactions = transactions
        self._reader = BatchReader()
        self._unsynced = 0
        self._last_offset = -1  # of the last kept batch in all groups

    def rewrite(self, group: Sequence[LogSegment]) -> Generator[int]:
        """Rewrite the next segments into ``cleaned``, with the suffix ``.cleaned``; its bytes are durable at
        the end. Yields the cost of each step in bytes. Raises CorruptRecordError and OSError."""
        log = self._log
        cleaned = CleanedSegment(log.files, log.directory, group[0].base_offset, log.config, created_ms=0)
        self.cleaned, self._unsynced = cleaned, 0
        cleaned.files.remove_leftovers()
        last = [segment for segment in group if segment.size][-1:]
        for segment in group:
            end = segment.size if segment in last else -1
            for window in self._reader.windows(segment):
                yield from self._clean_window(cleaned, window, end)
            self._keep_aborts(cleaned, segment)
        yield _SYNC_BYTES
        cleaned.make_durable(group[-1].modified_ms)

    def discard(self) -> None:
        """Remove the new segment, which replaces no segment."""
        if self.cleaned is not None:
            self.cleaned.close()
            with suppress(OSError, KafkaError):  # another log may have the path of a deleted log
                self._log.check_usable()
                self.cleaned.files.remove()

    def _clean_window(self, cleaned: CleanedSegment, window: Window, end: int) -> Iterator[int]:
        parts: list[tuple[Bytes, int, int]] = []
        size = 0
        for number, header in enumerate(window.index):
            ends_segment = header.position + header.size == end
            left = self.filter.filter(window, number, header, ends_segment=ends_segment)
            if left is not None:
                fields = header_fields(left)
                last_offset = fields.base_offset + fields.last_offset_delta
                if fields.base_offset <= self._last_offset or not cleaned.fits(last_offset):
                    error = CorruptRecordError(
                        f"offsets {fields.base_offset} to {last_offset} do not follow offset "
                        f"{self._last_offset}, or are too far from the segment's base offset"
                    )
                    window.locate(error, number)
                    raise error
                self._last_offset = last_offset
                parts.append((left, last_offset, fields.max_timestamp))
                size += memoryview(left).nbytes
            if size >= _PART_BYTES:
                yield from self._write(cleaned, parts, size)
                parts, size = [], 0
            yield cost_of(header)
        if parts:
            yield from self._write(cleaned, parts, size)

    def _write(
        self, cleaned: CleanedSegment, parts: Sequence[tuple[Bytes, int, int]], size: int
    ) -> Iterator[int]:
        if cleaned.size + size > _LARGEST:
            raise RecordListTooLargeError(f"{cleaned.path('log')} becomes larger than {_LARGEST} bytes")
        cleaned.extend(parts)
        self._unsynced += size
        if self._unsynced >= _SYNC_BYTES:
            yield _SYNC_BYTES
            cleaned.file("log").sync()
            self._unsynced = 0
            yield _SYNC_BYTES

    def _keep_aborts(self, cleaned: LogSegment, segment: LogSegment) -> None:
        """Keep the entries of the transactions whose markers have no delete horizon yet. Entries missing in
        the file are taken from the log."""
        kept, self.filter.kept_aborts = self.filter.kept_aborts, []
        entries = {entry.last_offset: entry for entry in self._entries(segment)} if kept else {}
        index = cleaned.txn_index
        assert index is not None  # a new segment has its whole index in memory
        for marker in kept:
            offset = marker.base_offset
            entry = entries.get(offset) or self._transactions.aborted_at(marker.producer_id, offset)
            if entry is not None:
                index.append(entry.producer_id, entry.first_offset, offset, entry.last_stable_offset)

    def _entries(self, segment: LogSegment) -> Sequence[AbortedTxn]:
        """Return the aborted transactions of a segment from memory, else from its file."""
        if segment.txn_index is not None:
            return segment.txn_index.entries
        try:
            content = segment.files.read("txnindex", TXN_INDEX_LIMIT)
        except (CorruptFileError, FileNotFoundError):
            return ()
        entries, problems = parse_txn_index(content, segment.base_offset)
        return () if problems else entries

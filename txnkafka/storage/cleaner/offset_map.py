"""Builds the map of the last offset of each key in the dirty part of a log.

Aborted data and control records never count. Source: ``Cleaner.buildOffsetMap``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka._core.compact import note_keys
from txnkafka._core.offset_map import OffsetMap
from txnkafka.errors import CorruptRecordError
from txnkafka.record.batch_header import ATTRIBUTE_CONTROL
from txnkafka.storage.cleaner.batch_reader import BatchReader

if TYPE_CHECKING:
    from txnkafka.config import CleanerConfig
    from txnkafka.storage.cleaner.batch_reader import Window
    from txnkafka.storage.cleaner.cleaned_transactions import CleanedTransactions
    from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["map_offsets"]


def map_offsets(
    log: PartitionLog, begin: int, end: int, config: CleanerConfig, transactions: CleanedTransactions
) -> OffsetMap:
    """Return the last offsets of the keys in [begin, end), where ``end`` is the end of a segment;
    ``latest_offset`` of the map is the last offset for which its memory was sufficient. Raises
    CorruptRecordError and OSError."""
    keys = OffsetMap(config.dedupe_buffer_size, config.io_buffer_load_factor)
    reader = BatchReader()
    ends = [segment.base_offset for segment in log.segments[1:]]
    for segment, segment_end in zip(log.segments, ends, strict=False):
        if segment_end <= begin:
            continue
        if segment.base_offset >= end:
            break
        place = segment.find(begin) if segment.base_offset < begin else (0, 0, 0)
        for window in reader.windows(segment, place[0]) if place is not None else ():
            if not _map_window(keys, reader, window, begin, transactions):
                return keys
        keys.latest_offset = segment_end - 1  # offsets may be missing behind the last batch
    return keys


def _map_window(
    keys: OffsetMap, reader: BatchReader, window: Window, begin: int, transactions: CleanedTransactions
) -> bool:
    for number, header in enumerate(window.index):
        if not header.attributes & ATTRIBUTE_CONTROL and header.count and not transactions.is_aborted(header):
            fields, records = reader.records(window, number)
            try:
                if not note_keys(keys, fields, records, start_offset=begin):
                    return False
            except CorruptRecordError as error:
                window.locate(error, number)
                raise
        keys.latest_offset = max(keys.latest_offset, header.last_offset)
    return True

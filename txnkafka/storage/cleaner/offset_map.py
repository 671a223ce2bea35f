"""Builds the map of the last offset of each key in the dirty part of a log.

Aborted data and control records never count. Source: ``Cleaner.buildOffsetMap``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from txnkafka._core.compact import note_keys
from txnkafka.errors import CorruptRecordError
from txnkafka.record.batch_header import ATTRIBUTE_CONTROL
from txnkafka.storage.cleaner.batch_reader import BatchReader, cost_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txnkafka._core.offset_map import OffsetMap
    from txnkafka.storage.cleaner.batch_reader import Window
    from txnkafka.storage.cleaner.cleaned_transactions import CleanedTransactions
    from txnkafka.storage.log.log_segment import LogSegment


def map_offsets(
    keys: OffsetMap, segments: Sequence[LogSegment], begin: int, end: int, transactions: CleanedTransactions
) -> Iterator[int]:
    """Put the last offset of each key in [begin, end) into ``keys``; ``end`` is the base offset of one of the
    log's ``segments``. Yields the cost of each step in bytes. ``keys.latest_offset`` becomes the last offset
    that fits into the memory. Raises CorruptRecordError and OSError."""
    reader = BatchReader()
    for segment, following in pairwise(segments):
        if following.base_offset <= begin:
            continue
        if segment.base_offset >= end:
            return
        for window in reader.windows(segment):
            for number, header in enumerate(window.index):
                if header.last_offset < begin:
                    continue
                is_data = header.count and not header.attributes & ATTRIBUTE_CONTROL
                counts = is_data and not transactions.is_aborted(header)
                if counts and not _map_batch(keys, reader, window, number, begin):
                    return
                keys.latest_offset = max(keys.latest_offset, header.last_offset)
                yield cost_of(header)
        keys.latest_offset = following.base_offset - 1  # offsets may be missing after the last batch


def _map_batch(keys: OffsetMap, reader: BatchReader, window: Window, number: int, begin: int) -> bool:
    """Put the keys of one batch into the map; return False if they do not fit."""
    fields, records = reader.records(window, number)
    try:
        return note_keys(keys, fields, records, start_offset=begin)
    except CorruptRecordError as error:
        window.locate(error, number)
        raise

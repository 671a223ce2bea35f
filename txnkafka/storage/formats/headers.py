"""Batch headers for replay, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka._core.scan import BatchHeader, BatchIndex
from txnkafka.model import NO_PRODUCER_ID

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["headers_with_producer", "offsets_of"]

# count() is a method of every sequence, so the index calls that column otherwise.
_COLUMNS = tuple("record_count" if field == "count" else field for field in BatchHeader._fields)


def headers_with_producer(batches: BatchIndex | Iterable[BatchHeader]) -> Iterable[BatchHeader]:
    """The headers that carry a producer id.

    A segment of a gigabyte has sixty thousand batches: columns side by side give headers faster than the
    index makes each, and a segment without producers costs next to nothing.
    """
    if isinstance(batches, BatchIndex):
        if max(batches.producer_id, default=NO_PRODUCER_ID) <= NO_PRODUCER_ID:
            return ()
        columns = (getattr(batches, column) for column in _COLUMNS)
        batches = map(BatchHeader._make, zip(*columns, strict=True))
    return (header for header in batches if header.producer_id > NO_PRODUCER_ID)


def offsets_of(batches: BatchIndex | Iterable[BatchHeader]) -> Iterable[tuple[int, int]]:
    """Base and last offset of every batch."""
    if isinstance(batches, BatchIndex):
        return zip(batches.base_offset, batches.last_offset, strict=True)
    return ((header.base_offset, header.last_offset) for header in batches)

"""Reads the start of an open transaction from the headers of its log."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txnkafka._core.scan import BatchIndex
from txnkafka.model import NO_TIMESTAMP
from txnkafka.record.batch_header import ATTRIBUTE_CONTROL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnkafka.storage.log.log_segments import LogSegments

PIECE_BYTES = 1 << 20


class Beginning(NamedTuple):
    """The timestamp of the first batch of an open transaction, the epochs of all its batches, and the
    timestamp of the last marker of its producer before it (-1: none found)."""

    first_timestamp: int
    epochs: frozenset[int]
    marker_timestamp: int


def beginning_of(
    segments: LogSegments, producer_id: int, first_offset: int, marker_since_ms: int
) -> Beginning:
    """Read the batches of a producer from ``first_offset`` on, and search the marker before them. Markers
    older than ``marker_since_ms`` may not be found. Raises CorruptRecordError and OSError."""
    first = segments.number_of(first_offset)
    timestamp, epochs = NO_TIMESTAMP, set[int]()
    for number in range(first, len(segments)):
        for index in segments[number].windows():
            columns = zip(
                index.producer_id, index.base_offset, index.producer_epoch, index.max_timestamp, strict=True
            )
            for producer, offset, epoch, newest in columns:
                if producer == producer_id and offset >= first_offset:
                    timestamp = timestamp if epochs else newest
                    epochs.add(epoch)
    for index in _backwards(segments, first, marker_since_ms):
        found = _last_marker(index, producer_id, first_offset)
        if found is not None:
            return Beginning(timestamp, frozenset(epochs), found)
    return Beginning(timestamp, frozenset(epochs), NO_TIMESTAMP)


def _backwards(segments: LogSegments, number: int, since_ms: int) -> Iterator[BatchIndex]:
    """Yield the headers of the segments up to ``number`` in pieces, the newest piece first; a closed segment
    without a timestamp of ``since_ms`` or later ends it."""
    for segment in reversed(segments[: number + 1]):
        if segment is not segments[number] and segment.latest_timestamp() < since_ms:
            return
        end = segment.size
        while end > 0:
            start = segment.batch_before(max(0, end - PIECE_BYTES))
            headers = BatchIndex()
            for index in segment.windows(start, end):
                headers.extend(index)
            yield headers
            end = start


def _last_marker(index: BatchIndex, producer_id: int, below: int) -> int | None:
    columns = zip(index.producer_id, index.base_offset, index.attributes, index.max_timestamp, strict=True)
    found = [
        timestamp
        for producer, offset, attributes, timestamp in columns
        if producer == producer_id and offset < below and attributes & ATTRIBUTE_CONTROL
    ]
    return found[-1] if found else None

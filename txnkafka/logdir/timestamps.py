"""Finds offsets by time, with the results of ListOffsets.

The result is the first record, in offset order, with a timestamp at or after the target. Timestamps need not
grow with offsets, so records with earlier timestamps may follow. End markers also count: they have offsets
and timestamps.
Source: org.apache.kafka.storage.internals.log.LogSegment.findOffsetByTimestamp.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from txnkafka._core.read_committed import BOUNDED, TransactionScan
from txnkafka.errors import CorruptRecordError
from txnkafka.logdir.header_damage import damage_at_end, misplaced_batch
from txnkafka.logdir.header_pass import SegmentHeaders, header_pass
from txnkafka.record.batch import records_of
from txnkafka.record.chunk import ChunkDecoder, OnCorrupt, SelectedBatches

if TYPE_CHECKING:
    from txnkafka.storage.formats.segment_reader import SegmentReader


class OffsetAndTimestamp(NamedTuple):
    """A record found by its time; ``timestamp`` in milliseconds, ``leader_epoch`` is None if the batch has
    none."""

    offset: int
    timestamp: int
    leader_epoch: int | None


def offset_for_timestamp(
    segments: list[SegmentReader],
    timestamp: int,
    log_start_offset: int,
    end_offset: int,
    *,
    on_corrupt: OnCorrupt | None = None,
) -> OffsetAndTimestamp | None:
    """Return the first record at or after ``timestamp`` in [log_start_offset, end_offset); None if none
    exists.

    If damage might contain it, raises CorruptRecordError, or passes the error to ``on_corrupt`` and skips the
    damage."""
    limits = log_start_offset, end_offset
    for headers in header_pass(segments, 0, TransactionScan()):
        for i in _candidates(headers, timestamp, log_start_offset):
            try:
                found = _found(headers, i, timestamp, limits)
            except CorruptRecordError as error:
                error.locate(file=headers.segment.path)
                if on_corrupt is None:
                    raise
                on_corrupt(error)
                continue
            if found is not None:
                return found if found.offset < end_offset else None
    return None


def _candidates(headers: SegmentHeaders, timestamp: int, log_start_offset: int) -> Iterator[int]:
    """Yield the numbers of the batches that might contain a record at or after ``timestamp``, and the number
    after the last batch if the rest of the segment is unreadable."""
    index, misplaced = headers.index, set(headers.misplaced)
    for i, max_timestamp in enumerate(index.max_timestamp):
        if i in misplaced:
            # the CRC covers the largest timestamp, but not the base offset
            if max_timestamp >= timestamp or not headers.segment.is_intact(index, i):
                yield i
        elif max_timestamp >= timestamp and index.last_offset[i] >= log_start_offset:
            yield i
    if damage_at_end(headers) is not None:
        yield len(index)


def _found(
    headers: SegmentHeaders, i: int, timestamp: int, limits: tuple[int, int]
) -> OffsetAndTimestamp | None:
    """Return the first record of a candidate at or after ``timestamp``. Raises CorruptRecordError for damage
    that concerns readers of the offsets from the first to the second of ``limits``."""
    damaged = damage_at_end(headers) if i == len(headers.index) else None
    if i in headers.misplaced:
        damaged = misplaced_batch(headers, i)
    if damaged is None:
        return _in_batch(headers, i, timestamp, limits[0])
    if damaged.concerns(*limits):
        raise damaged.error()
    return None


def _in_batch(
    headers: SegmentHeaders, i: int, timestamp: int, log_start_offset: int
) -> OffsetAndTimestamp | None:
    selection = bytearray(len(headers.index))
    selection[i] = BOUNDED
    segment = headers.segment
    start_offset = max(log_start_offset, headers.end_before(i))
    batches = SelectedBatches(segment.read, headers.index, selection, start_offset, settled=segment.guard)
    for columns in ChunkDecoder().chunks(batches):
        for record in records_of(columns):
            if record.timestamp >= timestamp:
                return OffsetAndTimestamp(record.offset, record.timestamp, record.leader_epoch)
    return None

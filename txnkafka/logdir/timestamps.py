"""Finds offsets by time, with the answers of ListOffsets.

The answer is the first record, in offset order, whose timestamp is not below the target. Timestamps need not
grow with offsets, so earlier records may follow it. End markers count as well: they have offsets and
timestamps.
Source: org.apache.kafka.storage.internals.log.LogSegment.findOffsetByTimestamp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txnkafka._core.read_committed import BOUNDED, TransactionScan
from txnkafka.errors import CorruptRecordError
from txnkafka.logdir.header_pass import SegmentHeaders, header_pass
from txnkafka.record.batch import records_of
from txnkafka.record.chunk import ChunkDecoder, OnCorrupt, SelectedBatches

if TYPE_CHECKING:
    from txnkafka.storage.formats.segment_reader import SegmentReader

__all__ = ["OffsetAndTimestamp", "offset_for_timestamp"]


class OffsetAndTimestamp(NamedTuple):
    """A record found by its time; ``timestamp`` in milliseconds, ``leader_epoch`` None where the batch has
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
    """Return the first record at or after ``timestamp`` in [log_start_offset, end_offset); None when there is
    none.

    A damaged batch that might contain it raises CorruptRecordError, or is skipped when ``on_corrupt`` takes
    the error.
    """
    for headers in header_pass(segments, 0, TransactionScan()):
        index = headers.index
        for i, max_timestamp in enumerate(index.max_timestamp):
            if max_timestamp < timestamp or index.last_offset[i] < log_start_offset or i in headers.misplaced:
                continue
            try:
                found = _in_batch(headers, i, timestamp, log_start_offset)
            except CorruptRecordError as error:
                error.locate(file=headers.segment.path)
                if on_corrupt is None:
                    raise
                on_corrupt(error)
                continue
            if found is not None:
                return found if found.offset < end_offset else None
    return None


def _in_batch(
    headers: SegmentHeaders, i: int, timestamp: int, log_start_offset: int
) -> OffsetAndTimestamp | None:
    selection = bytearray(len(headers.index))
    selection[i] = BOUNDED
    segment = headers.segment
    batches = SelectedBatches(
        segment.read, headers.index, selection, log_start_offset, settled=segment.guard
    )
    for columns in ChunkDecoder().chunks(batches):
        for record in records_of(columns):
            if record.timestamp >= timestamp:
                return OffsetAndTimestamp(record.offset, record.timestamp, record.leader_epoch)
    return None

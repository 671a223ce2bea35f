"""Offsets by time, as ListOffsets answers them.

The answer is the first record, in offset order, whose timestamp is not below the target. Timestamps need
not grow with offsets, so this is not where "everything later" begins. End markers count as well: they have
offsets and timestamps.
Source: org.apache.kafka.storage.internals.log.LogSegment.findOffsetByTimestamp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txnkafka.record.batch import records_of
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches

if TYPE_CHECKING:
    from txnkafka._core.scan import BatchIndex
    from txnkafka.logdir.segment import Segment

__all__ = ["TimestampOffset", "offset_for_timestamp"]

BOUNDED = 2  # what a selection says of a batch whose records are to be filtered by offset


class TimestampOffset(NamedTuple):
    """A record found by its time; ``timestamp`` in milliseconds, ``leader_epoch`` None where the batch has
    none."""

    offset: int
    timestamp: int
    leader_epoch: int | None


def offset_for_timestamp(
    segments: list[Segment], timestamp: int, log_start_offset: int, end_offset: int
) -> TimestampOffset | None:
    """The first record at or after ``timestamp`` in [log_start_offset, end_offset); None when there is
    none."""
    for segment in segments:
        index = segment.scan()
        for i, max_timestamp in enumerate(index.max_timestamp):
            # magic 0 has no timestamps, and only a walk can tell what a compressed wrapper of magic 1 holds
            if max_timestamp >= timestamp and index.last_offset[i] >= log_start_offset:
                found = _in_batch(segment, index, i, timestamp, log_start_offset)
                if found is not None:
                    segment.close()
                    return found if found.offset < end_offset else None
        segment.close()
    return None


def _in_batch(
    segment: Segment, index: BatchIndex, i: int, timestamp: int, log_start_offset: int
) -> TimestampOffset | None:
    selection = bytearray(len(index))
    selection[i] = BOUNDED
    batches = SelectedBatches(segment.read, index, selection, log_start_offset)
    for columns in ChunkDecoder().chunks(batches):
        for record in records_of(columns):
            if record.timestamp >= timestamp:
                return TimestampOffset(record.offset, record.timestamp, record.leader_epoch)
    return None

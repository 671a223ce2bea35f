"""Where a time is in an open log: the first record that is as new as a timestamp.

Source: ``UnifiedLog.fetchOffsetByTimestamp``, ``LogSegment.findOffsetByTimestamp``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txnkafka._core.read_committed import BOUNDED
from txnkafka.model import NO_TIMESTAMP
from txnkafka.record.batch import records_of
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches

if TYPE_CHECKING:
    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["FoundRecord", "find_by_timestamp", "find_newest"]


class FoundRecord(NamedTuple):
    """A record's timestamp and offset, and the leader epoch of its batch."""

    timestamp: int
    offset: int
    leader_epoch: int


def find_by_timestamp(log: PartitionLog, timestamp: int) -> FoundRecord | None:
    """The first record at or above the log start whose timestamp is ``timestamp`` or later; None when there
    is none. Raises CorruptRecordError and OSError."""
    for segment in log.segments:
        if segment.size and segment.latest_timestamp() >= timestamp:
            found = _first_in(segment, timestamp, log.log_start_offset)
            if found is not None:
                return found
    return None


def find_newest(log: PartitionLog) -> FoundRecord | None:
    """The first record with the largest timestamp of the log; None for a log without timestamps. Raises
    CorruptRecordError and OSError."""
    newest = max((segment.latest_timestamp() for segment in log.segments), default=NO_TIMESTAMP)
    return None if newest == NO_TIMESTAMP else find_by_timestamp(log, newest)


def _first_in(segment: LogSegment, timestamp: int, log_start_offset: int) -> FoundRecord | None:
    is_loaded_for_this = segment.load()
    before = segment.time_index.lookup(timestamp - 1)  # an entry is the largest timestamp up to its offset
    position = segment.offset_index.lookup(before.offset).position
    if is_loaded_for_this:
        segment.unload()
    decoder, reader = ChunkDecoder(), segment.view()
    try:
        for _, _, index in reader.windows(position):
            selection = bytearray(len(index))
            for i, newest in enumerate(index.max_timestamp):
                if newest >= timestamp:
                    selection[i] = BOUNDED  # end markers have timestamps, too
            batches = SelectedBatches(
                reader.read, index, selection, log_start_offset, settled=reader.guard
            )
            for columns in decoder.chunks(batches):
                for record in records_of(columns):
                    if record.timestamp >= timestamp:
                        epoch = index.partition_leader_epoch[index.find(record.offset)]
                        return FoundRecord(record.timestamp, record.offset, epoch)
    finally:
        reader.close()
    return None

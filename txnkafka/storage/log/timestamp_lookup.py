"""Finds the first record of an open log at or after a timestamp.

Source: ``UnifiedLog.fetchOffsetByTimestamp``, ``LogSegment.findOffsetByTimestamp``.
"""

from __future__ import annotations

from contextlib import closing
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from txnkafka._core.read_committed import BOUNDED
from txnkafka.model import NO_TIMESTAMP
from txnkafka.record.batch import records_of
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.log.partition_log import PartitionLog


class FoundRecord(NamedTuple):
    """A record's timestamp and offset, and the leader epoch of its batch."""

    timestamp: int
    offset: int
    leader_epoch: int


def find_by_timestamp(log: PartitionLog, timestamp: int) -> FoundRecord | None:
    """Return the first record at or above the log start with a timestamp at or after ``timestamp``; None if
    none exists. Raises CorruptRecordError and OSError."""
    for segment in log.segments:
        if segment.size and segment.latest_timestamp() >= timestamp:
            found = _first_in(segment, timestamp, log.log_start_offset)
            if found is not None:
                return found
    return None


def find_newest(log: PartitionLog) -> FoundRecord | None:
    """Return the first record with the largest timestamp at or above the log start; None without records. The
    record always exists, while Kafka may return one that ``DeleteRecords`` deleted or the cleaner removed
    from its batch. Raises CorruptRecordError and OSError."""
    newest: FoundRecord | None = None
    for segment in _with_records(log):
        if newest is None or segment.latest_timestamp() > newest.timestamp:
            newest = _newest_in(segment, log.log_start_offset, newest)
    return newest


def _with_records(log: PartitionLog) -> Iterator[LogSegment]:
    """Yield the segments that may have records at or above the log start."""
    segments = list(log.segments)
    ends = [segment.base_offset for segment in segments[1:]]
    for segment, end in zip_longest(segments, ends):
        if segment.size and (end is None or end > log.log_start_offset):
            yield segment


def _newest_in(segment: LogSegment, log_start_offset: int, newest: FoundRecord | None) -> FoundRecord | None:
    """Return the first record with the segment's largest timestamp, unless ``newest`` is as new. The time
    index has the largest timestamp that the segment ever contained; usually a record with it still exists."""
    if (found := _first_in(segment, segment.latest_timestamp(), log_start_offset)) is not None:
        return found

    def later() -> int:
        return NO_TIMESTAMP if newest is None else newest.timestamp + 1

    for found in _records(segment, NO_TIMESTAMP, log_start_offset, later):
        newest = found
    return newest


def _first_in(segment: LogSegment, timestamp: int, log_start_offset: int) -> FoundRecord | None:
    with closing(_records(segment, timestamp, log_start_offset, lambda: timestamp)) as found:
        return next(found, None)


def _records(
    segment: LogSegment, begin: int, log_start_offset: int, least: Callable[[], int]
) -> Generator[FoundRecord, None, None]:
    """Yield the records of a segment at or after ``least()``, whose result may change after each record,
    beginning with the first record that may have the timestamp ``begin``. Batches whose headers exclude such
    records are not read."""
    position = _position(segment, begin)
    decoder, reader = ChunkDecoder(), segment.view()
    try:
        for _, _, index in reader.windows(position):
            selection, least_ms = bytearray(len(index)), least()
            for i, latest in enumerate(index.max_timestamp):
                if latest >= least_ms:
                    selection[i] = BOUNDED  # end markers also have timestamps
            batches = SelectedBatches(reader.read, index, selection, log_start_offset, settled=reader.guard)
            for columns in decoder.chunks(batches):
                for record in records_of(columns):
                    if record.timestamp >= least():
                        epoch = index.partition_leader_epoch[index.find(record.offset)]
                        yield FoundRecord(record.timestamp, record.offset, epoch)
    finally:
        reader.close()


def _position(segment: LogSegment, timestamp: int) -> int:
    if timestamp == NO_TIMESTAMP:
        return 0
    is_loaded_for_this = segment.load()
    before = segment.time_index.lookup(timestamp - 1)  # an entry is the largest timestamp up to its offset
    position = segment.offset_index.lookup(before.offset).position
    if is_loaded_for_this:
        segment.unload()
    return position

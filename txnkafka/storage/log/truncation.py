"""Truncation and retention: compute the part of a log to keep, as a ``Cut``, which the log applies.

Source: ``UnifiedLog.truncateTo``, ``UnifiedLog.deleteOldSegments``,
``UnifiedLog.maybeIncrementLogStartOffset``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.errors import FlushUnderWayError, KafkaError, OffsetOutOfRangeError
from txnkafka.model import NO_TIMESTAMP
from txnkafka.storage.log.cut import Cut
from txnkafka.storage.log.leader_epochs import LeaderEpochs
from txnkafka.storage.log.timestamp_reading import TimestampReading, is_unread

if TYPE_CHECKING:
    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.log.log_segments import LogSegments
    from txnkafka.storage.log.partition_log import PartitionLog
    from txnkafka.storage.log.segment_deletion import SegmentDeletion

HIGH_WATERMARK = -1  # in DeleteRecords: delete all records below the high watermark


def truncate_to(log: PartitionLog, offset: int, *, now_ms: int) -> bool:
    """Truncate the log at ``offset``, durably; a batch that contains it is removed as a whole, and the log
    continues at the first offset of that batch: a gap at the end would look like lost data. Returns False
    without a change if the log ends before. Raises KafkaStorageError.

    Producers, epochs and transactions get their state at this log end; the recovery point and the high
    watermark are also lowered. The caller must already have lowered the recovery point on the disk."""
    check_cut(log, offset)
    was_cut = offset < log.log_end_offset
    try:
        log.apply(cut_at_end(log, offset), now_ms)
    except (OSError, KafkaError) as error:  # also if the log cannot be read: the truncation is incomplete
        log.fence(error)
        log.check_usable()
    return was_cut


def check_cut(log: PartitionLog, offset: int) -> None:
    """Raise ValueError for a negative offset, FlushUnderWayError during a flush, KafkaStorageError or
    LogDirError if the log accepts no changes."""
    if offset < 0:
        raise ValueError(f"{log.topic_partition}: a log cannot be truncated at offset {offset}")
    if log.is_flushing:
        raise FlushUnderWayError(f"a flush of {log.topic_partition} is under way: finish it, then truncate")
    log.check_usable()


def end_below(log: PartitionLog, offset: int) -> int:
    """Return the log end after a truncation at ``offset``. Raises CorruptRecordError and OSError."""
    return cut_at_end(log, offset).log_end_offset


def delete_records(log: PartitionLog, offset: int) -> int:
    """Move the log start to ``offset`` (-1: the high watermark); return the new log start. The files are
    deleted by ``delete_old_segments``; the deletion is durable once the caller has written the log start.

    Raises OffsetOutOfRangeError above the high watermark, and OSError; then the log start is unchanged."""
    log.check_usable()
    wanted = log.high_watermark if offset == HIGH_WATERMARK else offset
    if not 0 <= wanted <= log.high_watermark:
        raise OffsetOutOfRangeError(
            f"{log.topic_partition}: records below {wanted} cannot be deleted, the high watermark is "
            f"{log.high_watermark}"
        )
    if wanted > log.log_start_offset:
        log.begin_at(whole_log(log, start_offset=wanted))
    return log.log_start_offset


def delete_old_segments(log: PartitionLog, now_ms: int) -> int:
    """Delete the segments that are due for ``retention`` now, even all segments; return their number. Raises
    KafkaStorageError."""
    log.check_usable()
    count = _count_deletable(log, now_ms)
    if count == len(log.segments):
        log.roll(now_ms)
        log.flush()  # the new segment gets its final name before the others are deleted
    if count:
        _at_once(log, count, now_ms)
    return count


def _at_once(log: PartitionLog, count: int, now_ms: int) -> None:
    try:
        log.apply(cut_at_beginning(log, count), now_ms)
    except OSError as error:
        log.fence(error)
        log.check_usable()


def retention(log: PartitionLog, now_ms: int) -> SegmentDeletion | None:
    """Return the work that deletes segments below the log start, in excess of ``retention.bytes`` or older
    than ``retention.ms``, oldest first, never above the high watermark; None without any. If all segments are
    due, a new one is created, and the last old one is deleted after a flush of the new one. If the disk is
    too full for a new segment, the others are still deleted, which frees space.

    Open transactions do not protect their data, as in Kafka. Raises KafkaStorageError, CorruptRecordError and
    OSError."""
    log.check_usable()
    count = _count_deletable(log, now_ms)
    if count == len(log.segments):
        count -= 1
        try:
            log.roll(now_ms)
        except OSError:
            if not count:
                raise
    return log.begin_deletion(cut_at_beginning(log, count), now_ms) if count else None


def timestamp_reading(log: PartitionLog, now_ms: int) -> TimestampReading | None:
    """Return the work that reads the ages of segments for ``retention``, so that ``retention`` need not wait
    for the disk; None if the ages are known."""
    config, unread = log.config, []
    if not config.delete or config.retention_ms < 0 or len(log.segments) == 1:
        return None
    for segment, _ in _deletable(log):
        if is_unread(segment):
            unread.append(segment)
        elif not _is_too_old(segment, log, now_ms):
            break
    if not unread:
        return None
    return TimestampReading(log.files, log.directory, unread, now_ms - config.retention_ms)


def _count_deletable(log: PartitionLog, now_ms: int) -> int:
    count = _count_below_log_start(log)
    if log.config.delete:
        count = max(count, _count_too_much(log), _count_too_old(log, now_ms))
    return count


def _deletable(log: PartitionLog) -> list[tuple[LogSegment, int]]:
    """Return the segments that end at or below the high watermark, with their end offsets; also the active
    one if it has batches. A segment stays while the next one lacks its final name: recovery needs a named
    segment."""
    ends = [segment.base_offset for segment in log.segments[1:]] + [log.log_end_offset]
    found = []
    for segment, following, end in zip(log.segments, [*log.segments[1:], None], ends, strict=True):
        if end > log.high_watermark or (segment is log.active and not segment.size):
            break
        if following is not None and not following.is_named:
            break
        found.append((segment, end))
    return found


def _count_below_log_start(log: PartitionLog) -> int:
    closed = [end for segment, end in _deletable(log) if segment is not log.active]
    return sum(end <= log.log_start_offset for end in closed)


def _count_too_much(log: PartitionLog) -> int:
    if log.config.retention_bytes < 0:
        return 0
    excess = sum(segment.size for segment in log.segments) - log.config.retention_bytes
    count = 0
    for segment, _ in _deletable(log):
        excess -= segment.size
        if excess < 0:
            break
        count += 1
    return count


def _count_too_old(log: PartitionLog, now_ms: int) -> int:
    if log.config.retention_ms < 0:
        return 0
    count = 0
    for segment, _ in _deletable(log):
        if not _is_too_old(segment, log, now_ms):
            break
        count += 1
    return count


def _is_too_old(segment: LogSegment, log: PartitionLog, now_ms: int) -> bool:
    latest = segment.latest_timestamp()
    youngest = segment.modified_ms if latest == NO_TIMESTAMP else latest
    return now_ms - youngest > log.config.retention_ms


def cut_at_end(log: PartitionLog, offset: int) -> Cut:
    """Compute the cut that removes all data from ``offset`` on. A batch that contains it is removed as a
    whole, and the log ends with the batch before it: a gap at the end would look like lost data. Raises
    CorruptRecordError and OSError."""
    if offset >= log.log_end_offset:
        return whole_log(log, end_offset=offset)
    number, position, end = _last_batch_below(log.segments, offset)
    if end < log.log_start_offset <= offset:  # never reuse an offset below the log start
        number, position, end = -1, 0, log.log_start_offset
    cut = whole_log(log, end_offset=end)
    return cut._replace(
        last=number + 1,
        position=position,
        log_start_offset=min(log.log_start_offset, end),
        log_end_offset=end,
    )


def cut_at_beginning(log: PartitionLog, count: int) -> Cut:
    """Compute the cut that removes the first ``count`` segments."""
    base = log.segments[count].base_offset if count < len(log.segments) else log.log_end_offset
    return whole_log(log, start_offset=max(log.log_start_offset, base))._replace(first=count)


def whole_log(log: PartitionLog, *, start_offset: int | None = None, end_offset: int | None = None) -> Cut:
    """Compute the cut that keeps all segments, moves the log start to ``start_offset``, and removes the
    epochs below it and from ``end_offset`` on."""
    epochs = LeaderEpochs(log.epochs.entries)
    if end_offset is not None:
        epochs.truncate_from_end(end_offset)
    if start_offset is not None:
        epochs.truncate_from_start(start_offset)
    start = log.log_start_offset if start_offset is None else start_offset
    return Cut(0, len(log.segments), log.active.size, start, log.log_end_offset, epochs)


def _last_batch_below(segments: LogSegments, offset: int) -> tuple[int, int, int]:
    """Return the number of the segment that would contain ``offset`` (-1: below the first), and the end
    position and end offset of its batches that are completely below ``offset``."""
    number = segments.number_of(offset)
    segment = segments[number]
    if offset < segment.base_offset:
        return -1, 0, offset
    place = segment.find(offset)
    position = segment.size if place is None else place[0]
    end = segment.base_offset
    for batches in segment.windows(segment.batch_before(max(0, position - 1)), position):
        end = batches.last_offset[-1] + 1 if len(batches) else end
    return number, position, end

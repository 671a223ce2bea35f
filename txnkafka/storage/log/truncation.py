"""Truncation and retention: which part of a log goes. What is left is a ``Cut``, which the log applies.

Source: ``UnifiedLog.truncateTo``, ``UnifiedLog.deleteOldSegments``,
``UnifiedLog.maybeIncrementLogStartOffset``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.errors import FlushUnderWayError, KafkaError, OffsetOutOfRangeError
from txnkafka.model import NO_TIMESTAMP
from txnkafka.storage.log.cut import Cut
from txnkafka.storage.log.leader_epochs import LeaderEpochs

if TYPE_CHECKING:
    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.log.log_segments import LogSegments
    from txnkafka.storage.log.partition_log import PartitionLog
    from txnkafka.storage.log.segment_deletion import SegmentDeletion

__all__ = [
    "check_cut",
    "cut_at_beginning",
    "cut_at_end",
    "delete_old_segments",
    "delete_records",
    "end_below",
    "retention",
    "truncate_to",
    "whole_log",
]

HIGH_WATERMARK = -1  # what DeleteRecords says for "all that readers may see"


def truncate_to(log: PartitionLog, offset: int, *, now_ms: int) -> bool:
    """Cut everything from ``offset`` on, durably; a batch that holds it goes as a whole, and the log goes on
    where the batch began: a gap at the end would look like something lost. False when there is nothing to
    cut. Raises KafkaStorageError.

    Producers, epochs and transactions are what they were when the log ended there; the recovery point and
    the high watermark go back, too. The recovery point on the disk must have gone back before.
    """
    check_cut(log, offset)
    was_cut = offset < log.log_end_offset
    try:
        log.apply(cut_at_end(log, offset), now_ms)
    except (OSError, KafkaError) as error:  # also where the log cannot be read any more: it is half cut
        log.fence(error)
        log.check_usable()
    return was_cut


def check_cut(log: PartitionLog, offset: int) -> None:
    """Raises ValueError for a negative offset, FlushUnderWayError while a flush is not finished,
    KafkaStorageError or LogDirError when the log takes no changes."""
    if offset < 0:
        raise ValueError(f"{log.topic_partition}: a log cannot be truncated at offset {offset}")
    if log.is_flushing:
        raise FlushUnderWayError(f"a flush of {log.topic_partition} is under way: finish it, then truncate")
    log.check_usable()


def end_below(log: PartitionLog, offset: int) -> int:
    """The log end after a truncation at ``offset``. Raises CorruptRecordError and OSError."""
    return cut_at_end(log, offset).log_end_offset


def delete_records(log: PartitionLog, offset: int) -> int:
    """Let the log begin at ``offset`` (-1: the high watermark); returns where it begins now. The files go
    with ``delete_old_segments``; until the caller has made the log start durable, nothing is promised.

    Raises OffsetOutOfRangeError above the high watermark, and OSError; then the log begins where it began.
    """
    log.check_usable()
    wanted = log.high_watermark if offset == HIGH_WATERMARK else offset
    if not 0 <= wanted <= log.high_watermark:
        raise OffsetOutOfRangeError(
            f"{log.topic_partition}: records below {wanted} cannot be deleted, readers see what is below "
            f"{log.high_watermark}"
        )
    if wanted > log.log_start_offset:
        log.begin_at(whole_log(log, start_offset=wanted))
    return log.log_start_offset


def delete_old_segments(log: PartitionLog, now_ms: int) -> int:
    """Delete, here and now, the segments that ``retention`` deletes, also when these are all; returns how
    many. Raises KafkaStorageError."""
    log.check_usable()
    count = _count_deletable(log, now_ms)
    if count == len(log.segments):
        log.roll(now_ms)
        log.flush()  # the new segment counts before the others go
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
    """The work that deletes what lies below the log start, what is too much (``retention.bytes``) and what is
    too old (``retention.ms``), oldest first, never behind the high watermark; None when that is nothing.
    When it is all of the log, a new segment is begun, and the last one goes once that is flushed.

    Open transactions do not protect their data, as in Kafka. Raises KafkaStorageError, CorruptRecordError and
    OSError.
    """
    log.check_usable()
    count = _count_deletable(log, now_ms)
    if count == len(log.segments):
        log.roll(now_ms)
        count -= 1
    return log.begin_deletion(cut_at_beginning(log, count), now_ms) if count else None


def _count_deletable(log: PartitionLog, now_ms: int) -> int:
    count = _count_below_log_start(log)
    if log.config.delete:
        count = max(count, _count_too_much(log), _count_too_old(log, now_ms))
    return count


def _deletable(log: PartitionLog) -> list[tuple[LogSegment, int]]:
    """Segments whose end readers have passed, with their ends; the active one too, when it has batches. One
    segment that recovery looks for stays: the next one may have no name yet."""
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
        segment.load()
        youngest = segment.modified_ms if segment.max_timestamp == NO_TIMESTAMP else segment.max_timestamp
        if now_ms - youngest <= log.config.retention_ms:
            break
        count += 1
    return count


def cut_at_end(log: PartitionLog, offset: int) -> Cut:
    """Everything from ``offset`` on goes. A batch that contains it goes as a whole, and the log ends
    where the batch in front of it does: a gap at the end would look like something lost. Raises
    CorruptRecordError and OSError."""
    if offset >= log.log_end_offset:
        return whole_log(log, end_offset=offset)
    number, position, end = _last_batch_below(log.segments, offset)
    if end < log.log_start_offset <= offset:  # no offset below the log start is used again
        number, position, end = -1, 0, log.log_start_offset
    cut = whole_log(log, end_offset=end)
    return cut._replace(
        last=number + 1,
        position=position,
        log_start_offset=min(log.log_start_offset, end),
        log_end_offset=end,
    )


def cut_at_beginning(log: PartitionLog, count: int) -> Cut:
    """The first ``count`` segments go."""
    base = log.segments[count].base_offset if count < len(log.segments) else log.log_end_offset
    return whole_log(log, start_offset=max(log.log_start_offset, base))._replace(first=count)


def whole_log(
    log: PartitionLog, *, start_offset: int | None = None, end_offset: int | None = None
) -> Cut:
    """The cut that keeps all segments, and removes the epochs below ``start_offset``, where the log begins
    then, and from ``end_offset`` on."""
    epochs = LeaderEpochs(log.epochs.entries)
    if end_offset is not None:
        epochs.truncate_from_end(end_offset)
    if start_offset is not None:
        epochs.truncate_from_start(start_offset)
    start = log.log_start_offset if start_offset is None else start_offset
    return Cut(0, len(log.segments), log.active.size, start, log.log_end_offset, epochs)


def _last_batch_below(segments: LogSegments, offset: int) -> tuple[int, int, int]:
    """Number of the segment that would contain ``offset`` (-1: it is below the first), the position in it up
    to which batches are below ``offset`` as a whole, and the offset where these end."""
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

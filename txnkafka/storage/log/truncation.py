"""Cutting a log: its end, when what came last must not have been; its beginning, when nobody needs it any
more.

Source: ``UnifiedLog.truncateTo``, ``UnifiedLog.deleteOldSegments``,
``UnifiedLog.maybeIncrementLogStartOffset``.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from txnkafka._core.producer_table import ProducerTable
from txnkafka.errors import KafkaError, OffsetOutOfRangeError
from txnkafka.model import NO_TIMESTAMP
from txnkafka.storage.log.leader_epochs import LeaderEpochs
from txnkafka.storage.log.log_segment import LogSegment
from txnkafka.storage.log.producer_history import load_producers, replay
from txnkafka.storage.log.transactions import transactions_of

if TYPE_CHECKING:
    from txnkafka.env import DataFile
    from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["check_cut", "delete_old_segments", "delete_records", "end_below", "truncate_to"]

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
        if was_cut:
            _truncate(log, offset, now_ms)
        else:
            _cut_epochs(log, LeaderEpochs(log.epochs.entries), end_offset=offset)
    except (OSError, KafkaError) as error:  # also where the log cannot be read any more: it is half cut
        log.fence(error)
        log.check_usable()
    return was_cut


def check_cut(log: PartitionLog, offset: int) -> None:
    """Raises ValueError for a negative offset, KafkaStorageError or LogDirError when the log takes no
    changes."""
    if offset < 0:
        raise ValueError(f"{log.topic_partition}: a log cannot be cut at offset {offset}")
    log.check_usable()


def _truncate(log: PartitionLog, offset: int, now_ms: int) -> None:
    end = end_below(log, offset)
    is_empty = end < log.log_start_offset <= offset  # no offset below the log start is used again
    end = log.log_start_offset if is_empty else end
    # what is cut must not come back after a crash as if it had been acknowledged
    log.recovery_point = min(log.recovery_point, end)
    log.log_start_offset = min(log.log_start_offset, end)
    kept = [] if is_empty else [segment for segment in log.segments if segment.base_offset <= end]
    doomed = log.segments[len(kept) :]
    begins_anew = not kept
    if kept:
        transactions_of(log, kept[-1])
    else:
        kept.append(LogSegment(log.files, log.directory, end, log.config, created_ms=now_ms))
    for segment in reversed(doomed):  # from the end, one after the other, so that a crash leaves no hole
        log.delete_files(segment, now_ms)
    if begins_anew:
        kept[-1].create("log")
    log.segments = kept
    place = kept[-1].find(end)
    kept[-1].truncate(kept[-1].size if place is None else place[0], end)
    kept[-1].modified_ms = now_ms
    if not kept[-1].size:
        kept[-1].created_ms = now_ms
    log.has_unsynced_names = True
    log.log_end_offset = end
    log.high_watermark = min(log.high_watermark, end)
    _cut_epochs(log, LeaderEpochs(log.epochs.entries), end_offset=end)
    log.snapshots.remove_above(end)
    _reload_producers(log, now_ms)
    log.active.sync()
    derived: list[DataFile] = []
    log.active.save(derived)  # below the recovery point nobody asks whether they are stale
    for file in derived:
        file.sync()
    log.files.sync_directory(log.directory)
    log.recovery_point = end
    log.note_cut()


def end_below(log: PartitionLog, offset: int) -> int:
    """Where the last batch ends that lies below ``offset`` as a whole; the segment's base offset without
    one."""
    number = log.segment_of(offset)
    segment = log.segments[number]
    if offset < segment.base_offset:
        return offset
    place = log.find(number, offset)
    position = segment.size if place is None else place[0]
    end = segment.base_offset
    for batches in segment.windows(segment.batch_before(max(0, position - 1)), position):
        end = batches.last_offset[-1] + 1 if len(batches) else end
    return end


def _cut_epochs(
    log: PartitionLog, epochs: LeaderEpochs, *, end_offset: int | None = None, start_offset: int | None = None
) -> None:
    changed = end_offset is not None and epochs.truncate_from_end(end_offset)
    changed |= start_offset is not None and epochs.truncate_from_start(start_offset)
    if changed:
        log.keep_epochs(epochs)


def _reload_producers(log: PartitionLog, now_ms: int) -> None:
    log.producers.clear()
    log.loaded_ms = now_ms
    # transactions that ended above the high watermark are in no snapshot, and still hide what they hold
    start = load_producers(log, log.producers, min(log.high_watermark, log.log_end_offset))
    replay(log.segments, log.producers, start, log.log_end_offset, [])
    log.producers.expire(now_ms, log.config.producer_id_expiration_ms)
    if start != log.log_end_offset:
        log.snapshots.write(log.log_end_offset, log.producers.snapshot())
    log.producers.on_high_watermark(log.high_watermark)


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
    before = log.log_start_offset
    if wanted > before:
        log.log_start_offset = wanted
        try:
            _cut_epochs(log, LeaderEpochs(log.epochs.entries), start_offset=wanted)
        except OSError:
            log.log_start_offset = before  # else the next try takes it for done
            raise
    return log.log_start_offset


def delete_old_segments(log: PartitionLog, now_ms: int) -> int:
    """Delete what lies below the log start, what is too much (``retention.bytes``) and what is too old
    (``retention.ms``), oldest first, never behind the high watermark; returns how many segments.

    Open transactions do not protect their data, as in Kafka.
    """
    log.check_usable()
    count = _count_below_log_start(log)
    if log.config.delete:
        count = max(count, _count_too_much(log), _count_too_old(log, now_ms))
    if not count:
        return 0
    try:
        _delete_first(log, count, now_ms)
    except OSError as error:
        log.fence(error)
        log.check_usable()
    return count


def _deletable(log: PartitionLog) -> list[tuple[LogSegment, int]]:
    """Segments whose end readers have passed, with their ends; the active one too, when it holds
    something."""
    ends = [segment.base_offset for segment in log.segments[1:]] + [log.log_end_offset]
    found = []
    for segment, end in zip(log.segments, ends, strict=True):
        if end > log.high_watermark or (segment is log.active and not segment.size):
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


def _delete_first(log: PartitionLog, count: int, now_ms: int) -> None:
    """The log begins behind the first ``count`` segments. When these are all, it goes on in a new one."""
    if count == len(log.segments):
        log.roll(now_ms)
    _keep_producers(log, log.segments[count].base_offset)
    doomed, log.segments = log.segments[:count], log.segments[count:]
    log.log_start_offset = max(log.log_start_offset, log.segments[0].base_offset)
    _cut_epochs(log, LeaderEpochs(log.epochs.entries), start_offset=log.log_start_offset)
    for segment in doomed:  # from the beginning, one after the other, so that a crash leaves no hole
        log.delete_files(segment, now_ms)
        with contextlib.suppress(FileNotFoundError):
            log.snapshots.remove(segment.base_offset)
    log.has_unsynced_names = True


def _keep_producers(log: PartitionLog, offset: int) -> None:
    """Have the state of producers at ``offset`` durably: the log below goes, and nothing else tells it."""
    if offset not in log.snapshots.offsets:
        table = ProducerTable()
        replay(log.segments, table, load_producers(log, table, offset), offset, [])
        log.snapshots.write(offset, table.snapshot())
    if log.snapshots.unsynced:
        log.snapshots.sync()
        log.files.sync_directory(log.directory)

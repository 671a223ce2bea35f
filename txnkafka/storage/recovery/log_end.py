"""Where the log of a partition ends that was found on the disk: what does not hold is cut off, unless it was
durable.

Source: ``LogLoader.recoverLog``, ``LogSegment.recover``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from txnkafka.errors import CorruptRecordError
from txnkafka.record.crc import first_invalid_crc
from txnkafka.storage.formats.order import NO_LIMIT
from txnkafka.storage.log.log_segment import LogSegment
from txnkafka.storage.recovery.segment_check import SegmentEnd, check_segment, walk_tail

if TYPE_CHECKING:
    from txnkafka._core.scan import BatchIndex
    from txnkafka.storage.log.leader_epochs import LeaderEpochs
    from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["Repair", "Start", "assign_epochs", "find_end"]


@dataclass(frozen=True)
class Repair:
    """What somebody wants who repairs a log beyond what opening it takes: the derived files of all segments
    are looked at. ``full``: all batches are checked, and derived files held against them.
    ``truncate_corrupt``: where what was durable is damaged, it is given up."""

    full: bool = False
    truncate_corrupt: bool = False


@dataclass(frozen=True)
class Start:
    """What the data directory knows of a partition before it is opened."""

    clean_shutdown: bool = False
    recovery_point: int | None = 0  # None: nobody knows any more
    log_start_offset: int = 0
    repair: Repair | None = None

    @property
    def is_checked(self) -> bool:
        """Whether every batch is looked at, whatever is known to be durable."""
        return self.repair is not None and self.repair.full


def find_end(log: PartitionLog, start: Start) -> None:
    """Find the log end. Segments from the recovery point on are checked, unless the stop was clean; where the
    log is cut, it ends."""
    end, was_cut = log.segments[0].base_offset, False
    for number in range(_first_checked(log, start), len(log.segments)):
        segment = log.segments[number]
        if start.clean_shutdown and not start.is_checked:
            found = walk_tail(segment)
            if not found.fault and _is_known_to_go_on(log, segment, found.next_offset):
                log.note(f"{segment.path('log')} ends at offset {found.next_offset}, earlier than it did")
                found, was_cut = _check(log, number, end), True
        else:
            found = _check(log, number, end)
        end = found.next_offset
        if found.fault:
            _cut(log, start, number, found)
            was_cut = True
            break
    log.log_end_offset = end
    _check_end(log, start)
    known = len(log.segments) if start.clean_shutdown else _first_unknown(log, start)
    for segment in log.segments[:known]:
        segment.has_new_indexes &= was_cut and segment is log.active  # else producers are known behind it
    # a clean stop has left nothing that is not durable
    log.recovery_point = end if start.clean_shutdown else min(start.recovery_point or 0, end)
    if log.log_end_offset < start.log_start_offset:
        _begin_at(log, start.log_start_offset)


def _first_checked(log: PartitionLog, start: Start) -> int:
    return 0 if start.is_checked else _first_unknown(log, start)


def _first_unknown(log: PartitionLog, start: Start) -> int:
    """Number of the first segment that may hold something that is not durable."""
    return len(log.segments) - 1 if start.clean_shutdown else log.segment_of(start.recovery_point or 0)


def _durable(log: PartitionLog, start: Start) -> int:
    """Up to where nothing may be lost. Where nobody knows, segments that were closed may not."""
    return log.active.base_offset if start.recovery_point is None else start.recovery_point


def _check(log: PartitionLog, number: int, end: int) -> SegmentEnd:
    segment = log.segments[number]
    limit = log.segments[number + 1].base_offset if number + 1 < len(log.segments) else NO_LIMIT
    next_offset = max(end, segment.base_offset)
    return check_segment(segment, next_offset, limit, partial(assign_epochs, log.epochs))


def _is_known_to_go_on(log: PartitionLog, segment: LogSegment, end: int) -> bool:
    """Whether a snapshot or the time index knows offsets that the log has not. What follows from the log is
    not to be believed then: it would speak of what is appended next."""
    last = segment.time_index.last()
    if last is not None and segment.base_offset + last[1] >= end:
        return True
    return any(offset > end for offset in log.snapshots.offsets)


def _cut(log: PartitionLog, start: Start, number: int, found: SegmentEnd) -> None:
    """Cut the log where the first batch lies that does not hold. Raises CorruptRecordError when it was
    durable there."""
    segment = log.segments[number]
    path = segment.path("log")
    durable = _durable(log, start)
    is_lost = found.next_offset < durable or (found.position == 0 and _begins_below(segment, durable))
    if is_lost and not (start.repair and start.repair.truncate_corrupt):
        raise _refused(
            f"{found.fault}; the log was durable up to offset {durable}",
            position=found.position,
            offset=found.next_offset,
            file=path,
        )
    lost = segment.size - found.position + sum(each.size for each in log.segments[number + 1 :])
    place = f"position {found.position}, offset {found.next_offset}, {lost} bytes go"
    log.note(path, f"cut at {place}", found.fault)
    if number + 1 < len(log.segments):
        _drop_segments(log, number + 1)
        log.files.sync_directory(log.directory)  # while the damage still shows that they do not follow
    segment.cut_tail(found.position)


def _begins_below(segment: LogSegment, durable: int) -> bool:
    """Whether a segment whose first batch does not belong there begins with a sound batch that was durable:
    the file has another segment's name, and cutting it would lose what it holds."""
    view = segment.view()
    try:
        for position, data, index in view.windows():
            sound = len(index) > 0 and first_invalid_crc(data, index, position=position) > 0
            return sound and index.base_offset[0] < min(durable, segment.base_offset)
    finally:
        view.close()
    return False


def _check_end(log: PartitionLog, start: Start) -> None:
    """Raises CorruptRecordError when the log ends, in between two batches, before what was durable, unless
    all of that was deleted."""
    end = log.log_end_offset
    durable = start.recovery_point or 0
    if end >= durable or start.log_start_offset >= durable:
        return
    if not (start.repair and start.repair.truncate_corrupt):
        raise _refused(
            f"the log ends here, and was durable up to offset {durable}",
            position=log.active.size,
            offset=end,
            file=log.active.path("log"),
        )
    log.note(f"the log ends at {end}: offsets up to {durable - 1} were durable, and are lost")


def _refused(reason: str, *, position: int, offset: int, file: str) -> CorruptRecordError:
    """The error of a log that has lost what was durable."""
    error = CorruptRecordError(reason, position=position, offset=offset, file=file)
    error.remedy = (
        "Copy the directory before anything else; 'txnkafka cat --on-corrupt skip' reads what is left, "
        "'txnkafka repair --truncate-corrupt' gives up everything from here on"
    )
    return error


def _begin_at(log: PartitionLog, offset: int) -> None:
    """The log ends before it begins: nothing of it counts, and no offset below ``offset`` is used again."""
    log.note("the log", "emptied", f"it ends at {log.log_end_offset}, but begins at {offset}")
    created_ms = log.active.created_ms
    _drop_segments(log, 0)
    log.segments.append(LogSegment(log.files, log.directory, offset, log.config, created_ms=created_ms))
    log.has_unsynced_names = True
    log.log_end_offset = offset


def _drop_segments(log: PartitionLog, first: int) -> None:
    """Segments behind the place where the log was cut do not follow any more."""
    for segment in reversed(log.segments[first:]):  # a crash in between leaves no hole
        log.note(segment.path("log"), "removed", "the log ends before it")
        segment.remove()
        log.has_unsynced_names = True
    del log.segments[first:]


def assign_epochs(epochs: LeaderEpochs, index: BatchIndex) -> None:
    newest = -1 if epochs.latest is None else epochs.latest
    if not len(index) or max(index.partition_leader_epoch) <= newest:
        return
    for epoch, base_offset in zip(index.partition_leader_epoch, index.base_offset, strict=True):
        if epoch > newest:
            epochs.assign(epoch, base_offset)
            newest = epoch

"""Finds the end of a log on the disk, and truncates unsound batches there, unless they were durable.

``find_end`` decides without changing the disk, ``end_log`` applies the decision.

Source: ``LogLoader.recoverLog``, ``LogSegment.recover``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.errors import CorruptRecordError
from txnkafka.record.crc import first_invalid_crc
from txnkafka.storage.formats.layout import LOG_START_OFFSET_CHECKPOINT
from txnkafka.storage.formats.log_end import first_unsettled
from txnkafka.storage.formats.order import NO_LIMIT
from txnkafka.storage.recovery.found_log import SegmentState
from txnkafka.storage.recovery.segment_check import SegmentEnd, check_segment, walk_tail

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.recovery.found_log import FoundLog
    from txnkafka.storage.recovery.header_pass import HeaderPass


@dataclass(frozen=True)
class Repair:
    """Repairs in addition to opening a log: the derived files of all segments are checked. ``full``: check
    all batches, and compare derived files with them. ``truncate_corrupt``: discard damaged durable records.
    ``unsound``: paths of derived files that contradict the log by another check, with the reasons; they are
    removed first, and so rebuilt. ``hands_over``: a broker starts on the directory next, so a clean stop
    remains clean."""

    full: bool = False
    truncate_corrupt: bool = False
    unsound: Mapping[str, str] = field(default_factory=dict)
    hands_over: bool = False


@dataclass(frozen=True)
class Start:
    """The data directory's facts about a partition before it is opened."""

    clean_shutdown: bool = False
    recovery_point: int | None = 0  # None: the checkpoint is damaged
    log_start_offset: int = 0
    repair: Repair | None = None
    high_watermark: int = 0  # noted by the last owner

    @property
    def is_checked(self) -> bool:
        """True if all batches are checked, durable or not."""
        return self.repair is not None and self.repair.full

    @property
    def gives_up(self) -> bool:
        """True if even damaged durable records are truncated."""
        return self.repair is not None and self.repair.truncate_corrupt


class LogEnd(NamedTuple):
    """The end of the log: at ``end``, in segment ``number``; with ``end.fault`` the rest is truncated.
    ``is_rebuilt``: the indexes of that segment were rebuilt from the log although the shutdown was clean."""

    number: int
    end: SegmentEnd
    is_rebuilt: bool


def first_unknown(found: FoundLog, start: Start) -> int:
    """Return the number of the first segment that may have bytes that are not durable."""
    if start.recovery_point is None and not start.clean_shutdown:
        return 0
    return _first_unsettled(found, start)


def _first_unsettled(found: FoundLog, start: Start) -> int:
    bases = [segment.base_offset for segment in found.segments]
    return first_unsettled(bases, clean_shutdown=start.clean_shutdown, recovery_point=start.recovery_point)


def first_checked(found: FoundLog, start: Start) -> int:
    """Return the number of the first segment whose batches are all checked; the number of segments if only
    the tail is checked."""
    if start.is_checked:
        return 0
    return len(found.segments) if start.clean_shutdown else first_unknown(found, start)


def find_end(found: FoundLog, start: Start, headers: HeaderPass) -> LogEnd:
    """Find the log end. Segments from the recovery point on are checked, and ``headers`` follows their
    batches; after a clean shutdown, only the tail of the last one is checked.

    Raises CorruptRecordError if durable records are damaged or missing."""
    end, is_rebuilt, number = SegmentEnd(found.segments[0].base_offset, 0, ""), False, 0
    for number in range(min(first_checked(found, start), len(found.segments) - 1), len(found.segments)):
        segment = found.segments[number]
        if start.clean_shutdown and not start.is_checked:
            end = walk_tail(segment)
            if not end.fault and _is_known_to_go_on(found, segment, end.next_offset):
                found.note(f"{segment.path('log')} ends at offset {end.next_offset}, earlier than it did")
                end, is_rebuilt = _check(found, number, segment.base_offset, headers), True
        else:
            end = _check(found, number, end.next_offset, headers)
        if end.fault:
            break
    found_end = LogEnd(number, end, is_rebuilt)
    if not start.gives_up:
        _refuse_loss(found, start, found_end)
    return found_end


def _check(found: FoundLog, number: int, next_offset: int, headers: HeaderPass) -> SegmentEnd:
    segment = found.segments[number]
    limit = found.segments[number + 1].base_offset if number + 1 < len(found.segments) else NO_LIMIT
    end = check_segment(segment, max(next_offset, segment.base_offset), limit, headers)
    headers.end()
    return end


def _is_known_to_go_on(found: FoundLog, segment: LogSegment, end: int) -> bool:
    """Return True if a snapshot or the time index has offsets past the log end. Then derived files must not
    be trusted: the next appends would differ from the batches that they describe."""
    last = segment.time_index.last()
    if last is not None and segment.base_offset + last[1] >= end:
        return True
    return any(offset > end for offset in found.snapshots.offsets)


def _refuse_loss(found: FoundLog, start: Start, log_end: LogEnd) -> None:
    """Raise CorruptRecordError if the log ends below its durable end, damaged or between two batches, unless
    all later durable offsets were deleted; if a file has another segment's name; and if the whole log would
    count as deleted without a known reason."""
    end, segment = log_end.end, found.segments[log_end.number]
    durable = start.recovery_point or 0
    if end.fault:
        known = durable
        if start.recovery_point is None:
            known = found.segments[_first_unsettled(found, start)].base_offset
        if end.next_offset < known:
            reason = f"{end.fault}; the log was durable up to offset {known}"
            raise _refused(reason, end.position, end.next_offset, segment, start)
        if end.position == 0 and _begins_below(segment):
            reason = f"{end.fault}; its first batch is sound, so the file has another segment's name"
            raise _refused(reason, end.position, end.next_offset, segment, start)
    elif end.next_offset < durable and start.log_start_offset < durable:
        reason = f"the log ends here, and was durable up to offset {durable}"
        raise _refused(reason, segment.size, end.next_offset, segment, start)
    _refuse_to_empty(found, start, end.next_offset)


def _refuse_to_empty(found: FoundLog, start: Start, end_offset: int) -> None:
    """Raise CorruptRecordError if the log start is beyond the log end without other evidence that the log
    ever reached it. A power cut may lose an unflushed end and leave a log start above it; but a log start was
    never beyond the high watermark, which is noted at least as often."""
    log_start, has_records = start.log_start_offset, end_offset > found.segments[0].base_offset
    known = max(end_offset, start.recovery_point or 0, start.high_watermark)
    if log_start <= known or not has_records:
        return
    error = CorruptRecordError(
        f"the log ends at offset {end_offset}, and begins at {log_start} according to this file: all of its "
        "records would count as deleted",
        file=found.files.join(found.files.split(found.directory)[0], LOG_START_OFFSET_CHECKPOINT),
    )
    error.remedy = (
        "Correct the line of the partition, 0 restores all existing records; 'txnkafka repair "
        "--truncate-corrupt' trusts the line, and empties the log"
    )
    raise error


def _refused(
    reason: str, position: int, offset: int, segment: LogSegment, start: Start
) -> CorruptRecordError:
    """Return the error for a log that has lost durable records. Its remedy names the command that checks the
    same batches."""
    error = CorruptRecordError(reason, position=position, offset=offset, file=segment.path("log"))
    error.remedy = (
        "Copy the directory before anything else; 'txnkafka cat --on-corrupt skip' reads what is left, "
        f"'txnkafka repair {'--full ' if start.is_checked else ''}--truncate-corrupt' gives up everything "
        "from here on"
    )
    return error


def _begins_below(segment: LogSegment) -> bool:
    """Return True if a segment begins with a sound batch below its base offset: then the file has another
    segment's name, which no crash causes, and truncation would lose its records."""
    view = segment.view()
    try:
        for position, data, index in view.windows():
            sound = len(index) > 0 and first_invalid_crc(data, index, position=position) > 0
            return sound and index.base_offset[0] < segment.base_offset
    finally:
        view.close()
    return False


def end_log(found: FoundLog, start: Start, log_end: LogEnd) -> None:
    """Truncate the log at its end, and set the states of its segments. Raises OSError."""
    found.log_end_offset = log_end.end.next_offset
    if log_end.end.fault:
        _cut(found, log_end)
    durable = start.recovery_point or 0
    if found.log_end_offset < durable and start.log_start_offset < durable:
        end = f"the log ends at {found.log_end_offset}"
        found.note(f"{end}: offsets up to {durable - 1} were durable, and are lost")
    _set_states(found, start, was_cut=bool(log_end.end.fault) or log_end.is_rebuilt)
    if found.log_end_offset < start.log_start_offset:
        _begin_at(found, start)


def _cut(found: FoundLog, log_end: LogEnd) -> None:
    """Truncate the log before the first unsound batch."""
    number, end, _ = log_end
    segment = found.segments[number]
    lost = segment.size - end.position + sum(later.size for later in found.segments[number + 1 :])
    place = f"position {end.position}, offset {end.next_offset}, {lost} bytes go"
    found.note(segment.path("log"), f"cut at {place}", end.fault, bytes_cut=lost)
    if number + 1 < len(found.segments):
        found.drop_segments(number + 1)
        # before the cut: until then the damage shows that these segments do not count
        found.files.sync_directory(found.directory)
    segment.cut_tail(end.position)


def _begin_at(found: FoundLog, start: Start) -> None:
    """Empty a log that ends below its start, so that no offset below the start is used again."""
    offset = found.log_end_offset
    found.log_end_offset = start.log_start_offset
    emptied = sum(segment.size for segment in found.segments)
    why = f"it ends at {offset}, but begins at {start.log_start_offset}"
    found.note("the log", "emptied", why, bytes_cut=emptied)
    created_ms = found.active.created_ms
    found.drop_segments(0)
    found.begin(start.log_start_offset, created_ms)
    found.states[found.active] = _state_of_known(start)


def _set_states(found: FoundLog, start: Start, *, was_cut: bool) -> None:
    """Set the states of all segments. Below the recovery point, and after a clean shutdown, derived files are
    as reliable as the log, unless the log was truncated."""
    unknown = len(found.segments) if start.clean_shutdown else first_unknown(found, start)
    for number, segment in enumerate(found.segments):
        is_rebuilt = number >= unknown or (was_cut and segment is found.active)
        found.states[segment] = SegmentState.REBUILT if is_rebuilt else _state_of_known(start)


def _state_of_known(start: Start) -> SegmentState:
    return SegmentState.COMPARED if start.is_checked else SegmentState.TRUSTED

"""Finds the end of a log for a reader by the rules of ``storage.formats.log_end``, which are Kafka's.

No file is truncated. Without a recovery point (in a copy of a partition directory) only the last segment is
checked: damage in earlier segments is not a tail. Bytes after the last whole batch of the last segment never
count, even after a clean shutdown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from txnkafka._core.scan import BatchIndex
from txnkafka.logdir.finding import Finding
from txnkafka.logdir.header_point import HeaderPoint, check_follows, segment_of
from txnkafka.storage.formats.log_end import BROKER, decide_end, first_bad, first_unsettled
from txnkafka.storage.formats.segment_reader import SegmentReader, divided

_CODES = {"end": "torn-tail", "torn": "torn-tail", "zeros": "zero-tail", "garbage": "garbage-tail"}
AFTER_A_KILL: Final = (
    "nothing to do if the broker was killed: starting it cuts the tail off, as 'txnkafka repair' does"
)
_WAS_FLUSHED: Final = (
    "restore the end of the log from a replica or a backup: what is missing was flushed. 'txnkafka repair' "
    "and 'txnkafka serve' refuse the partition"
)
_KAFKA_CUTS: Final = "; Apache Kafka cuts the tail off when it starts"
_AFTER_A_CLEAN_SHUTDOWN: Final = "run 'txnkafka repair' before the broker starts: it cuts the tail off"


NOT_CHECKED = (1 << 63) - 1
_ROUND: Final = (1 << 20, 1_000_000)  # usual values of segment.bytes are multiples of these


class LogEnd(NamedTuple):
    """The segments of the log (the last one limited to whole batches), the log end offset, and findings about
    the bytes left out. CRCs were checked from the segment with base offset ``checked_from`` on."""

    segments: list[SegmentReader]
    log_end_offset: int
    findings: list[Finding]
    checked_from: int = NOT_CHECKED


class _Batches(NamedTuple):
    """The batches of a segment: the index of the last window, repeated as ``only`` if it covers the whole
    segment; the offset after them, and the position of following batches with lower offsets."""

    last: BatchIndex
    only: BatchIndex | None
    end_offset: int
    misplaced: int | None


class KnownEnd(NamedTuple):
    """The end of the log at an earlier time, and the first segment whose CRCs were checked then."""

    point: HeaderPoint
    checked_from: int


def end_of_log(
    segments: list[SegmentReader],
    *,
    clean_shutdown: bool,
    recovery_point: int | None,
    being_written: bool,
    known: KnownEnd | None = None,
) -> LogEnd:
    """Find the end of the log. ``being_written``: a broker has locked the directory, so a torn tail is
    normal. Batches before ``known`` are not read again."""
    if not segments:
        return LogEnd([], 0, [])
    bases = [segment.base_offset for segment in segments]
    first = first_unsettled(bases, clean_shutdown=clean_shutdown, recovery_point=recovery_point)
    checked_from = NOT_CHECKED if clean_shutdown else segments[first].base_offset
    begin = None
    if known is not None and checked_from >= known.checked_from:
        at = segment_of(segments, known.point.segment)
        if at >= first:
            first, begin, checked_from = at, known.point, known.checked_from
    if clean_shutdown:
        checked_from = NOT_CHECKED  # batches appended since then are not checked
    findings: list[Finding] = []
    for i in range(first, len(segments)):
        index, only, end_offset, misplaced = _whole_batches(segments[i], begin, check_crc=not clean_shutdown)
        begin = None
        reason = index.stop_reason
        last = i == len(segments) - 1
        if not BROKER.ends_log(index.stop, is_last=last):
            if last:
                if misplaced is not None:
                    findings.append(_misplaced(segments[i], misplaced, index.end_position))
                segments[i].remember(index.end_position, only)
                return LogEnd(segments, end_offset, findings, checked_from)
            continue
        if misplaced is not None:
            findings.append(_misplaced(segments[i], misplaced, index.end_position))
        was_flushed = end_offset < (recovery_point or 0)
        is_normal = being_written and index.stop in ("torn", "zeros")
        is_normal |= last and is_preallocated(
            index.stop, segments[i].size, clean_shutdown=clean_shutdown, was_flushed=was_flushed
        )
        if not is_normal:
            findings.append(
                _cut(segments[i:], index, reason, clean_shutdown=clean_shutdown, was_flushed=was_flushed)
            )
        index.truncate(len(index), "end", "")
        segments[i].remember(index.end_position, only)
        return LogEnd(segments[: i + 1], end_offset, findings, checked_from)
    raise AssertionError("the last segment decides")


def _whole_batches(segment: SegmentReader, begin: HeaderPoint | None, *, check_crc: bool) -> _Batches:
    """Index the batches from ``begin`` on, up to the first one that recovery would reject."""
    end_offset, position = segment.base_offset, 0
    if begin is not None:
        end_offset, position = begin.next_offset, begin.position
    only, index, misplaced = None, BatchIndex(), None
    for number, index in enumerate(divided(_accepted(segment, position, check_crc=check_crc))):
        if begin is not None and number == 0:
            check_follows(segment, index, end_offset)
        end = decide_end(index, end_offset, rule=BROKER, is_intact=segment.is_intact)
        end_offset = end.next_offset
        if end.behind:
            misplaced = None
        if end.behind < len(index) and misplaced is None:
            misplaced = index.position[end.behind]
        only = None if number or position else index
    return _Batches(index, only, end_offset, misplaced)


def _accepted(segment: SegmentReader, start: int, *, check_crc: bool) -> Iterator[BatchIndex]:
    """Yield windows from ``start`` up to the first batch that recovery would reject; the last window's
    ``stop`` is "crc" if that batch has a wrong CRC."""
    bad = 0

    def look(position: int, data: memoryview, index: BatchIndex) -> None:
        nonlocal bad
        bad = first_bad(index, data, position, BROKER) if check_crc else len(index)

    for _, _, index in segment.windows(start, examine=look):
        if bad < len(index):
            index.truncate(bad, "crc", "the CRC of the batch does not match its bytes")
        yield index
        if index.stop == "crc":
            return


def _cut(
    segments: list[SegmentReader], index: BatchIndex, reason: str, *, clean_shutdown: bool, was_flushed: bool
) -> Finding:
    """Return the findings about the bytes after the end of the index in the first of these segments, and
    about the other segments."""
    path, position = segments[0].path, index.end_position
    if index.stop != "crc":
        return tail_finding(
            path, position, index.stop, reason, clean_shutdown=clean_shutdown, was_flushed=was_flushed
        )
    left_out = sum(segment.size for segment in segments) - position
    text = f"{reason}; {left_out} bytes from here on are left out, as Kafka's recovery would cut them off"
    remedy = "restore the file from a replica or a backup if what follows is needed"
    return Finding(path, position, "error", "corrupt-tail", text, remedy)


def _misplaced(segment: SegmentReader, position: int, end: int) -> Finding:
    """Return the finding about the batches from ``position`` to ``end``, whose records no consumer gets."""
    text = (
        f"the offsets of the batch are below those of the log before it; {end - position} bytes from here on "
        "are left out, as no consumer gets their records"
    )
    remedy = "restore the file from a replica or a backup; rename it if it has another segment's name"
    return Finding(segment.path, position, "error", "misplaced-batch", text, remedy)


def is_preallocated(stop: str, size: int, *, clean_shutdown: bool, was_flushed: bool) -> bool:
    """Return True for the zeros of ``log.preallocate`` up to the ``size`` of the last segment. A copy of a
    running broker has them in each partition: a clean stop removes them (``FileRecords.trim``)."""
    is_round = any(size % each == 0 for each in _ROUND)
    return stop == "zeros" and is_round and not clean_shutdown and not was_flushed


def tail_finding(
    path: str, position: int, stop: str, reason: str, *, clean_shutdown: bool, was_flushed: bool
) -> Finding:
    """Return the finding for the bytes after the last whole batch, of the kind ``stop``. ``was_flushed``: the
    broker had noted a recovery point above the offset where they begin."""
    text = f"the log ends here: {reason}"
    if not clean_shutdown:
        remedy = _WAS_FLUSHED + _KAFKA_CUTS if was_flushed else AFTER_A_KILL
        return Finding(path, position, "warning", _CODES[stop], text, remedy)
    consequence = "it does not start" if stop == "zeros" else "it appends behind it"
    text = f"{text}; after a clean shutdown the broker does not cut this off: {consequence}"
    remedy = _WAS_FLUSHED if was_flushed else _AFTER_A_CLEAN_SHUTDOWN
    return Finding(path, position, "error", _CODES[stop], text, remedy)

"""Where a log ends for a reader: by the rule of ``storage.formats.log_end``, as Kafka's broker has it.

Nothing is cut off the files. Without a recovery point (a copy of a partition directory) only the last segment
is checked, as damage further back is not a tail. Bytes behind the last whole batch of the last segment never
count, clean shutdown or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from txnkafka._core.scan import BatchIndex
from txnkafka.logdir.finding import Finding
from txnkafka.storage.formats.log_end import BROKER, decide_end, first_bad, first_unsettled
from txnkafka.storage.formats.segment_reader import SegmentReader, divided

__all__ = ["LogEnd", "end_of_log"]

_CODES = {"torn": "torn-tail", "zeros": "zero-tail", "garbage": "garbage-tail"}


class LogEnd(NamedTuple):
    """The segments that count (the last one's size cut to whole batches), the log end offset, and what was
    cut off."""

    segments: list[SegmentReader]
    log_end_offset: int
    findings: list[Finding]


def end_of_log(
    segments: list[SegmentReader], *, clean_shutdown: bool, recovery_point: int | None, being_written: bool
) -> LogEnd:
    """Find the end of the log. ``being_written``: a broker holds the directory, so that a torn tail is
    nothing unusual."""
    if not segments:
        return LogEnd([], 0, [])
    bases = [segment.base_offset for segment in segments]
    first = first_unsettled(bases, clean_shutdown=clean_shutdown, recovery_point=recovery_point)
    findings: list[Finding] = []
    for i in range(first, len(segments)):
        index, end_offset, only = _whole_batches(segments[i], check_crc=not clean_shutdown)
        reason = index.stop_reason
        last = i == len(segments) - 1
        if not BROKER.ends_log(index.stop, is_last=last):
            if last:
                segments[i].remember(index.end_position, only)
                return LogEnd(segments, end_offset, findings)
            continue
        findings += _cut(segments, i, index, reason, being_written=being_written)
        index.truncate(len(index), "end", "")
        segments[i].remember(index.end_position, only)
        return LogEnd(segments[: i + 1], end_offset, findings)
    raise AssertionError("the last segment decides")


def _whole_batches(segment: SegmentReader, *, check_crc: bool) -> tuple[BatchIndex, int, BatchIndex | None]:
    """The last index of the batches up to the first one that recovery would not accept, the offset behind
    them, and the index again when it is the only one."""
    end_offset, only, index = segment.base_offset, None, BatchIndex()
    for number, index in enumerate(divided(_accepted(segment, check_crc=check_crc))):
        end_offset = decide_end(index, end_offset, rule=BROKER).next_offset
        only = None if number else index
    return index, end_offset, only


def _accepted(segment: SegmentReader, *, check_crc: bool) -> Iterator[BatchIndex]:
    """Windows up to the first batch that recovery would not accept; ``stop`` of the last one is "crc" when
    that is one with a wrong CRC."""
    bad = 0

    def look(position: int, data: memoryview, index: BatchIndex) -> None:
        nonlocal bad
        bad = first_bad(index, data, position, BROKER) if check_crc else len(index)

    for _, _, index in segment.windows(examine=look):
        if bad < len(index):
            index.truncate(bad, "crc", "the CRC of the batch does not match its bytes")
        yield index
        if index.stop == "crc":
            return


def _cut(
    segments: list[SegmentReader], i: int, index: BatchIndex, reason: str, *, being_written: bool
) -> list[Finding]:
    segment = segments[i]
    left_out = segment.size - index.end_position + sum(each.size for each in segments[i + 1 :])
    if being_written and index.stop in ("torn", "zeros"):
        return []
    if index.stop == "crc":
        return [
            Finding(
                segment.path, index.end_position, "error", "corrupt-tail",
                f"{reason}; {left_out} bytes from here on are left out, "
                "as Kafka's recovery would cut them off",
                "restore the file from a replica or a backup if what follows is needed",
            )
        ]  # fmt: skip
    return [
        Finding(
            segment.path, index.end_position, "warning", _CODES[index.stop],
            f"the log ends here: {reason}",
            "nothing to do if the broker was killed: starting it cuts the tail off",
        )
    ]  # fmt: skip

"""Decides where a log ends, by the same rules for its owner, for readers and for ``verify``: pure functions
over scanned batches.

Kafka trusts a clean shutdown and recovers otherwise: from the segment of the recovery point on it checks
every batch, and truncates the log at the first one that is torn or whose CRC is wrong. It accepts two kinds
of damage that no CRC covers, because its recovery does not check for them: an unknown magic, treated as 2,
and decreasing base offsets. A reader reports the same log end as a broker; an owner truncates the log at such
a batch, because records appended after it could not be read. ``EndRule`` is that difference.

Source: ``LogLoader.recoverLog``, ``LogSegment.recover``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from txnkafka._core.scan import BatchIndex
from txnkafka.record.crc import first_invalid_crc
from txnkafka.storage.formats.order import NO_LIMIT, IsIntact, all_intact, misplaced_batches

NEWEST_MAGIC = 2
BAD_CRC = "the bytes of the batch that begins there do not match its CRC"
BAD_MAGIC = "the batch that begins there has an unknown magic"


class EndRule(NamedTuple):
    """The faults that end a log in addition to a wrong CRC and a torn tail: a batch of unknown magic; a batch
    whose offsets contradict its neighbours; bytes that are not a batch at the end of a segment before the
    last."""

    at_unknown_magic: bool
    at_disorder: bool
    at_torn_segment: bool

    def ends_log(self, stop: str, *, is_last: bool) -> bool:
        """Return True if the log ends where the batches of a segment end, for the reason ``stop``."""
        return stop != "end" and (stop == "crc" or is_last or self.at_torn_segment)


# Reading reports damage in a closed segment, so for a reader the log continues after it.
BROKER = EndRule(at_unknown_magic=False, at_disorder=False, at_torn_segment=False)
OWNER = EndRule(at_unknown_magic=True, at_disorder=True, at_torn_segment=True)


def first_unsettled(bases: Sequence[int], *, clean_shutdown: bool, recovery_point: int | None) -> int:
    """Return the number of the first segment in which the log may end: the segment of the recovery point, or
    the last one after a clean shutdown or with an unknown recovery point. ``bases`` are the segments' base
    offsets."""
    if clean_shutdown or recovery_point is None:
        return len(bases) - 1
    return max((number for number, base in enumerate(bases) if base <= recovery_point), default=0)


def first_bad(index: BatchIndex, data: memoryview, position: int, rule: EndRule) -> int:
    """Return the number of the first batch of a window that has a wrong CRC, or ends the log by its magic;
    the number of batches if none does. ``data`` are the bytes from ``position`` on."""
    bad = first_invalid_crc(data, index, position=position)
    while bad < len(index) and index.magic[bad] > NEWEST_MAGIC and not rule.at_unknown_magic:
        bad = first_invalid_crc(data, index, position=position, start=bad + 1)
    return bad


def fault_of(index: BatchIndex, number: int) -> str:
    """Return the fault of the first bad batch."""
    return BAD_MAGIC if index.magic[number] > NEWEST_MAGIC else BAD_CRC


class End(NamedTuple):
    """The result of a check: the first ``accepted`` batches are in the log, which continues at
    ``next_offset``. From number ``behind`` on, their offsets contradict earlier ones."""

    accepted: int
    next_offset: int
    behind: int


def decide_end(
    index: BatchIndex,
    next_offset: int,
    limit: int = NO_LIMIT,
    *,
    rule: EndRule,
    is_intact: IsIntact = all_intact,
) -> End:
    """Find where the log ends by the offsets of otherwise sound batches. The log before them ends at
    ``next_offset``, the rest after them begins at ``limit``. A repeated batch is not damage."""
    misplaced = misplaced_batches(index, next_offset, limit, is_intact)
    count = misplaced[0] if misplaced and rule.at_disorder else len(index)
    left_out = set(misplaced)
    placed = (number for number in range(count - 1, -1, -1) if number not in left_out)
    last = next(placed, -1)
    return End(count, next_offset if last < 0 else index.last_offset[last] + 1, last + 1)

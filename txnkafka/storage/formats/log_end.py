"""Decides where a log ends, by one rule for its owner, for readers and for ``verify``: pure functions over
scanned batches.

Kafka trusts a clean shutdown and recovers otherwise: from the segment of the recovery point on it checks
every batch, and truncates the log at the first one that is torn or whose CRC is wrong. It accepts two kinds
of damage that no CRC covers, because its recovery does not check them: an unknown magic, which it takes for
2, and base offsets that decrease. A reader reports the same log end as a broker; an owner truncates the log
at such a batch, because records appended behind it could not be read. That difference is ``EndRule``.

Source: ``LogLoader.recoverLog``, ``LogSegment.recover``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from txnkafka._core.scan import BatchIndex
from txnkafka.record.crc import first_invalid_crc
from txnkafka.storage.formats.order import NO_LIMIT, IsIntact, all_intact, misplaced_batches

__all__ = ["BROKER", "OWNER", "End", "EndRule", "decide_end", "fault_of", "first_bad", "first_unsettled"]

NEWEST_MAGIC = 2
BAD_CRC = "the bytes of the batch that begins there do not match its CRC"
BAD_MAGIC = "the batch that begins there has an unknown magic"


class EndRule(NamedTuple):
    """The faults that end a log besides a wrong CRC and a torn tail: a batch of an unknown magic; a batch
    whose offsets contradict those around it; bytes that are no batch at the end of a segment that is not the
    last."""

    at_unknown_magic: bool
    at_disorder: bool
    at_torn_segment: bool

    def ends_log(self, stop: str, *, is_last: bool) -> bool:
        """Whether the log ends where the batches of a segment end; ``stop`` is the reason for that."""
        return stop != "end" and (stop == "crc" or is_last or self.at_torn_segment)


# Reading reports damage in a closed segment, so for a reader the log continues behind it.
BROKER = EndRule(at_unknown_magic=False, at_disorder=False, at_torn_segment=False)
OWNER = EndRule(at_unknown_magic=True, at_disorder=True, at_torn_segment=True)


def first_unsettled(bases: Sequence[int], *, clean_shutdown: bool, recovery_point: int | None) -> int:
    """Return the number of the first segment, of those with these base offsets, in which the log may end: the
    one of the recovery point. After a clean shutdown, and with an unknown recovery point, it is the last
    one."""
    if clean_shutdown or recovery_point is None:
        return len(bases) - 1
    return max((number for number, base in enumerate(bases) if base <= recovery_point), default=0)


def first_bad(index: BatchIndex, data: memoryview, position: int, rule: EndRule) -> int:
    """Return the number of the first batch of a window whose CRC is wrong, or that ends the log by its magic;
    the number of all batches where there is none. ``data`` are the bytes from ``position`` on."""
    bad = first_invalid_crc(data, index, position=position)
    while bad < len(index) and index.magic[bad] > NEWEST_MAGIC and not rule.at_unknown_magic:
        bad = first_invalid_crc(data, index, position=position, start=bad + 1)
    return bad


def fault_of(index: BatchIndex, number: int) -> str:
    """Return the fault of a batch that is the first bad one."""
    return BAD_MAGIC if index.magic[number] > NEWEST_MAGIC else BAD_CRC


class End(NamedTuple):
    """The result of a check: the first ``accepted`` batches are in the log, which continues at
    ``next_offset``. From number ``behind`` on their offsets contradict those before them."""

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
    """Find where the log ends by the offsets of batches that are sound otherwise. The log before them ends at
    ``next_offset``, the rest behind them begins at ``limit``. A repeated batch is no damage."""
    misplaced = misplaced_batches(index, next_offset, limit, is_intact)
    count = misplaced[0] if misplaced and rule.at_disorder else len(index)
    left_out = set(misplaced)
    placed = (number for number in range(count - 1, -1, -1) if number not in left_out)
    last = next(placed, -1)
    return End(count, next_offset if last < 0 else index.last_offset[last] + 1, last + 1)

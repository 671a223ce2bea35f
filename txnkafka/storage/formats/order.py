"""Finds the damaged batch among batches that are out of order.

A batch's CRC does not cover its base offset, so a flipped bit there moves the batch to other offsets without
any other sign. Offsets may have gaps (compaction) but never decrease, and end below the next segment. If they
decrease, the damaged batch is the previous one if its CRC, which covers its last offset, is wrong; else it is
the batch whose removal leaves a gap that it would have filled: the previous one if it fits into the gap, else
the current one. An exact repetition of the previous batch is not damage: Kafka's recovery accepts it and
consumers drop it.
"""

from __future__ import annotations

from collections.abc import Callable

from txnkafka._core.scan import BatchHeader, BatchIndex

NO_LIMIT = (1 << 63) - 1
IsIntact = Callable[[BatchIndex, int], bool]
"""Returns True if a batch of an index has a correct CRC; called for batches that contradict the next one."""


def all_intact(index: BatchIndex, i: int) -> bool:
    """Return True, for batches whose CRCs were all checked before."""
    return True


def misplaced_batches(
    index: BatchIndex, next_offset: int, limit: int = NO_LIMIT, is_intact: IsIntact = all_intact
) -> list[int]:
    """Return the numbers of the batches whose offsets cannot be right. ``next_offset`` is the end offset of
    the log before ``index``, ``limit`` the base offset of the batches after it."""
    if index.disorder(next_offset) == len(index) and (not len(index) or index.last_offset[-1] < limit):
        return []
    found: list[int] = []
    ends = [next_offset]  # end of the log before each kept batch, and after the last one
    kept: list[int] = []
    identities = _identities(index)
    for i, (base_offset, last_offset) in enumerate(zip(index.base_offset, index.last_offset, strict=True)):
        if kept and identities[kept[-1]] == identities[i]:
            continue
        while base_offset < ends[-1] and kept and not is_intact(index, kept[-1]):
            found.append(kept.pop())
            ends.pop()
        if base_offset < ends[-1] and kept and base_offset - ends[-2] >= _length(index, kept[-1]):
            found.append(kept.pop())
            ends.pop()
        if base_offset < ends[-1] or last_offset >= limit:
            found.append(i)
            continue
        kept.append(i)
        ends.append(last_offset + 1)
    return sorted(found)


def _length(index: BatchIndex, i: int) -> int:
    return index.last_offset[i] - index.base_offset[i] + 1


def repeated_batches(index: BatchIndex, last: BatchHeader | None = None) -> set[int]:
    """Return the numbers of the batches that repeat the previous one exactly; ``last`` is the batch before
    ``index``."""
    identities = _identities(index)
    before = [None if last is None else (last.base_offset, last.size, last.crc), *identities]
    return {i for i, identity in enumerate(identities) if identity == before[i]}


def _identities(index: BatchIndex) -> list[tuple[int, int, int]]:
    """Return the fields that identify a copy of a batch; the CRC does not cover the base offset."""
    return list(zip(index.base_offset, index.size, index.crc, strict=True))

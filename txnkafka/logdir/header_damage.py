"""Finds the damage visible in batch headers, without reading records."""

from __future__ import annotations

from txnkafka.logdir.header_pass import SegmentHeaders
from txnkafka.logdir.plan import DamagedBatch


def header_damage(headers: SegmentHeaders) -> list[DamagedBatch]:
    """Return the damage in a segment or part of a segment, in file order."""
    at_end = damage_at_end(headers)
    found = [misplaced_batch(headers, i) for i in headers.misplaced]
    return found if at_end is None else [*found, at_end]


def misplaced_batch(headers: SegmentHeaders, i: int) -> DamagedBatch:
    """Return the damage for batch number ``i``, one of ``headers.misplaced``."""
    index = headers.index
    reason = "the batch's offsets do not fit between those of its neighbours: they are damaged"
    end, begin = headers.end_before(i), headers.begin_after(i)
    return DamagedBatch(index.position[i], index.size[i], end, begin, reason)


def damage_at_end(headers: SegmentHeaders) -> DamagedBatch | None:
    """Return the damage after which the rest of the segment is unreadable; None without such damage."""
    index = headers.index
    if index.stop == "end":
        return None
    # The last segment is already limited to whole batches, so this segment is not the last.
    reason = f"the segment is damaged from here on: {index.stop_reason}"
    return DamagedBatch(index.end_position, 0, headers.end_before(len(index)), headers.limit, reason)

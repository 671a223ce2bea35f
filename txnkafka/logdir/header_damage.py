"""The damage that batch headers show, without a look at what is behind them."""

from __future__ import annotations

from txnkafka.logdir.header_pass import SegmentHeaders
from txnkafka.logdir.plan import DamagedBatch

__all__ = ["damage_at_end", "header_damage", "misplaced_batch"]


def header_damage(headers: SegmentHeaders) -> list[DamagedBatch]:
    """Return the damage of one segment, or of a part of it, in the order of the file."""
    at_end = damage_at_end(headers)
    found = [misplaced_batch(headers, i) for i in headers.misplaced]
    return found if at_end is None else [*found, at_end]


def misplaced_batch(headers: SegmentHeaders, i: int) -> DamagedBatch:
    """Return the damage that batch number ``i`` is, one of ``headers.misplaced``."""
    index = headers.index
    reason = "the batch's offsets do not fit between those of its neighbours: they are damaged"
    end, begin = headers.end_before(i), headers.begin_after(i)
    return DamagedBatch(index.position[i], index.size[i], end, begin, reason)


def damage_at_end(headers: SegmentHeaders) -> DamagedBatch | None:
    """Return the damage behind which nothing of the segment can be read; None if there is none."""
    index = headers.index
    if index.stop == "end":
        return None
    # The last segment was limited to whole batches before, so this segment is not the last.
    reason = f"the segment is damaged from here on: {index.stop_reason}"
    return DamagedBatch(index.end_position, 0, headers.end_before(len(index)), headers.limit, reason)

"""Decides when a batch begins a new segment. Source: ``LogSegment.shouldRoll``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from txnkafka._core.validate import IncomingBatch
    from txnkafka.storage.log.log_segment import LogSegment

__all__ = ["should_roll"]


def should_roll(active: LogSegment, batch: IncomingBatch, end_offset: int, now_ms: int) -> bool:
    """Whether a batch at ``end_offset`` must begin a new segment: by size, by age in the time of the records,
    because an index is full, or because the offset is too far from the base offset."""
    size, config = active.size, active.config
    if size > config.segment_bytes - batch.size:
        return True
    if not active.fits(end_offset + batch.last_offset_delta):
        return True
    if size == 0:
        return False
    first = active.rolling_timestamp
    if first is None:
        first = active.first_timestamp()
    # by the timestamps of the records if they have any (LogSegment.timeWaitedForRoll)
    waited = now_ms - active.created_ms if first is None or first < 0 else batch.max_timestamp - first
    return waited > config.roll_ms - active.roll_jitter_ms or active.indexes_are_full()

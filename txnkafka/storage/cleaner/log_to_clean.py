"""``LogToClean``: a log and the range of offsets that a compaction may clean.

Cleaning never reaches the last stable offset, the active segment, or records younger than
``min.compaction.lag.ms``; it ends at the end of a segment. A pass rewrites everything from the log's first
segment on, because a new record makes all older records of the same key obsolete.

Source: ``LogToClean``, ``LogCleanerManager.cleanableOffsets``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txnkafka.model import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.log.partition_log import PartitionLog


class LogToClean(NamedTuple):
    """A log and its cleanable range; ``must_clean``: some records in the range are older than
    ``max.compaction.lag.ms``."""

    log: PartitionLog
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    must_clean: bool

    @property
    def ratio(self) -> float:
        """The share of never cleaned bytes."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        """True if the log is dirty enough, or has been dirty for too long."""
        if self.must_clean and self.cleanable_bytes:
            return True
        return self.ratio > self.log.config.min_cleanable_dirty_ratio

    @classmethod
    def of(cls, log: PartitionLog, dirty_from: int | None, now_ms: int) -> LogToClean:
        """Compute the range of a log. ``dirty_from`` is the end of the last pass, None without one. Raises
        OSError."""
        dirty = log.log_start_offset if dirty_from is None else dirty_from
        if not log.log_start_offset <= dirty <= log.log_end_offset:
            dirty = log.log_start_offset
        bounds = [log.last_stable_offset, log.active.base_offset, *_young_segments(log, dirty, now_ms)]
        uncleanable = log.segments[log.segments.number_of(max(dirty, min(bounds)))].base_offset
        ends = [segment.base_offset for segment in log.segments[1:]]
        closed = [
            (segment, end) for segment, end in zip(log.segments, ends, strict=False) if end <= uncleanable
        ]
        return cls(
            log,
            dirty,
            uncleanable,
            sum(segment.size for segment, end in closed if end <= dirty),
            sum(segment.size for segment, end in closed if end > dirty),
            _must_clean(log, dirty, now_ms),
        )


def _dirty_segments(log: PartitionLog, dirty: int) -> list[LogSegment]:
    return log.segments[log.segments.number_of(dirty) : -1]


def _young_segments(log: PartitionLog, dirty: int, now_ms: int) -> Iterable[int]:
    """Return the base offset of the first dirty segment that is too young, if any."""
    lag = log.config.min_compaction_lag_ms
    for segment in _dirty_segments(log, dirty) if lag > 0 else ():
        latest = segment.latest_timestamp()
        youngest = segment.modified_ms if latest == NO_TIMESTAMP else latest
        if youngest > now_ms - lag:
            return [segment.base_offset]
    return []


def _must_clean(log: PartitionLog, dirty: int, now_ms: int) -> bool:
    if log.config.max_compaction_lag_ms >= now_ms:
        return False  # the usual case, without a check of segments
    first = (segment.first_timestamp() for segment in _dirty_segments(log, dirty))
    oldest = min((first_ms for first_ms in first if first_ms is not None and first_ms > 0), default=now_ms)
    return oldest < now_ms - log.config.max_compaction_lag_ms

"""What is left of a log that is cut: at its end, by truncation; at its beginning, by retention.

Source: ``LocalLog.truncateTo``, ``UnifiedLog.deleteOldSegments``,
``UnifiedLog.maybeIncrementLogStartOffset``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txnkafka.storage.log.leader_epochs import LeaderEpochs
from txnkafka.storage.log.log_segments import segment_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["Cut"]


class Cut(NamedTuple):
    """Of its segments those with the numbers ``[first, last)`` are left, the last one up to ``position``.
    Where none is, the log goes on in a new segment at its end. It is cut at its beginning or at its end, not
    at both."""

    first: int
    last: int
    position: int
    log_start_offset: int
    log_end_offset: int
    epochs: LeaderEpochs

    @classmethod
    def at_end(cls, log: PartitionLog, offset: int) -> Cut:
        """Everything from ``offset`` on goes. A batch that contains it goes as a whole, and the log ends
        where the batch in front of it does: a gap at the end would look like something lost. Raises
        CorruptRecordError and OSError."""
        if offset >= log.log_end_offset:
            return cls.of(log, end_offset=offset)
        number, position, end = _end_below(log.segments, offset)
        if end < log.log_start_offset <= offset:  # no offset below the log start is used again
            number, position, end = -1, 0, log.log_start_offset
        cut = cls.of(log, end_offset=end)
        return cut._replace(
            last=number + 1,
            position=position,
            log_start_offset=min(log.log_start_offset, end),
            log_end_offset=end,
        )

    @classmethod
    def at_beginning(cls, log: PartitionLog, count: int) -> Cut:
        """The first ``count`` segments go."""
        base = log.segments[count].base_offset if count < len(log.segments) else log.log_end_offset
        return cls.of(log, start_offset=max(log.log_start_offset, base))._replace(first=count)

    @classmethod
    def of(cls, log: PartitionLog, *, start_offset: int | None = None, end_offset: int | None = None) -> Cut:
        """Epochs below ``start_offset`` and from ``end_offset`` on go, no segments; the log begins at
        ``start_offset``."""
        epochs = LeaderEpochs(log.epochs.entries)
        if end_offset is not None:
            epochs.truncate_from_end(end_offset)
        if start_offset is not None:
            epochs.truncate_from_start(start_offset)
        start = log.log_start_offset if start_offset is None else start_offset
        return cls(0, len(log.segments), log.active.size, start, log.log_end_offset, epochs)


def _end_below(segments: Sequence[LogSegment], offset: int) -> tuple[int, int, int]:
    """Number of the segment that would contain ``offset`` (-1: it is below the first), the position in it up
    to which batches are below ``offset`` as a whole, and the offset where these end."""
    number = segment_number(segments, offset)
    segment = segments[number]
    if offset < segment.base_offset:
        return -1, 0, offset
    place = segment.find(offset)
    position = segment.size if place is None else place[0]
    end = segment.base_offset
    for batches in segment.windows(segment.batch_before(max(0, position - 1)), position):
        end = batches.last_offset[-1] + 1 if len(batches) else end
    return number, position, end

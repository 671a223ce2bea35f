"""Planning a log that grows: each plan goes on where the one before ended.

A plan of a partition costs a look at all of its batch headers. A ``PlanCheckpoint`` keeps what such a look
found out: the next plan looks at the headers behind it, and at those of transactions that were open. It has
two places in the log: one where the units end, from which transactions are followed again, and one at the
log's end, from which the last stable offset follows. So a transaction that stays open for days does not make
each plan scan all that came after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from txnkafka.logdir.header_point import CannotResumeError, HeaderPoint
from txnkafka.logdir.log_end import KnownEnd

if TYPE_CHECKING:
    from txnkafka.logdir.undecided import SeenHeaders
    from txnkafka.model import TopicPartition
    from txnkafka.storage.formats.segment_reader import SegmentReader

__all__ = ["PlanCheckpoint"]


@dataclass(frozen=True, slots=True)
class PlanCheckpoint:
    """Where the plan of a partition ended: ``next_offset`` is the first offset that it does not cover.

    A small value that can be pickled: its size depends on how many transactions are open, not on how many
    ended. It is good for the log that was planned, as long as that is appended to, and segments that were
    planned are deleted at its start; otherwise the next plan raises CannotResumeError.
    """

    topic_partition: TopicPartition
    log_start_offset: int
    next_offset: int
    planned: HeaderPoint | None
    seen: SeenHeaders | None
    checked_from: int

    def check(self, segments: list[SegmentReader], log_start_offset: int | None) -> None:
        """Raise CannotResumeError unless a log of these segments is the one that was planned."""
        first = segments[0].base_offset if segments else 0
        log_start_offset = max(first, log_start_offset or 0)
        if self.next_offset < log_start_offset:
            raise CannotResumeError(
                f"{self.topic_partition}: offsets {self.next_offset} to {log_start_offset - 1} were deleted "
                "before they were planned"
            )
        for point in (self.planned, self.seen and self.seen.point):
            if point is not None:
                point.check(segments, log_start_offset if log_start_offset > self.log_start_offset else 0)

    def check_end(self, log_end_offset: int) -> None:
        """Raise CannotResumeError where the log now ends before what was planned, or seen, of it."""
        before = self.next_offset if self.seen is None else max(self.next_offset, self.seen.point.next_offset)
        if log_end_offset < before:
            raise CannotResumeError(
                f"{self.topic_partition} ended at offset {before} when it was planned, "
                f"now at {log_end_offset}"
            )

    @property
    def known_end(self) -> KnownEnd | None:
        """The end of the log as it was."""
        return None if self.seen is None else KnownEnd(self.seen.point, self.checked_from)

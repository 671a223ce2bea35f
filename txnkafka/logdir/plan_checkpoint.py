"""Checkpoints for planning a log that grows: each plan continues where the previous one ended.

Planning a partition scans all its batch headers. A ``PlanCheckpoint`` keeps the results: the next plan scans
only later headers, and the headers of transactions that were open. It has two places in the log: the end of
the units, from which transactions are followed again, and the log end, from which the last stable offset is
computed. So with a transaction that stays open for days, a plan need not scan all headers after its start
again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from txnkafka.logdir.header_point import CannotResumeError, HeaderPoint
from txnkafka.logdir.log_end import KnownEnd
from txnkafka.shown import offset_range

if TYPE_CHECKING:
    from txnkafka.logdir.undecided import SeenHeaders
    from txnkafka.model import TopicPartition
    from txnkafka.storage.formats.segment_reader import SegmentReader


@dataclass(frozen=True, slots=True)
class PlanCheckpoint:
    """The end of a plan of a partition: ``next_offset`` is the first offset that the plan does not cover.

    A checkpoint can be pickled and is small: its size depends on the number of open transactions, not of
    ended ones. It is valid as long as the log is only appended to, and only planned segments are deleted at
    its start; otherwise the next plan raises CannotResumeError."""

    topic_partition: TopicPartition
    log_start_offset: int
    next_offset: int
    planned: HeaderPoint | None
    seen: SeenHeaders | None
    checked_from: int

    def check(self, segments: list[SegmentReader], log_start_offset: int | None) -> None:
        """Raise CannotResumeError unless these segments form the planned log."""
        first = segments[0].base_offset if segments else 0
        log_start_offset = max(first, log_start_offset or 0)
        if self.next_offset < log_start_offset:
            raise CannotResumeError(
                f"{self.topic_partition}: deleted before it was planned: "
                f"{offset_range(self.next_offset, log_start_offset - 1)}"
            )
        for point in (self.planned, self.seen and self.seen.point):
            if point is not None:
                point.check(segments, log_start_offset if log_start_offset > self.log_start_offset else 0)

    def check_end(self, log_end_offset: int) -> None:
        """Raise CannotResumeError if the log now ends before a planned or scanned offset."""
        before = self.next_offset if self.seen is None else max(self.next_offset, self.seen.point.next_offset)
        if log_end_offset < before:
            raise CannotResumeError(
                f"{self.topic_partition} ended at offset {before} when it was planned, "
                f"now at {log_end_offset}"
            )

    @property
    def known_end(self) -> KnownEnd | None:
        """The end of the log at the time of the plan."""
        return None if self.seen is None else KnownEnd(self.seen.point, self.checked_from)

"""``StreamLog``: the logs that a stream reads, in a directory or at a broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from txnkafka.model import TopicPartition
from txnkafka.spark.log_bounds import LogBounds, OffsetRange
from txnkafka.spark.stream.held_back import HeldBack


class StreamLog(Protocol):
    """Called by one thread, in the driver."""

    def look(self) -> Mapping[TopicPartition, LogBounds]:
        """Return the offsets of the partitions that the options select, as they are now."""

    def starting(self) -> Mapping[TopicPartition, int]:
        """Return the offsets where a new stream begins, by its options, in the logs last looked at."""

    def within(self, part: OffsetRange, size: int) -> tuple[int, int]:
        """Return the end of the first batches of a range that have at most ``size`` bytes together, and their
        bytes; at least one batch."""

    def bytes_in(self, part: OffsetRange) -> int:
        """Return the approximate number of bytes of a range."""

    def tasks(self, ranges: Sequence[OffsetRange]) -> Sequence[object]:
        """Return the tasks that read these ranges, in offset order in each partition."""

    def held_back(self) -> list[HeldBack]:
        """Return the transactions that hold back partitions, in the logs last looked at."""

    def close(self) -> None:
        """Release files and connections."""

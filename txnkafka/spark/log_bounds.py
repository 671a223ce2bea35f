"""Offsets of a partition: where its log begins and ends, and a range of it."""

from __future__ import annotations

from typing import NamedTuple

from txnkafka.model import TopicPartition


class LogBounds(NamedTuple):
    """The offsets of one partition: readers of the isolation level get [start, end), which is the log up to
    ``log_end`` or less. Below ``cleaned_to`` records may be missing since the log was compacted. A topic that
    was deleted and created again has another ``topic_id``; None if it is unknown."""

    start: int
    end: int
    log_end: int
    cleaned_to: int = 0
    topic_id: str | None = None


class OffsetRange(NamedTuple):
    """The offsets [start, end) of a partition."""

    topic_partition: TopicPartition
    start: int
    end: int

"""The results of a producer: where records are in the log."""

from __future__ import annotations

from typing import NamedTuple


class RecordMetadata(NamedTuple):
    """The place of an acknowledged record. ``offset`` is -1 if it is unknown: with ``acks=0``,
    and for a repeated batch that the broker has forgotten. ``timestamp`` is in milliseconds, the broker's
    time in a topic with ``message.timestamp.type=LogAppendTime``."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class BatchMetadata(NamedTuple):
    """The place of the acknowledged records of one batch: ``record_count`` offsets from ``base_offset`` on,
    which is -1 if it is unknown."""

    topic: str
    partition: int
    base_offset: int
    record_count: int

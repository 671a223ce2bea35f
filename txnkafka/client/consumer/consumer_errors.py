"""Errors that only consumers raise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.errors import ClientError, OffsetOutOfRangeError

if TYPE_CHECKING:
    from txnkafka.model import TopicPartition


class WakeupError(ClientError):
    """``wakeup`` ended a call that was waiting (Java: ``WakeupException``)."""


class NoOffsetForPartitionError(ClientError):
    """Partitions have no committed offset, and ``auto.offset.reset`` is none. ``partitions`` lists them."""

    def __init__(self, partitions: tuple[TopicPartition, ...], group_id: str) -> None:
        names = ", ".join(map(str, partitions))
        group = f"in group {group_id!r} " if group_id else ""
        super().__init__(
            f"{names}: no committed offset {group}and auto.offset.reset is none: call seek, or choose "
            "earliest or latest"
        )
        self.partitions = partitions


class LogTruncationError(OffsetOutOfRangeError):
    """The log was truncated below the position, as after an unclean election: records that were consumed have
    been replaced (KIP-320). ``offset`` is the position, ``diverged_offset`` the first offset that differs."""

    def __init__(self, partition: TopicPartition, offset: int, diverged_offset: int) -> None:
        super().__init__(
            f"{partition}: the log was truncated to offset {diverged_offset}, below the position {offset}: "
            f"call seek with an offset up to {diverged_offset}"
        )
        self.partition, self.offset, self.diverged_offset = partition, offset, diverged_offset

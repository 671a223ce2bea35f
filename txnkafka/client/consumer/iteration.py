"""``Iteration``: the records that iteration has polled, but not yet given to its loop."""

from __future__ import annotations

from operator import length_hint
from typing import TYPE_CHECKING

from txnkafka.client.offsets import OffsetAndMetadata
from txnkafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnkafka._core.consumer_record import ConsumerRecord


class Iteration:
    """A list of records of one partition and its iterator, which is used without any code for each record:
    the next record follows from the number of those left."""

    def __init__(self) -> None:
        self._records: list[ConsumerRecord] = []
        self._iterator = iter(self._records)

    def fill(self, records: list[ConsumerRecord]) -> None:
        """Take polled records."""
        self._records, self._iterator = records, iter(records)

    @property
    def iterator(self) -> Iterator[ConsumerRecord]:
        """The iterator, which a new loop continues."""
        return self._iterator

    @property
    def left(self) -> int:
        """The number of records that are left."""
        return length_hint(self._iterator)

    def rest(self) -> list[ConsumerRecord]:
        """Take the records that are left out of the iteration."""
        return list(self._iterator)

    def place(self) -> tuple[TopicPartition, OffsetAndMetadata] | None:
        """Return the partition and the place of the next record; None if no record is left."""
        left = self.left
        if not left:
            return None
        record = self._records[-left]
        epoch = self._records[-left - 1].leader_epoch if left < len(self._records) else None
        return TopicPartition(record.topic, record.partition), OffsetAndMetadata(record.offset, "", epoch)

    def drop(self) -> tuple[TopicPartition, OffsetAndMetadata] | None:
        """Drop the records that are left, which ends loops over them; return the place of the first."""
        place = self.place()
        self._records.clear()
        return place

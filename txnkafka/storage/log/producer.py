"""What a partition knows of one producer, as the object that replay changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.model import (
    NO_COORDINATOR_EPOCH,
    NO_OFFSET,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    ProducerStateEntry,
)

if TYPE_CHECKING:
    from txnkafka._core.scan import BatchHeader

__all__ = ["Producer", "Transaction"]

_LARGEST_SEQUENCE = 2**31 - 1


class Transaction:
    """A transaction in progress, and what of it was replayed."""

    __slots__ = ("first_offset", "first_timestamp", "records", "size")

    def __init__(self, first_offset: int, first_timestamp: int | None) -> None:
        self.first_offset = first_offset
        self.first_timestamp = first_timestamp
        self.records = 0
        self.size = 0


class Producer:
    """State of one producer while it changes."""

    __slots__ = (
        "coordinator_epoch",
        "emptied_first_offset",
        "last_offset",
        "last_sequence",
        "last_timestamp",
        "next_sequence",
        "offset_delta",
        "producer_epoch",
        "transaction",
    )

    def __init__(self, producer_epoch: int) -> None:
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.last_timestamp = NO_TIMESTAMP
        self.last_sequence = NO_SEQUENCE
        self.last_offset = NO_OFFSET
        self.offset_delta = 0
        # None until a batch or another epoch tells: before the beginning of the log there may have been more.
        self.next_sequence = NO_SEQUENCE
        self.transaction: Transaction | None = None
        # Of transactional batches that the cleaner emptied, until an end marker comes.
        self.emptied_first_offset = NO_OFFSET

    @classmethod
    def of(cls, entry: ProducerStateEntry) -> Producer:
        """The producer as a snapshot has it."""
        producer = cls(entry.producer_epoch)
        producer.coordinator_epoch = entry.coordinator_epoch
        producer.last_timestamp = entry.last_timestamp
        producer.last_sequence = entry.last_sequence
        producer.last_offset = entry.last_offset
        producer.offset_delta = entry.offset_delta
        # A broker that loaded this insists on 0 where the snapshot has no batch, and that is -1 + 1.
        producer.next_sequence = (entry.last_sequence + 1) & _LARGEST_SEQUENCE
        if entry.has_open_transaction:
            producer.transaction = Transaction(entry.current_txn_first_offset, None)
        return producer

    def entry(self, producer_id: int) -> ProducerStateEntry:
        """The state as a value."""
        return ProducerStateEntry(
            producer_id,
            self.producer_epoch,
            self.coordinator_epoch,
            self.last_timestamp,
            NO_OFFSET if self.transaction is None else self.transaction.first_offset,
            self.last_sequence,
            self.last_offset,
            self.offset_delta,
        )

    def append(self, header: BatchHeader) -> None:
        """Take in a data batch, whose epoch may be a new one."""
        self.producer_epoch = header.producer_epoch
        self.last_timestamp = header.max_timestamp
        self.last_offset = header.last_offset
        self.offset_delta = delta = header.last_offset - header.base_offset
        if header.base_sequence < 0:
            self.last_sequence = self.next_sequence = NO_SEQUENCE
        else:
            # Sequences wrap around to 0.
            self.last_sequence = last_sequence = (header.base_sequence + delta) & _LARGEST_SEQUENCE
            self.next_sequence = (last_sequence + 1) & _LARGEST_SEQUENCE

    def mark(self, header: BatchHeader) -> None:
        """Take in an end marker, whose epoch may be a new one with sequences of its own."""
        if self.producer_epoch != header.producer_epoch:
            self.producer_epoch = header.producer_epoch
            self.last_sequence = NO_SEQUENCE
            self.last_offset = NO_OFFSET
            self.offset_delta = 0
            self.next_sequence = 0
        self.coordinator_epoch = header.coordinator_epoch
        self.last_timestamp = header.max_timestamp  # the marker's own, delete horizon or not

    def note_emptied(self, base_offset: int) -> None:
        """Take in a transactional batch that the cleaner emptied, while no transaction is open."""
        if self.emptied_first_offset == NO_OFFSET:
            self.emptied_first_offset = base_offset

    def end_transaction(self) -> int:
        """Close the transaction; returns the first offset of what was left of it, or none."""
        first_offset = self.emptied_first_offset
        if first_offset == NO_OFFSET and self.transaction is not None:
            first_offset = self.transaction.first_offset
        self.emptied_first_offset = NO_OFFSET
        self.transaction = None
        return first_offset

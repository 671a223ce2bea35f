"""Arguments and results of the calls of ``Admin`` about transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from txnkafka.model import TopicPartition


NO_TIMEOUT: Final = (1 << 31) - 1
"""The timeout of transactions with two-phase commit in milliseconds (KIP-939)."""


class TransactionListing(NamedTuple):
    """A transactional id with the state of its transaction, by Kafka's names: Empty, Ongoing, PrepareCommit,
    PrepareAbort, CompleteCommit, CompleteAbort. ``coordinator`` is a node id."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


class TransactionDescription(NamedTuple):
    """The state of a transactional id. ``topic_partitions`` are the partitions of its open transaction that
    have no end marker yet. Times in milliseconds; ``transaction_start_time_ms`` is None without an open
    transaction. ``coordinator`` is a node id."""

    transactional_id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int | None
    topic_partitions: tuple[TopicPartition, ...]

    @property
    def is_two_phase(self) -> bool:
        """Return whether its transactions have no timeout, because they take part in a two-phase commit
        (KIP-939)."""
        return self.transaction_timeout_ms == NO_TIMEOUT


class ProducerState(NamedTuple):
    """A producer that has written to a partition. ``last_timestamp`` is in milliseconds;
    ``coordinator_epoch`` is None before its first end marker, ``current_transaction_start_offset`` without an
    open transaction."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    current_transaction_start_offset: int | None


class AbortTransactionSpec(NamedTuple):
    """An open transaction in a partition, to be aborted there. ``describe_producers`` has the numbers."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None = None


class HangingTransaction(NamedTuple):
    """An open transaction in a partition that its coordinator does not know, so nothing will end it.
    ``transactional_id`` is the id that its producer has now, None if no id has this producer.
    ``coordinator_epoch`` is None before the producer's first end marker. Times in milliseconds.
    ``is_two_phase``: the id takes part in two-phase commits (KIP-939): before you abort the transaction, look
    whether the other system has committed it."""

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    start_offset: int
    last_timestamp: int
    transactional_id: str | None
    is_two_phase: bool = False

    @property
    def spec(self) -> AbortTransactionSpec:
        """The argument that lets ``abort_transaction`` abort it."""
        return AbortTransactionSpec(
            *self.topic_partition, self.producer_id, self.producer_epoch, self.coordinator_epoch
        )

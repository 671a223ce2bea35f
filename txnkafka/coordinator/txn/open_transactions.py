"""Rules that compare a transaction open in a partition with the state of its coordinator.

A partition has the data of a transaction, its coordinator the state of the transactional id. A crash may
leave the data without the coordinator's record. The rules are used by partition leaders before they append,
at a start, and after the coordinator failed to make a record durable.
"""

from __future__ import annotations

from txnkafka.coordinator.txn.txn_image import COMPLETE, ONGOING, PREPARED
from txnkafka.model import NO_PRODUCER_EPOCH, ProducerStateEntry, TopicPartition
from txnkafka.wire.records import TransactionMetadata, TransactionState


def has_joined(
    owner: TransactionMetadata | None, partition: TopicPartition, producer_id: int, producer_epoch: int
) -> bool:
    """Return whether the partition is in the producer's open transaction, and its end is not decided. A
    transaction that another producer has kept (KIP-939) takes no more data."""
    return (
        owner is not None
        and owner.state == ONGOING
        and owner.producer_id == producer_id
        and owner.producer_epoch == producer_epoch
        and owner.next_producer_epoch == NO_PRODUCER_EPOCH
        and partition in owner.topic_partitions
    )


def will_end(owner: TransactionMetadata, partition: TopicPartition, entry: ProducerStateEntry) -> bool:
    """Return whether the coordinator will end the transaction that is open in a partition.

    Markers with their own epoch (PREPARE_* of transaction version 2) do not end the next transaction, which
    has the same epoch."""
    if partition not in owner.topic_partitions or entry.producer_id != owner.producer_id:
        return False
    if owner.state in PREPARED and owner.client_transaction_version >= 2:
        return entry.producer_epoch < owner.producer_epoch
    return entry.producer_epoch <= owner.producer_epoch


def is_next_of(owner: TransactionMetadata, entry: ProducerStateEntry) -> bool:
    """Return whether the transaction can only be one that the coordinator has not recorded, because no
    earlier transaction had this epoch.

    It may be open below the recovery point, which is written after a flush of the data, and before the flush
    of the coordinator's log."""
    if entry.producer_id != owner.producer_id:
        return entry.producer_id == owner.next_producer_id and entry.producer_epoch == 0
    has_own_epoch = owner.state == TransactionState.EMPTY or owner.client_transaction_version >= 2
    return has_own_epoch and entry.producer_epoch == owner.producer_epoch


def is_left_over(owner: TransactionMetadata, entry: ProducerStateEntry) -> bool:
    """Return whether no coordinator will end the transaction, although an earlier one may have had its epoch,
    since all markers of that one are durable.

    Then the transaction was not recorded, after a client switched to transaction version 2 without a new
    epoch; or its data came late and unverified."""
    is_same = entry.producer_id == owner.producer_id and entry.producer_epoch == owner.producer_epoch
    return is_same and owner.state in COMPLETE

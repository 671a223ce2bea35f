"""Whether a transaction that is open in a partition is one that the coordinator knows of: rules for leaders
that append more to it, for a node that starts, and for one whose coordinator could not make a record durable.

A partition has the data of a transaction, its coordinator has the state of the transactional id; a crash may
leave the first without the record that was to be durable beside it.
"""

from __future__ import annotations

from txnkafka.coordinator.txn_image import COMPLETE, ONGOING, PREPARED
from txnkafka.model import ProducerStateEntry, TopicPartition
from txnkafka.wire.records import TransactionMetadata, TransactionState

__all__ = ["has_joined", "is_left_over", "is_next_of", "will_end"]


def has_joined(
    owner: TransactionMetadata | None, partition: TopicPartition, producer_id: int, producer_epoch: int
) -> bool:
    """Whether the partition is in the producer's transaction, and no decision about it has been taken."""
    return (
        owner is not None
        and owner.state == ONGOING
        and owner.producer_id == producer_id
        and owner.producer_epoch == producer_epoch
        and partition in owner.topic_partitions
    )


def will_end(owner: TransactionMetadata, partition: TopicPartition, entry: ProducerStateEntry) -> bool:
    """Whether the coordinator will end the transaction that is open in a partition. Markers with an epoch of
    their own (PREPARE_* of transaction version 2) do not end the transaction that follows, which has the same
    epoch."""
    if partition not in owner.topic_partitions or entry.producer_id != owner.producer_id:
        return False
    if owner.state in PREPARED and owner.client_transaction_version >= 2:
        return entry.producer_epoch < owner.producer_epoch
    return entry.producer_epoch <= owner.producer_epoch


def is_next_of(owner: TransactionMetadata, entry: ProducerStateEntry) -> bool:
    """Whether the transaction can only be the one that the coordinator has not recorded yet: no transaction
    before it has had this epoch. It may be open below the recovery point, which was written to the disk after
    a flush of the data, and before that of the coordinator's log."""
    if entry.producer_id != owner.producer_id:
        return entry.producer_id == owner.next_producer_id and entry.producer_epoch == 0
    has_own_epoch = owner.state == TransactionState.EMPTY or owner.client_transaction_version >= 2
    return has_own_epoch and entry.producer_epoch == owner.producer_epoch


def is_left_over(owner: TransactionMetadata, entry: ProducerStateEntry) -> bool:
    """Whether nobody will end the transaction, although one before it may have had its epoch: all markers of
    that one are durable. It is one that was not recorded, after a client went on with transaction version 2
    and without a new epoch; or data that came late and unverified."""
    is_same = entry.producer_id == owner.producer_id and entry.producer_epoch == owner.producer_epoch
    return is_same and owner.state in COMPLETE

"""Whether a transaction that is open in a partition is one that the coordinator knows of: rules for a node
that starts, or whose coordinator could not make a record durable.

A partition has the data of a transaction, its coordinator has the state of the transactional id; a crash may
leave the first without the record that was to be durable beside it.
"""

from __future__ import annotations

from txnkafka.coordinator.txn_image import PREPARED
from txnkafka.model import ProducerStateEntry, TopicPartition
from txnkafka.wire.records import TransactionMetadata, TransactionState

__all__ = ["is_next_of", "will_end"]


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
    a flush of the data, and before the one that the coordinator's log needed when it rolled a segment."""
    if entry.producer_id != owner.producer_id:
        return entry.producer_id == owner.next_producer_id and entry.producer_epoch == 0
    has_own_epoch = owner.state == TransactionState.EMPTY or owner.client_transaction_version >= 2
    return has_own_epoch and entry.producer_epoch == owner.producer_epoch

"""Raises the epochs of transactional ids to those that the partitions know, when a broker starts.

``__transaction_state`` may lose its end while the partitions keep theirs: a power cut with ``page_cache``, or
a directory that was restored in parts. InitProducerId would then give an epoch that the partitions have seen,
and refuse the next transaction. The raised epoch becomes durable with the next record of the id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.coordinator.txn_events import TransactionRecord
from txnkafka.coordinator.txn_image import IDLE_OR_ONGOING
from txnkafka.model import NO_PRODUCER_EPOCH

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.coordinator.txn_coordinator import TransactionCoordinator

__all__ = ["raise_epochs"]


def raise_epochs(broker: Broker, coordinator: TransactionCoordinator) -> None:
    """Give each transactional id an epoch that is not below those of its producer id in any partition. Ids
    with a decision under way keep theirs: their markers carry it."""
    newest: dict[int, int] = {}
    for log in broker.logs.values():
        for entry in log.producers.entries():
            epoch = newest.get(entry.producer_id, NO_PRODUCER_EPOCH)
            newest[entry.producer_id] = max(epoch, entry.producer_epoch)
    for state in coordinator.partitions.values():
        for transactional_id, metadata in list(state.metadata.items()):
            epoch = newest.get(metadata.producer_id, NO_PRODUCER_EPOCH)
            if epoch <= metadata.producer_epoch or metadata.state not in IDLE_OR_ONGOING:
                continue
            if transactional_id in coordinator.in_flight.by_id:
                continue
            raised = metadata._replace(producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH)
            state.replay(TransactionRecord(transactional_id, raised))

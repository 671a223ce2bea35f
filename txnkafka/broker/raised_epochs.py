"""Raises the epochs of transactional ids to those that the partitions know, when a broker starts.

``__transaction_state`` may lose its end while the partitions keep theirs: a power cut with ``page_cache``, or
a directory that was restored in parts. InitProducerId would then give an epoch that the partitions have seen,
and refuse the next transaction. The raised epoch becomes durable with the next record of the id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.coordinator.txn_events import TransactionRecord
from txnkafka.coordinator.txn_image import IDLE, LARGEST_EPOCH
from txnkafka.model import NO_PRODUCER_EPOCH

if TYPE_CHECKING:
    from txnkafka.broker.broker import Broker
    from txnkafka.coordinator.txn_coordinator import TransactionCoordinator

__all__ = ["raise_epochs"]


def raise_epochs(broker: Broker, coordinator: TransactionCoordinator) -> None:
    """Give each idle transactional id an epoch above its producer id's epochs in all partitions.

    A client that goes on with its old epoch is fenced: its transaction may have partitions that the log has
    lost, and must not be committed without them. An ongoing transaction keeps its epoch until it is aborted.
    """
    newest: dict[int, int] = {}
    for log in broker.logs.values():
        for entry in log.producers.entries():
            # a marker alone has the epoch that comes next: another transaction may begin with it
            used = entry.producer_epoch if entry.last_sequence >= 0 else entry.producer_epoch - 1
            newest[entry.producer_id] = max(newest.get(entry.producer_id, NO_PRODUCER_EPOCH), used)
    for state in coordinator.partitions.values():
        for transactional_id, metadata in list(state.metadata.items()):
            used = newest.get(metadata.producer_id, NO_PRODUCER_EPOCH)
            if used > metadata.producer_epoch and metadata.state in IDLE:
                epoch = min(used + 1, LARGEST_EPOCH)
                raised = metadata._replace(producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH)
                state.replay(TransactionRecord(transactional_id, raised))

"""At a start, raises the epochs of transactional ids above the epochs in the partitions.

``__transaction_state`` may lose its end while the partitions keep theirs: after a power cut with
``page_cache``, or when a directory was partly restored. InitProducerId would then assign an epoch that
partitions have already seen, and they would refuse the next transaction. The raised epoch becomes durable
with the next record of the id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.coordinator.txn.txn_events import TransactionRecord
from txnkafka.coordinator.txn.txn_image import IDLE_OR_ONGOING, raised
from txnkafka.coordinator.txn.txn_setting import SeenEpochs

if TYPE_CHECKING:
    from txnkafka.broker.services import Services
    from txnkafka.coordinator.txn.txn_coordinator import TransactionCoordinator


def seen_epochs(services: Services) -> dict[int, SeenEpochs]:
    """Return the largest epochs in the partitions for each producer id."""
    found: dict[int, SeenEpochs] = {}
    for log in services.logs.values():
        for entry in log.producers.entries():
            epoch = entry.producer_epoch
            # no data has the epoch of a marker yet, unless it is the epoch of the transaction that the marker
            # ends
            of_data = epoch if entry.last_sequence >= 0 else epoch - 1
            known = found.get(entry.producer_id)
            if known is not None:
                epoch, of_data = max(epoch, known.largest), max(of_data, known.of_data)
            found[entry.producer_id] = SeenEpochs(epoch, of_data)
    return found


def raise_epochs(coordinator: TransactionCoordinator) -> dict[int, int]:
    """Give each transactional id an epoch above those in ``coordinator.seen`` for its producer id.

    A decided transaction keeps its epoch until its markers are written. Returns the previous epochs, by
    producer id, of the ids whose records the coordinator's log has lost.

    A client that continues with its old epoch is fenced: its transaction may have partitions that the log has
    lost, and must not be committed without them. So is a client whose transaction is ongoing for the
    coordinator although later ones followed: its outcome is unknown."""
    before: dict[int, int] = {}
    seen: dict[int, SeenEpochs] = {}
    for state in coordinator.partitions.values():
        for transactional_id, metadata in list(state.metadata.items()):
            for producer_id, epoch in (
                (metadata.producer_id, metadata.producer_epoch),
                (metadata.next_producer_id, max(metadata.next_producer_epoch, 0)),
            ):
                known = coordinator.seen.get(producer_id)
                if known is not None and known.largest > epoch:
                    seen[producer_id] = known
                    if known.of_data > epoch:
                        before[producer_id] = epoch
            if metadata.state in IDLE_OR_ONGOING:
                image = raised(metadata, coordinator.seen)
                if image is not metadata:
                    state.replay(TransactionRecord(transactional_id, image))
    coordinator.seen = seen
    return before

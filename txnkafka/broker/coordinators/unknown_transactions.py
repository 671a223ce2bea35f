"""Ends transactions that are open in a partition and unknown to their coordinator: after a crash, or because
the coordinator's record could not become durable.

Data and the coordinator's record share a flush, and a power cut may leave only the data, which would hold the
last stable offset for ever. The data then joins the transaction of its producer, as its first batch would
have done, or is aborted if it cannot join. The marker has the next epoch, so that a retry of the batch is
refused instead of counting as a duplicate of the aborted batch. A transaction that its coordinator may have
completed gets the marker of that decision or stays open (``decided_transactions.py``), also after a clean
stop. While a partition of the coordinator cannot be read, a transaction without an owner stays as it is: the
partition may have decided to commit it.

Until the end is durable the recovery points on the disk stay unchanged: after a second crash they name the
same transactions to check.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from txnkafka.broker.coordinators.decided_transactions import end_decided
from txnkafka.broker.coordinators.marker_writer import MarkerWriter, WritableMarker
from txnkafka.coordinator import TRANSACTION_STATE_TOPIC
from txnkafka.coordinator.txn.decided import OpenTransaction
from txnkafka.coordinator.txn.open_transactions import is_left_over, is_next_of, will_end
from txnkafka.coordinator.txn.txn_events import AddPartitions, Answer
from txnkafka.error_codes import ErrorCode
from txnkafka.model import NO_PRODUCER_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from txnkafka.broker.services import Services
    from txnkafka.coordinator.txn.decided import Decision
    from txnkafka.coordinator.txn.txn_coordinator import TransactionCoordinator
    from txnkafka.model import ProducerStateEntry, TopicPartition
    from txnkafka.wire.records import TransactionMetadata

LOG = logging.getLogger("txnkafka.broker")
LARGEST_EPOCH: Final = 32767


def end_unknown(
    services: Services,
    coordinator: TransactionCoordinator,
    markers: MarkerWriter,
    decided: Mapping[OpenTransaction, Decision],
    raised: Mapping[int, int],
) -> None:
    """End the transactions of all logs that their coordinator has completed, and abort those with a greater
    epoch than the coordinator's log has of their producer id (``raised``): the next transaction of the id
    would decide about them. After an unclean stop, let other unknown ones join the transaction of their
    producer, or abort them; then the recovery points of the logs may be written."""
    pending = _Pending(services, coordinator, markers)
    pending.left += end_decided(services, markers, decided, pending.done)
    owners = {
        producer_id: metadata
        for state in coordinator.partitions.values()
        for metadata in state.metadata.values()
        for producer_id in (metadata.producer_id, metadata.next_producer_id)
        if producer_id != NO_PRODUCER_ID
    }
    for partition, log in services.logs.items():
        for entry in log.producers.open_transactions() if services.serves(partition) else ():
            if OpenTransaction(partition, entry.producer_id, entry.producer_epoch) not in decided:
                is_lost = entry.producer_epoch > raised.get(entry.producer_id, LARGEST_EPOCH)
                _end_unknown(
                    pending, partition, entry, owners.get(entry.producer_id), is_lost=is_lost,
                )  # fmt: skip
    pending.done(ErrorCode.NONE)


def _end_unknown(
    pending: _Pending,
    partition: TopicPartition,
    entry: ProducerStateEntry,
    owner: TransactionMetadata | None,
    *,
    is_lost: bool,
) -> None:
    if owner is not None and will_end(owner, partition, entry):
        return
    data = pending.services.data
    is_old = entry.current_txn_first_offset < data.recovered_from.get(partition, 0)
    is_next = owner is not None and is_next_of(owner, entry)
    is_left = owner is not None and not is_next and is_left_over(owner, entry)
    if not is_lost and (data.was_clean or (is_old and not is_next and not is_left)):
        return
    pending.left += 1
    if owner is None and not pending.has_all_owners:
        LOG.warning(
            "%s: the transaction of producer %d that is open since offset %d stays open: not all of "
            "%s can be read", partition, entry.producer_id, entry.current_txn_first_offset,
            TRANSACTION_STATE_TOPIC,
        )  # fmt: skip
        pending.done(ErrorCode.NOT_COORDINATOR)
        return
    abort = partial(_abort_unknown, pending.markers, partition, entry, pending.done)
    if owner is None or is_lost or (is_left and is_old):  # it might be committed with the next one
        abort(Answer(ErrorCode.INVALID_TXN_STATE))
        return
    event = AddPartitions(
        owner.transactional_id, entry.producer_id, entry.producer_epoch, frozenset((partition,)),
        owner.client_transaction_version,
    )  # fmt: skip
    pending.coordinator.handle(event, abort, pending.services.now_ms)


def abort_if_unknown(
    services: Services,
    coordinator: TransactionCoordinator,
    markers: MarkerWriter,
    partition: TopicPartition,
    *,
    transactional_id: str,
    producer: tuple[int, int],
) -> None:
    """Abort data of a transaction that was appended beside a failed record of the coordinator. Otherwise it
    would hold the last stable offset, and its retry would count as a duplicate.

    Leave the data if a decision follows the record: the next start may find both, and the decision holds for
    all partitions."""
    producer_id, producer_epoch = producer
    if coordinator.in_flight.is_ending(transactional_id):
        return
    log = services.logs.get(partition)
    entry = None if log is None else log.producers.entry(producer_id)
    if entry is None or not entry.has_open_transaction or entry.producer_epoch != producer_epoch:
        return
    owner = coordinator.metadata_of(transactional_id)
    if owner is None or not will_end(owner, partition, entry):
        _abort(markers, partition, entry, lambda error: None)


class _Pending:
    """Counts transactions whose end is not durable, and one more until ``end_unknown`` has seen all."""

    def __init__(
        self, services: Services, coordinator: TransactionCoordinator, markers: MarkerWriter
    ) -> None:
        self.coordinator, self.markers = coordinator, markers
        topic = services.image.topics.get(TRANSACTION_STATE_TOPIC)
        read = coordinator.partitions.keys()
        self.has_all_owners = topic is None or topic.partitions.keys() <= read
        self.left = 1
        self.services = services
        self._has_failed = False

    def done(self, error: ErrorCode) -> None:
        """Count a durable end. After an error the recovery points stay: the next start checks again."""
        self.left -= 1
        self._has_failed |= error != ErrorCode.NONE
        if self.left == 0 and not self._has_failed and not self.services.data.was_clean:
            checkpoints, logs = self.services.data.checkpoints, self.services.logs
            checkpoints.release()
            self.services.jobs.add(lambda: checkpoints.work(logs), _log_failure)


def _log_failure(error: Exception | None) -> None:
    if error is not None:
        LOG.error("the recovery points are not written: %s", error)


def _abort_unknown(
    markers: MarkerWriter,
    partition: TopicPartition,
    entry: ProducerStateEntry,
    done: Callable[[ErrorCode], None],
    answer: Answer,
) -> None:
    """Abort the transaction in the partition, unless the coordinator's answer shows that it knows it now."""
    if answer.error == ErrorCode.NONE:
        done(ErrorCode.NONE)
    else:
        _abort(markers, partition, entry, done)


def _abort(
    markers: MarkerWriter,
    partition: TopicPartition,
    entry: ProducerStateEntry,
    done: Callable[[ErrorCode], None],
) -> None:
    LOG.warning(
        "%s: the transaction of producer %d that is open since offset %d is unknown to the coordinator: "
        "aborted", partition, entry.producer_id, entry.current_txn_first_offset,
    )  # fmt: skip
    marker = WritableMarker(
        entry.producer_id, min(entry.producer_epoch + 1, LARGEST_EPOCH), False, (partition,),
        max(entry.coordinator_epoch, 0),
    )  # fmt: skip
    markers.append(partition, marker, done)

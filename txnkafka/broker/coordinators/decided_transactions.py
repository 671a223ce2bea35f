"""Ends transactions that their coordinator completed without all markers, as Apache Kafka does at a clean
stop (``coordinator/txn/decided.py``): writes the marker that the coordinator's log decides.

If the coordinator's log may mean another transaction with another outcome, the transaction stays open, and a
warning reports it; see docs/transactions.md.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from txnkafka.broker.coordinators.coordinator_topic import log_of
from txnkafka.broker.coordinators.marker_writer import MarkerWriter, WritableMarker
from txnkafka.coordinator import TRANSACTION_STATE_TOPIC
from txnkafka.coordinator.txn.decided import Decision, History, OpenTransaction, Seen, decide
from txnkafka.coordinator.txn.open_transactions import will_end
from txnkafka.coordinator.txn.txn_image import ONGOING
from txnkafka.errors import KafkaError
from txnkafka.model import NO_PRODUCER_ID, TopicPartition
from txnkafka.storage.log.log_records import records_of_log
from txnkafka.storage.log.open_transaction import beginning_of
from txnkafka.wire.records import TransactionMetadata, decode_transaction_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from txnkafka.broker.services import Services
    from txnkafka.coordinator.txn.txn_coordinator import TransactionCoordinator
    from txnkafka.error_codes import ErrorCode
    from txnkafka.model import ProducerStateEntry

LOG = logging.getLogger("txnkafka.broker")


def decisions(services: Services, coordinator: TransactionCoordinator) -> dict[OpenTransaction, Decision]:
    """Return the decision for each open transaction that its coordinator may have completed."""
    owners = _owners(coordinator)
    found: dict[OpenTransaction, tuple[TransactionMetadata, ProducerStateEntry]] = {}
    for partition, log in services.logs.items():
        for entry in log.producers.open_transactions() if services.serves(partition) else ():
            owner = owners.get(entry.producer_id)
            if owner is not None and not _is_awaited(owner, partition, entry):
                key = OpenTransaction(partition, entry.producer_id, entry.producer_epoch)
                found[key] = owner, entry
    if not found:
        return {}
    history = _history(services, coordinator, found, {owner.transactional_id for owner, _ in found.values()})
    decided = {key: _decision(services, history, key, entry) for key, (_, entry) in found.items()}
    return {key: decision for key, decision in decided.items() if decision is not None}


def end_decided(
    services: Services,
    markers: MarkerWriter,
    decided: Mapping[OpenTransaction, Decision],
    done: Callable[[ErrorCode], None],
) -> int:
    """Append the markers of clear decisions; ``done`` is called for each when it is durable or refused.
    Returns the number of markers."""
    count = 0
    for (partition, producer_id, _), (ended, is_clear) in decided.items():
        outcome = "committed" if ended.committed else "aborted"
        log = log_of(services, partition)
        known = log.producers.epochs(producer_id)
        state = f"its coordinator has completed {ended.transactional_id!r} as {outcome}"
        what = f"the transaction of producer {producer_id} without an end marker"
        if not is_clear:
            LOG.warning(
                "%s: %s stays open: %s, but the log may mean another transaction", partition, what, state
            )
            continue
        count += 1
        log.note(what, f"{outcome} by a marker", state)
        marker = WritableMarker(
            producer_id, ended.marker_epoch, ended.committed, (partition,),
            max(0, -1 if known is None else known[1]), ended.version,
        )  # fmt: skip
        markers.append(partition, marker, done)
    return count


def _owners(coordinator: TransactionCoordinator) -> dict[int, TransactionMetadata]:
    """Return transactional id states by their current producer id, and by their previous one."""
    states = [each for state in coordinator.partitions.values() for each in state.metadata.values()]
    owners = {each.previous_producer_id: each for each in states}
    owners |= {each.producer_id: each for each in states}
    owners.pop(NO_PRODUCER_ID, None)
    return owners


def _is_awaited(owner: TransactionMetadata, partition: TopicPartition, entry: ProducerStateEntry) -> bool:
    """Return whether the coordinator will end this transaction itself. An ongoing transaction with a newer
    epoch is the next one."""
    is_next = owner.state == ONGOING and entry.producer_epoch < owner.producer_epoch
    return not is_next and will_end(owner, partition, entry)


def _history(
    services: Services, coordinator: TransactionCoordinator, wanted: Iterable[OpenTransaction], ids: set[str]
) -> History:
    history = History(wanted)
    for number in sorted({coordinator.partition_of(each) for each in ids}):
        log = services.logs[TopicPartition(TRANSACTION_STATE_TOPIC, number)]
        for record in records_of_log(log):
            decoded = decode_transaction_log(record.key, None)
            if decoded.key is None or decoded.key["transactional_id"] not in ids:
                continue
            metadata = TransactionMetadata.of(decode_transaction_log(record.key, record.value))
            if metadata is not None:
                history.take(metadata)
    return history


def _decision(
    services: Services, history: History, transaction: OpenTransaction, entry: ProducerStateEntry
) -> Decision | None:
    newest, contradicting = history.found(transaction)
    if newest is None:
        return None
    since_ms = (newest if contradicting is None else contradicting).decided_ms
    segments = log_of(services, transaction.partition).segments
    try:
        began = beginning_of(segments, entry.producer_id, entry.current_txn_first_offset, since_ms)
    except (KafkaError, OSError) as error:
        LOG.error("%s: its open transaction cannot be read: %s", transaction.partition, error)
        return Decision(newest, is_clear=False)
    has_one_epoch = began.epochs == {entry.producer_epoch}
    return decide(newest, contradicting, Seen(began.first_timestamp, began.marker_timestamp, has_one_epoch))

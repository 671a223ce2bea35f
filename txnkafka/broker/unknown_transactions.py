"""After a crash: transactions that are open in a partition, behind what was durable before, and that their
coordinator does not know of.

Data and the coordinator's record of it share a flush, and a power cut may leave the data alone; it would hold
the last stable offset for ever. Such a transaction joins the transaction of its producer, as its first batch
would have done. If it may not, it is aborted. The marker has the next epoch, so that a retry of the batch is
refused instead of being taken for a duplicate of what is aborted. While a partition of the coordinator cannot
be read, a transaction without an owner stays as it is: the partition may have decided to commit it.

Until that is durable the recovery points on the disk stay what they were: after a second crash, it is they
that say what has to be looked at.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from txnkafka.broker.writable_marker import WritableMarker
from txnkafka.coordinator import TRANSACTION_STATE_TOPIC
from txnkafka.coordinator.end_txn import EPOCH_BUMP
from txnkafka.coordinator.txn_events import AddPartitions, Answer
from txnkafka.coordinator.txn_image import PREPARED
from txnkafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.broker.broker import Broker
    from txnkafka.broker.transactions import Transactions
    from txnkafka.model import ProducerStateEntry, TopicPartition
    from txnkafka.wire.records import TransactionMetadata

__all__ = ["settle"]

LOG = logging.getLogger("txnkafka.broker")
LARGEST_EPOCH: Final = 32767


def settle(broker: Broker, transactions: Transactions, now_ms: int) -> None:
    """Let the unknown transactions of all logs join the transaction of their producer, or abort them. Then
    the recovery points of the logs may be written."""
    settling = _Settling(broker)
    topic = broker.image.topics.get(TRANSACTION_STATE_TOPIC)
    is_complete = topic is None or len(transactions.coordinator.partitions) == len(topic.partitions)
    owners = {
        metadata.producer_id: metadata
        for state in transactions.coordinator.partitions.values()
        for metadata in state.metadata.values()
    }
    for partition, log in broker.logs.items():
        recovered_from = broker.data.recovered_from.get(partition, 0)
        for entry in log.producers.open_transactions():
            owner = owners.get(entry.producer_id)
            is_known = owner is not None and _is_known(owner, partition, entry)
            if is_known or entry.current_txn_first_offset < recovered_from:
                continue
            settling.left += 1
            if owner is None and not is_complete:
                settling.done(ErrorCode.NOT_COORDINATOR)
                continue
            abort = partial(_abort_unknown, transactions, partition, entry, settling.done)
            if owner is None:
                abort(Answer(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
                continue
            event = AddPartitions(
                owner.transactional_id, entry.producer_id, entry.producer_epoch, frozenset((partition,)),
                owner.client_transaction_version,
            )  # fmt: skip
            transactions.coordinator.handle(event, abort, now_ms)
    settling.done(ErrorCode.NONE)


def _is_known(owner: TransactionMetadata, partition: TopicPartition, entry: ProducerStateEntry) -> bool:
    """Whether the transaction that is open in a partition is that of its transactional id. While that one
    ends, its marker has the next epoch (transaction version 2): what has the marker's own epoch is the
    transaction behind it."""
    if partition not in owner.topic_partitions:
        return False
    if owner.state in PREPARED and owner.client_transaction_version < EPOCH_BUMP:
        return True
    if owner.state in PREPARED:
        return entry.producer_epoch < owner.producer_epoch
    return entry.producer_epoch == owner.producer_epoch


class _Settling:
    """What is not durable yet; one more while ``settle`` looks for it."""

    def __init__(self, broker: Broker) -> None:
        self.left = 1
        self._broker = broker
        self._has_failed = False

    def done(self, error: ErrorCode) -> None:
        """One is durable. After an error it is left to the next start."""
        self.left -= 1
        self._has_failed |= error != ErrorCode.NONE
        if self.left == 0 and not self._has_failed:
            checkpoints, logs = self._broker.data.checkpoints, self._broker.logs
            checkpoints.release()
            self._broker.jobs.add(lambda: checkpoints.work(logs), _log_failure)


def _log_failure(error: Exception | None) -> None:
    if error is not None:
        LOG.error("the recovery points are not written: %s", error)


def _abort_unknown(
    transactions: Transactions,
    partition: TopicPartition,
    entry: ProducerStateEntry,
    done: Callable[[ErrorCode], None],
    answer: Answer,
) -> None:
    """The coordinator has answered; unless it knows the transaction now, abort it in the partition."""
    if answer.error == ErrorCode.NONE:
        done(ErrorCode.NONE)
        return
    LOG.warning(
        "%s: the transaction of producer %d that is open since offset %d is unknown to the coordinator: "
        "aborted", partition, entry.producer_id, entry.current_txn_first_offset,
    )  # fmt: skip
    marker = WritableMarker(
        entry.producer_id, min(entry.producer_epoch + 1, LARGEST_EPOCH), False, (partition,),
        max(entry.coordinator_epoch, 0),
    )  # fmt: skip
    transactions.append_marker(partition, marker, done)

"""``transition``: decides an event of a transactional id. A pure function, without clock, ids or log.

It changes nothing; ``replay`` applies the result once its record is durable. An unused producer id cannot be
computed: where one is needed, the result is ``NeedsProducerId``, and the function is called again with one.
Passing one with every call would waste ids, and an id that is passed but not used could be given to two
producers.

A state PREPARE_* means that markers are being written. Kafka then also has a pending transition, checks it
before anything else (in transaction version 1 after producer id and epoch) and answers
CONCURRENT_TRANSACTIONS; here the result is ``Parked`` instead.

Source: TransactionCoordinator (prepareInitProducerIdTransit, handleAddPartitionsToTransaction,
handleVerifyPartitionsInTransaction, endTransaction, abortTimedOutTransactions), TransactionMetadata,
TransactionStateManager.shouldExpire of Apache Kafka 4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from txnkafka.coordinator.txn.end_txn import abort_from_here, end_txn, other_than
from txnkafka.coordinator.txn.init_producer_id import init_producer_id
from txnkafka.coordinator.txn.txn_events import (
    AddOffsets,
    AddPartitions,
    Answer,
    EndTxn,
    Event,
    Expire,
    InitProducerId,
    MarkersWritten,
    Parked,
    Refused,
    Result,
    Timeout,
    TransactionRecord,
    Transition,
    VerifyPartitions,
)
from txnkafka.coordinator.txn.txn_image import (
    IDLE,
    IDLE_OR_ONGOING,
    NO_TIMEOUT,
    ONGOING,
    PREPARED,
    client_identity,
    completed,
    joined,
    raised,
    record_of,
)
from txnkafka.coordinator.txn.txn_setting import KAFKAS_LIMITS, NOTHING_SEEN, Limits, SeenEpochs, Setting
from txnkafka.error_codes import ErrorCode
from txnkafka.model import NO_PRODUCER_EPOCH
from txnkafka.wire.records import TransactionMetadata

NOT_DUE: Final = Refused(ErrorCode.INVALID_TXN_STATE)


def transition(
    metadata: TransactionMetadata | None,
    event: Event,
    *,
    now_ms: int,
    version: int,
    producer_id: int | None = None,
    limits: Limits = KAFKAS_LIMITS,
    seen: Mapping[int, SeenEpochs] = NOTHING_SEEN,
) -> Result:
    """Decide ``event`` in the state ``metadata`` (None for an unknown id).

    ``version`` is the level of the feature ``transaction.version``, by which the coordinator itself ends a
    transaction. ``producer_id`` is an unused one, after ``NeedsProducerId``. ``Setting`` explains ``seen``.
    """
    rule = RULES[type(event)]
    return rule(metadata, event, Setting(now_ms, version, producer_id, limits, seen))


def add_partitions(
    metadata: TransactionMetadata | None, event: AddPartitions | AddOffsets, setting: Setting
) -> Result:
    """Add partitions to the open transaction, or begin one. An empty list also begins one."""
    if not event.transactional_id:
        return Refused(ErrorCode.INVALID_REQUEST)
    if metadata is None:
        return Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if metadata.state in PREPARED:
        return Parked()
    if error := other_producer(metadata, event.producer_id, event.producer_epoch):
        return Refused(error)
    partitions = event.partitions
    if metadata.state == ONGOING and partitions <= metadata.topic_partitions:
        return Transition(metadata)
    if metadata.state not in IDLE_OR_ONGOING:
        return Refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    version = event.client_transaction_version
    image = joined(metadata, partitions, now_ms=setting.now_ms, client_transaction_version=version)
    return Transition(image, record_of(image))


def verify_partitions(metadata: TransactionMetadata | None, event: VerifyPartitions, _: Setting) -> Result:
    """Return the partitions that are missing in the transaction; changes nothing."""
    if not event.transactional_id:
        return Refused(ErrorCode.INVALID_REQUEST)
    if metadata is None:
        return Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if error := other_producer(metadata, event.producer_id, event.producer_epoch):
        return Refused(error)
    if metadata.state in PREPARED:
        return Parked()
    return Transition(metadata, response=Answer(missing=event.partitions - metadata.topic_partitions))


def other_producer(metadata: TransactionMetadata, producer_id: int, producer_epoch: int) -> ErrorCode | None:
    """Return the error for a request with the id or epoch of another incarnation, else None. A kept
    transaction takes no more partitions: the producer may only end it (KIP-939)."""
    if metadata.next_producer_epoch != NO_PRODUCER_EPOCH:
        return other_than(client_identity(metadata), producer_id, producer_epoch) or NOT_DUE.error
    if producer_id != metadata.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if producer_epoch != metadata.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return None


def time_out(metadata: TransactionMetadata | None, event: Timeout, setting: Setting) -> Result:
    """Abort a transaction that has exceeded its timeout, counted from its first partition. The epoch is
    incremented, so that its producer cannot continue (KAFKA-6119)."""
    if metadata is None or metadata.state != ONGOING:
        return NOT_DUE
    if metadata.transaction_timeout_ms == NO_TIMEOUT:
        return NOT_DUE
    began = metadata.start_timestamp if event.began_by is None else event.began_by
    if began + metadata.transaction_timeout_ms >= setting.now_ms:
        return NOT_DUE
    return abort_from_here(metadata, setting, Answer())


def complete(metadata: TransactionMetadata | None, event: MarkersWritten, setting: Setting) -> Result:
    """Enter COMPLETE_*, once for each PREPARE_*: markers of another transaction of the id are ignored."""
    if metadata is None or metadata.state not in PREPARED:
        return NOT_DUE
    if (event.producer_id, event.producer_epoch) != (metadata.producer_id, metadata.producer_epoch):
        return NOT_DUE
    image = raised(completed(metadata, setting.now_ms), setting.seen)
    return Transition(image, record_of(image))


def expire(metadata: TransactionMetadata | None, event: Expire, setting: Setting) -> Result:
    """Return a tombstone for an id that was idle for ``transactional.id.expiration.ms``; never for an open
    one."""
    if metadata is None or metadata.state not in IDLE:
        return NOT_DUE
    if metadata.last_update_timestamp > setting.now_ms - setting.limits.transactional_id_expiration_ms:
        return NOT_DUE
    return Transition(None, TransactionRecord(event.transactional_id, None))


RULES: Final[dict[type, Callable[[TransactionMetadata | None, Any, Setting], Result]]] = {
    InitProducerId: init_producer_id,
    AddPartitions: add_partitions,
    AddOffsets: add_partitions,
    VerifyPartitions: verify_partitions,
    EndTxn: end_txn,
    Timeout: time_out,
    MarkersWritten: complete,
    Expire: expire,
}

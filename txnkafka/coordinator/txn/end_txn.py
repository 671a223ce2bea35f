"""EndTxn: a client commits or aborts; also the aborts that the coordinator starts by itself.

Transaction version 2 (EndTxn 5) increments the epoch with every transaction. E is the current epoch; a
*retry* has the epoch before it, or is (previous producer id, 32766) after the producer id changed.

| state | commit with E | commit, retry | abort with E | abort, retry |
|---|---|---|---|---|
| Empty | INVALID_TXN_STATE | PRODUCER_FENCED | abort of nothing: E + 1 | PRODUCER_FENCED |
| Ongoing | PrepareCommit, E + 1 | PRODUCER_FENCED | PrepareAbort, E + 1 | PRODUCER_FENCED |
| CompleteCommit | INVALID_TXN_STATE | NONE, current identity | abort of nothing: E + 1 | INVALID_TXN_STATE |
| CompleteAbort | INVALID_TXN_STATE | INVALID_TXN_STATE | abort of nothing: E + 1 | NONE, current identity |

Earlier versions do not increment it: a repeated request has the same epoch, and succeeds if it asks for the
recorded outcome; an abort of nothing does not exist.

A kept transaction (KIP-939) is ended by the producer that has kept it, with that producer's identity; see
``txn_image``.

Source: TransactionCoordinator.endTransaction and endTransactionWithTV1.
"""

from __future__ import annotations

from typing import Final

from txnkafka.coordinator.txn.txn_events import (
    Answer,
    EndTxn,
    NeedsProducerId,
    Parked,
    Refused,
    Result,
    Transition,
)
from txnkafka.coordinator.txn.txn_image import (
    COMPLETE,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    IDLE,
    IDLE_OR_ONGOING,
    LARGEST_EPOCH,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARED,
    client_identity,
    identity_after,
    is_exhausted,
    markers_of,
    prepared,
    prepared_kept,
    record_of,
)
from txnkafka.coordinator.txn.txn_setting import Setting
from txnkafka.error_codes import ErrorCode
from txnkafka.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerIdAndEpoch
from txnkafka.wire.records import TransactionMetadata, TransactionState

EPOCH_BUMP: Final = 2  # the first transaction version in which each EndTxn increments the epoch
WRONG_STATE: Final = Refused(ErrorCode.INVALID_TXN_STATE)
NONE: Final = ErrorCode.NONE
PREPARES: Final = {True: PREPARE_COMMIT, False: PREPARE_ABORT}
COMPLETES: Final = {True: COMPLETE_COMMIT, False: COMPLETE_ABORT}


def end_txn(metadata: TransactionMetadata | None, event: EndTxn, setting: Setting) -> Result:
    """Decide an EndTxn request."""
    if not event.transactional_id:
        return Refused(ErrorCode.INVALID_REQUEST)
    if metadata is None:
        return Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if metadata.next_producer_epoch != NO_PRODUCER_EPOCH:
        return _end_kept(metadata, event, setting)
    rule = _end_and_increment if event.client_transaction_version >= EPOCH_BUMP else _end
    return rule(metadata, event, setting)


def _end(metadata: TransactionMetadata, event: EndTxn, setting: Setting) -> Result:
    """Decide EndTxn of transaction versions 0 and 1."""
    if event.producer_id != metadata.producer_id:
        return Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if event.producer_epoch != metadata.producer_epoch:  # a newer epoch is refused as well (KAFKA-9600)
        return Refused(ErrorCode.PRODUCER_FENCED)
    if metadata.state in PREPARED:
        return Parked()
    if metadata.state == ONGOING:
        image = prepared(
            metadata, PREPARES[event.committed], now_ms=setting.now_ms, client_transaction_version=0
        )
        return _prepare(image, Answer())
    if metadata.state == COMPLETES[event.committed]:
        return Transition(metadata)
    return WRONG_STATE if metadata.state in IDLE else Refused(ErrorCode.UNKNOWN_SERVER_ERROR)


def _end_and_increment(metadata: TransactionMetadata, event: EndTxn, setting: Setting) -> Result:
    """Decide EndTxn of transaction version 2, by the table in the module docstring."""
    if metadata.state in PREPARED:
        return Parked()
    rotated = _is_retry_after_rotation(metadata, event)
    if event.producer_id != metadata.producer_id and not rotated:
        return Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    is_retry = rotated or event.producer_epoch + 1 == metadata.producer_epoch
    may_be_retry = metadata.state in COMPLETE
    if event.producer_epoch != metadata.producer_epoch and not (is_retry and may_be_retry):
        return Refused(ErrorCode.PRODUCER_FENCED)
    if metadata.state not in IDLE_OR_ONGOING:
        return Refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    if is_retry and may_be_retry:
        return _repeated(metadata, event)
    if event.committed and metadata.state != ONGOING:
        return WRONG_STATE
    return _increment(metadata, PREPARES[event.committed], event.client_transaction_version, setting)


def _is_retry_after_rotation(metadata: TransactionMetadata, event: EndTxn) -> bool:
    """Return whether this repeats a request with the last epoch of the previous producer id, whose answer
    was lost."""
    return (
        event.producer_id == metadata.previous_producer_id
        and event.producer_epoch == LARGEST_EPOCH - 1
        and metadata.producer_epoch == 0
    )


def _repeated(metadata: TransactionMetadata, event: EndTxn) -> Result:
    if metadata.state != COMPLETES[event.committed]:
        return WRONG_STATE
    answer = Answer(ErrorCode.NONE, metadata.producer_id, metadata.producer_epoch)
    return Transition(metadata, response=answer)


def _increment(
    metadata: TransactionMetadata, state: TransactionState, client_version: int, setting: Setting
) -> Result:
    """Enter PREPARE_* with the next epoch; with the next producer id if no epoch is left. The answer has
    the identity that the producer has after COMPLETE_*."""
    next_producer_id = NO_PRODUCER_ID
    if is_exhausted(metadata.producer_epoch):
        if state == PREPARE_COMMIT and metadata.producer_epoch == LARGEST_EPOCH:
            return Refused(ErrorCode.UNKNOWN_SERVER_ERROR)  # no producer ever gets this epoch
        if setting.producer_id is None:
            return NeedsProducerId()
        next_producer_id = setting.producer_id
    image = prepared(
        metadata,
        state,
        now_ms=setting.now_ms,
        client_transaction_version=client_version,
        next_producer_id=next_producer_id,
    )
    return _prepare(image, Answer(NONE, *identity_after(image)))


def _end_kept(metadata: TransactionMetadata, event: EndTxn, setting: Setting) -> Result:
    """Decide EndTxn for a kept transaction (KIP-939), which only the newest producer may end.

    Its epoch is incremented here as well, although InitProducerId has incremented it: a delayed repetition of
    this request must not end the producer's next transaction."""
    version = event.client_transaction_version
    increments = version >= EPOCH_BUMP
    if metadata.state in PREPARED and increments:
        return Parked()
    if error := other_than(client_identity(metadata), event.producer_id, event.producer_epoch):
        return Refused(error)
    if metadata.state in PREPARED:
        return Parked()
    image = _prepared_kept(metadata, PREPARES[event.committed], version, setting, increments=increments)
    if isinstance(image, NeedsProducerId):
        return image
    return _prepare(image, Answer(NONE, *identity_after(image)) if increments else Answer())


def _prepared_kept(
    metadata: TransactionMetadata,
    state: TransactionState,
    version: int,
    setting: Setting,
    *,
    increments: bool,
) -> TransactionMetadata | NeedsProducerId:
    identity = client_identity(metadata)
    if increments:
        following = next_identity(identity, setting)
        if following is None:
            return NeedsProducerId()
        identity = following
    now_ms = setting.now_ms
    return prepared_kept(metadata, state, identity, now_ms=now_ms, client_transaction_version=version)


def next_identity(identity: ProducerIdAndEpoch, setting: Setting) -> ProducerIdAndEpoch | None:
    """Return the identity with the next epoch, or with a new producer id after the last epoch; None if that
    must be given first."""
    if not is_exhausted(identity.producer_epoch):
        return ProducerIdAndEpoch(identity.producer_id, identity.producer_epoch + 1)
    return None if setting.producer_id is None else ProducerIdAndEpoch(setting.producer_id, 0)


def other_than(identity: ProducerIdAndEpoch, producer_id: int, producer_epoch: int) -> ErrorCode | None:
    """Return the error for a producer that does not have the identity, else None."""
    if producer_id != identity.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return None if producer_epoch == identity.producer_epoch else ErrorCode.PRODUCER_FENCED


def abort_from_here(metadata: TransactionMetadata, setting: Setting, response: Answer | Parked) -> Result:
    """Abort an open transaction without a request of its producer, and fence the producer.

    This uses up one epoch, however often it is tried, because a record that is not durable changes nothing
    (KAFKA-9666)."""
    if metadata.next_producer_epoch != NO_PRODUCER_EPOCH:
        version = setting.version if setting.version >= EPOCH_BUMP else 0
        kept = _prepared_kept(metadata, PREPARE_ABORT, version, setting, increments=True)
        return kept if isinstance(kept, NeedsProducerId) else _prepare(kept, response)
    if setting.version >= EPOCH_BUMP:
        result = _increment(metadata, PREPARE_ABORT, setting.version, setting)
        if not isinstance(result, Transition) or result.metadata is None:
            return result
        return _prepare(result.metadata, response)
    fenced = metadata._replace(
        producer_epoch=min(metadata.producer_epoch + 1, LARGEST_EPOCH),
        last_producer_epoch=NO_PRODUCER_EPOCH,
    )
    image = prepared(fenced, PREPARE_ABORT, now_ms=setting.now_ms, client_transaction_version=0)
    return _prepare(image, response)


def _prepare(image: TransactionMetadata, response: Answer | Parked) -> Transition:
    return Transition(image, record_of(image), response, (markers_of(image),))

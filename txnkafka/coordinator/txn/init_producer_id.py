"""InitProducerId: gives a producer its id, and an epoch that fences earlier producers of the transactional
id.

| request | current epoch E, last epoch L | result |
|---|---|---|
| names no producer | E | E + 1; L is forgotten, so that no fenced producer can return with it |
| names E | E | E + 1, L := E (KIP-360: the producer continues after an error) |
| names L | E | E once more: a retry whose first answer was lost |
| anything else | E | PRODUCER_FENCED |

With ``keep_prepared_txn`` an open transaction stays as it is, and the producer that may end it gets the epoch
after the last one that was given out (KIP-939). An open transaction is aborted without it.

At epoch 32766 the producer id changes, and epochs begin at 0. If the coordinator's log has lost its end, E is
at least the largest epoch in the partitions (``Setting.seen``).

Source: TransactionCoordinator.prepareInitProducerIdTransit, prepareIncrementProducerEpoch and
prepareProducerIdRotation of TransactionMetadata.
"""

from __future__ import annotations

from typing import Final

from txnkafka.coordinator.txn.end_txn import abort_from_here, next_identity, other_than
from txnkafka.coordinator.txn.txn_events import (
    Answer,
    InitProducerId,
    NeedsProducerId,
    Parked,
    Refused,
    Result,
    Transition,
)
from txnkafka.coordinator.txn.txn_image import (
    IDLE,
    NO_TIMEOUT,
    ONGOING,
    PREPARED,
    client_identity,
    image_of,
    is_exhausted,
    record_of,
)
from txnkafka.coordinator.txn.txn_setting import Limits, Setting
from txnkafka.error_codes import ErrorCode
from txnkafka.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from txnkafka.wire.records import TransactionMetadata, TransactionState

FENCED: Final = Refused(ErrorCode.PRODUCER_FENCED)


def init_producer_id(metadata: TransactionMetadata | None, event: InitProducerId, setting: Setting) -> Result:
    """Decide an InitProducerId request."""
    if error := refusal(event, setting.limits):
        return Refused(error)
    if metadata is None:
        return new_transactional_id(event, setting)
    if metadata.state in PREPARED:
        return Parked()
    if event.is_continuation and is_fenced(metadata, event):
        return FENCED
    if event.keep_prepared_txn and metadata.state == ONGOING:
        return keep(metadata, event, setting)
    if event.is_continuation and not names_this_producer(metadata, event):
        return FENCED
    if metadata.state == ONGOING:
        # No producer gets the epoch of the abort: this request, decided again, increments it once more.
        return abort_from_here(metadata, setting, Parked())
    if metadata.state not in IDLE:
        return Refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    if not event.is_continuation and metadata.producer_id in setting.seen:
        epoch = max(metadata.producer_epoch, setting.seen[metadata.producer_id].largest)
        metadata = metadata._replace(producer_epoch=epoch)
    if is_exhausted(metadata.producer_epoch):
        return next_producer_id(metadata, event, setting)
    return next_epoch(metadata, event, setting)


def refusal(event: InitProducerId, limits: Limits) -> ErrorCode | None:
    """Return the error of an invalid request, which does not depend on the state, in Kafka's order of
    checks."""
    if (event.producer_id == NO_PRODUCER_ID) != (event.producer_epoch == NO_PRODUCER_EPOCH):
        return ErrorCode.INVALID_REQUEST
    if not event.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if event.enable_2pc and not limits.two_phase_commit:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if event.keep_prepared_txn and not limits.two_phase_commit:
        return ErrorCode.UNSUPPORTED_VERSION
    if not event.enable_2pc and not 0 < event.transaction_timeout_ms <= limits.transaction_max_timeout_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return None


def timeout_of(event: InitProducerId) -> int:
    """Return the transaction timeout of the producer in milliseconds."""
    return NO_TIMEOUT if event.enable_2pc else event.transaction_timeout_ms


def keep(metadata: TransactionMetadata, event: InitProducerId, setting: Setting) -> Result:
    """Keep the open transaction for a new producer, which may only end it, and fence earlier ones.

    A transaction without a timeout gets none from a producer with one: its outcome may be decided already.
    """
    held = client_identity(metadata)
    if held.producer_id in setting.seen:
        largest = setting.seen[held.producer_id].largest
        held = held._replace(producer_epoch=max(held.producer_epoch, largest))
    identity = next_identity(held, setting)
    if identity is None:
        return NeedsProducerId()
    image = image_of(
        metadata,
        ONGOING,
        next_producer_id=identity.producer_id,
        next_producer_epoch=identity.producer_epoch,
        transaction_timeout_ms=NO_TIMEOUT if event.enable_2pc else metadata.transaction_timeout_ms,
        last_update_timestamp=setting.now_ms,
    )
    ongoing = metadata.producer_id, metadata.producer_epoch
    return Transition(image, record_of(image), Answer(ErrorCode.NONE, *identity, frozenset(), *ongoing))


def is_fenced(metadata: TransactionMetadata, event: InitProducerId) -> bool:
    """Return whether another producer than the newest one asks while a transaction without a timeout is open:
    Kafka would abort it, although its outcome may be decided."""
    may_be_prepared = metadata.state == ONGOING and (
        metadata.transaction_timeout_ms == NO_TIMEOUT or metadata.next_producer_epoch != NO_PRODUCER_EPOCH
    )
    return may_be_prepared and bool(
        other_than(client_identity(metadata), event.producer_id, event.producer_epoch)
    )


def names_this_producer(metadata: TransactionMetadata, event: InitProducerId) -> bool:
    """Return whether the request names the current producer id, or the previous one after its last epoch."""
    return (
        metadata.producer_epoch == NO_PRODUCER_EPOCH
        or event.producer_id in (metadata.producer_id, metadata.next_producer_id)
        or (event.producer_id == metadata.previous_producer_id and is_exhausted(event.producer_epoch))
    )


def new_transactional_id(event: InitProducerId, setting: Setting) -> Result:
    """Give a new producer id to a new or expired transactional id, whatever producer the request names."""
    if setting.producer_id is None:
        return NeedsProducerId()
    created = TransactionMetadata(
        transactional_id=event.transactional_id,
        producer_id=setting.producer_id,
        previous_producer_id=NO_PRODUCER_ID,
        next_producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        next_producer_epoch=NO_PRODUCER_EPOCH,
        transaction_timeout_ms=timeout_of(event),
        state=TransactionState.EMPTY,
        topic_partitions=frozenset(),
        last_update_timestamp=setting.now_ms,
        start_timestamp=NO_TIMESTAMP,
        client_transaction_version=0,
    )
    return next_epoch(created, event, setting)


def next_producer_id(metadata: TransactionMetadata, event: InitProducerId, setting: Setting) -> Result:
    """Change the producer id after its last epoch. The previous producer may repeat its request."""
    if event.is_continuation and event.producer_epoch != metadata.producer_epoch:
        return Refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    if setting.producer_id is None:
        return NeedsProducerId()
    last = metadata.producer_epoch if event.is_continuation else NO_PRODUCER_EPOCH
    return empty(metadata, event, setting, (setting.producer_id, 0, last))


def next_epoch(metadata: TransactionMetadata, event: InitProducerId, setting: Setting) -> Result:
    """Return the next epoch, by the table in the module docstring."""
    current, last = metadata.producer_epoch, metadata.last_producer_epoch
    if not event.is_continuation:
        epochs = (current + 1, NO_PRODUCER_EPOCH)
    elif current in (NO_PRODUCER_EPOCH, event.producer_epoch):
        epochs = (current + 1, current)
    elif event.producer_epoch == last:
        epochs = (current, last)
    else:
        return FENCED
    return empty(metadata, event, setting, (metadata.producer_id, *epochs))


def empty(
    metadata: TransactionMetadata, event: InitProducerId, setting: Setting, identity: tuple[int, int, int]
) -> Transition:
    """Return the transition to Empty with a producer id, an epoch and a last epoch; the previous outcome
    is forgotten."""
    producer_id, producer_epoch, last_producer_epoch = identity
    image = image_of(
        metadata,
        TransactionState.EMPTY,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        last_producer_epoch=last_producer_epoch,
        transaction_timeout_ms=timeout_of(event),
        topic_partitions=frozenset(),
        start_timestamp=NO_TIMESTAMP,
        last_update_timestamp=setting.now_ms,
    )
    return Transition(image, record_of(image), Answer(ErrorCode.NONE, producer_id, producer_epoch))

"""The image of a transactional id's next state, and which state may follow which.

Source: TransactionState.validPreviousStates, prepareTransitionTo and prepareAbortOrCommit of
TransactionMetadata.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from txnkafka.coordinator.txn_events import TransactionRecord, WriteMarkers
from txnkafka.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerIdAndEpoch
from txnkafka.wire.records import TransactionMetadata, TransactionState

__all__ = [
    "IDLE",
    "LARGEST_EPOCH",
    "NO_TIMEOUT",
    "PREPARED",
    "VALID_PREVIOUS_STATES",
    "completed",
    "identity_after",
    "image_of",
    "is_exhausted",
    "markers_of",
    "prepared",
    "record_of",
]

S = TransactionState
LARGEST_EPOCH: Final = 2**15 - 1
NO_TIMEOUT: Final = 2**31 - 1  # of a transaction with two-phase commit (KIP-939)

IDLE: Final = frozenset({S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT})
PREPARED: Final = frozenset({S.PREPARE_COMMIT, S.PREPARE_ABORT})

VALID_PREVIOUS_STATES: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    S.EMPTY: IDLE,
    S.ONGOING: IDLE | {S.ONGOING},
    S.PREPARE_COMMIT: frozenset({S.ONGOING}),
    S.PREPARE_ABORT: IDLE | {S.ONGOING},  # from an idle state: an empty abort, transaction version 2 only
    S.COMPLETE_COMMIT: frozenset({S.PREPARE_COMMIT}),
    S.COMPLETE_ABORT: frozenset({S.PREPARE_ABORT}),
    S.DEAD: IDLE,  # a tombstone, never a state in the log
    S.PREPARE_EPOCH_FENCE: frozenset({S.ONGOING}),  # in Kafka a flag between two steps; here they are one
}


def is_exhausted(producer_epoch: int) -> bool:
    """Whether no producer may get a greater epoch; the largest one is kept to fence with."""
    return producer_epoch >= LARGEST_EPOCH - 1


def image_of(metadata: TransactionMetadata, state: TransactionState, **changes: Any) -> TransactionMetadata:
    """The next state; the previous producer id is the one that was held before, as in each of Kafka's images.
    Raises ValueError for a state that may not follow: a bug."""
    if metadata.state not in VALID_PREVIOUS_STATES[state]:
        raise ValueError(f"{metadata.transactional_id!r}: {metadata.state.label} to {state.label}")
    return replace(metadata, state=state, previous_producer_id=metadata.producer_id, **changes)


def prepared(
    metadata: TransactionMetadata,
    state: TransactionState,
    *,
    now_ms: int,
    client_transaction_version: int,
    next_producer_id: int = NO_PRODUCER_ID,
) -> TransactionMetadata:
    """The image of PREPARE_COMMIT or PREPARE_ABORT. Transaction version 2 increments the epoch (KIP-890), so
    that the marker fences what comes late; an epoch that is already the largest one stays."""
    changes: dict[str, Any] = {
        "next_producer_id": next_producer_id,
        "last_update_timestamp": now_ms,
        "client_transaction_version": client_transaction_version,
    }
    if client_transaction_version >= 2:
        changes["producer_epoch"] = min(metadata.producer_epoch + 1, LARGEST_EPOCH)
        changes["last_producer_epoch"] = metadata.producer_epoch
    if metadata.state in IDLE:
        changes["start_timestamp"] = now_ms
    return image_of(metadata, state, **changes)


def completed(metadata: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """The image of COMPLETE_COMMIT or COMPLETE_ABORT, with the next producer id where PREPARE_* named one."""
    producer_id, producer_epoch = identity_after(metadata)
    return image_of(
        metadata,
        S.COMPLETE_COMMIT if metadata.state == S.PREPARE_COMMIT else S.COMPLETE_ABORT,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        next_producer_id=NO_PRODUCER_ID,
        next_producer_epoch=NO_PRODUCER_EPOCH,
        topic_partitions=frozenset(),
        last_update_timestamp=now_ms,
    )


def identity_after(metadata: TransactionMetadata) -> ProducerIdAndEpoch:
    """The producer id and epoch that COMPLETE_* leaves behind a state PREPARE_*."""
    if metadata.client_transaction_version >= 2 and metadata.next_producer_id != NO_PRODUCER_ID:
        return ProducerIdAndEpoch(metadata.next_producer_id, 0)
    return ProducerIdAndEpoch(metadata.producer_id, metadata.producer_epoch)


def markers_of(metadata: TransactionMetadata) -> WriteMarkers:
    """The markers that a state PREPARE_COMMIT or PREPARE_ABORT asks for, also after a restart."""
    return WriteMarkers(
        metadata.transactional_id,
        metadata.producer_id,
        metadata.producer_epoch,
        metadata.state == S.PREPARE_COMMIT,
        metadata.topic_partitions,
        metadata.client_transaction_version,
    )


def record_of(metadata: TransactionMetadata) -> TransactionRecord:
    """The record that makes the state durable."""
    return TransactionRecord(metadata.transactional_id, metadata)

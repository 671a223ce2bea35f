"""The image of a transactional id's next state, and the valid transitions between states.

InitProducerId may keep an open transaction (KIP-939). The id then has two identities: producer id and epoch
are the transaction's, until its end; the next producer id and epoch are the producer's that will end it.

Source: TransactionState.validPreviousStates, prepareTransitionTo and prepareAbortOrCommit of
TransactionMetadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from txnkafka.coordinator.txn.txn_events import TransactionRecord, WriteMarkers
from txnkafka.coordinator.txn.txn_setting import SeenEpochs
from txnkafka.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerIdAndEpoch, TopicPartition
from txnkafka.wire.records import TransactionMetadata, TransactionState

S = TransactionState
LARGEST_EPOCH: Final = 2**15 - 1
NO_TIMEOUT: Final = 2**31 - 1  # of a producer with two-phase commit (KIP-939)

# constants, because looking up an enum member by its class costs more than a rule that compares it
ONGOING: Final = S.ONGOING
PREPARE_COMMIT: Final = S.PREPARE_COMMIT
PREPARE_ABORT: Final = S.PREPARE_ABORT
COMPLETE_COMMIT: Final = S.COMPLETE_COMMIT
COMPLETE_ABORT: Final = S.COMPLETE_ABORT

COMPLETE: Final = frozenset({COMPLETE_COMMIT, COMPLETE_ABORT})
IDLE: Final = COMPLETE | {S.EMPTY}
IDLE_OR_ONGOING: Final = IDLE | {ONGOING}
PREPARED: Final = frozenset({PREPARE_COMMIT, PREPARE_ABORT})

VALID_PREVIOUS_STATES: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    S.EMPTY: IDLE,
    S.ONGOING: IDLE_OR_ONGOING,
    S.PREPARE_COMMIT: frozenset({S.ONGOING}),
    S.PREPARE_ABORT: IDLE_OR_ONGOING,  # from an idle state: an empty abort, transaction version 2 only
    S.COMPLETE_COMMIT: frozenset({S.PREPARE_COMMIT}),
    S.COMPLETE_ABORT: frozenset({S.PREPARE_ABORT}),
    S.DEAD: IDLE,  # a tombstone, never a state in the log
    S.PREPARE_EPOCH_FENCE: frozenset({S.ONGOING}),  # in Kafka a flag between two steps; here they are one
}


def is_exhausted(producer_epoch: int) -> bool:
    """Return whether no producer may get a greater epoch; the largest one is reserved for fencing."""
    return producer_epoch >= LARGEST_EPOCH - 1


def may_not_follow(metadata: TransactionMetadata, state: TransactionState) -> ValueError:
    """Return the error for an invalid transition, which is a bug."""
    return ValueError(f"{metadata.transactional_id!r}: {metadata.state.label} to {state.label}")


def image_of(metadata: TransactionMetadata, state: TransactionState, **changes: Any) -> TransactionMetadata:
    """Return the next state; the previous producer id is the current one, as in each of Kafka's images.

    Raises ValueError for an invalid transition, as all images do. The three images of every transaction,
    below, are built field by field, which takes half the time."""
    if metadata.state not in VALID_PREVIOUS_STATES[state]:
        raise may_not_follow(metadata, state)
    return metadata._replace(state=state, previous_producer_id=metadata.producer_id, **changes)


def joined(
    metadata: TransactionMetadata,
    partitions: frozenset[TopicPartition],
    *,
    now_ms: int,
    client_transaction_version: int,
) -> TransactionMetadata:
    """Return the image of ONGOING with more partitions; the first ones begin the transaction."""
    (
        transactional_id, producer_id, _, next_producer_id, epoch, next_epoch, timeout, before, known, _,
        started, _, last_epoch,
    ) = metadata  # fmt: skip
    if before not in IDLE_OR_ONGOING:
        raise may_not_follow(metadata, ONGOING)
    return TransactionMetadata(
        transactional_id, producer_id, producer_id, next_producer_id, epoch, next_epoch, timeout, ONGOING,
        known | partitions if known else partitions, now_ms, now_ms if before in IDLE else started,
        client_transaction_version, last_epoch,
    )  # fmt: skip


def prepared(
    metadata: TransactionMetadata,
    state: TransactionState,
    *,
    now_ms: int,
    client_transaction_version: int,
    next_producer_id: int = NO_PRODUCER_ID,
) -> TransactionMetadata:
    """Return the image of PREPARE_COMMIT or PREPARE_ABORT.

    Transaction version 2 increments the epoch (KIP-890), so that the marker fences late data; the largest
    epoch stays."""
    (
        transactional_id, producer_id, _, _, epoch, next_epoch, timeout, before, partitions, _, started, _,
        last_epoch,
    ) = metadata  # fmt: skip
    if before not in VALID_PREVIOUS_STATES[state]:
        raise may_not_follow(metadata, state)
    if client_transaction_version >= 2:
        epoch, last_epoch = min(epoch + 1, LARGEST_EPOCH), epoch
    return TransactionMetadata(
        transactional_id, producer_id, producer_id, next_producer_id, epoch, next_epoch, timeout, state,
        partitions, now_ms, now_ms if before in IDLE else started, client_transaction_version, last_epoch,
    )  # fmt: skip


def prepared_kept(
    metadata: TransactionMetadata,
    state: TransactionState,
    identity: ProducerIdAndEpoch,
    *,
    now_ms: int,
    client_transaction_version: int,
) -> TransactionMetadata:
    """Return the image of PREPARE_COMMIT or PREPARE_ABORT of a kept transaction. ``identity`` is the
    producer's after the end; the markers have its epoch, as in each transaction of version 2. So Apache
    Kafka completes it as well. Only another producer id stays apart from the transaction until the end."""
    ending_id, ending_epoch = client_identity(metadata)
    next_id, next_epoch = identity
    epoch = min(metadata.producer_epoch + 1, LARGEST_EPOCH)
    if next_id == metadata.producer_id:
        epoch, next_id, next_epoch = next_epoch, NO_PRODUCER_ID, NO_PRODUCER_EPOCH
    image = image_of(
        metadata,
        state,
        next_producer_id=next_id,
        next_producer_epoch=next_epoch,
        producer_epoch=epoch,
        last_producer_epoch=ending_epoch,
        last_update_timestamp=now_ms,
        client_transaction_version=client_transaction_version,
    )
    return image._replace(previous_producer_id=ending_id)


def client_identity(metadata: TransactionMetadata) -> ProducerIdAndEpoch:
    """Return the identity of the id's newest producer, which the transaction does not have if it was kept."""
    if metadata.next_producer_epoch != NO_PRODUCER_EPOCH:
        return ProducerIdAndEpoch(metadata.next_producer_id, metadata.next_producer_epoch)
    return ProducerIdAndEpoch(metadata.producer_id, metadata.producer_epoch)


def completed(metadata: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """Return the image of COMPLETE_COMMIT or COMPLETE_ABORT, with the next producer id if PREPARE_* named
    one."""
    (
        transactional_id, held, ending, _, _, next_epoch, timeout, before, _, _, started, version, last_epoch,
    ) = metadata  # fmt: skip
    if next_epoch != NO_PRODUCER_EPOCH:
        held = ending
    state = COMPLETE_COMMIT if before == PREPARE_COMMIT else COMPLETE_ABORT
    if before not in PREPARED:
        raise may_not_follow(metadata, state)
    producer_id, epoch = identity_after(metadata)
    return TransactionMetadata(
        transactional_id, producer_id, held, NO_PRODUCER_ID, epoch, NO_PRODUCER_EPOCH, timeout, state,
        frozenset(), now_ms, started, version, last_epoch,
    )  # fmt: skip


def identity_after(metadata: TransactionMetadata) -> ProducerIdAndEpoch:
    """Return the producer id and epoch that COMPLETE_* has after a state PREPARE_*."""
    if metadata.next_producer_epoch != NO_PRODUCER_EPOCH:
        return client_identity(metadata)
    if metadata.client_transaction_version >= 2 and metadata.next_producer_id != NO_PRODUCER_ID:
        return ProducerIdAndEpoch(metadata.next_producer_id, 0)
    return ProducerIdAndEpoch(metadata.producer_id, metadata.producer_epoch)


def raised(metadata: TransactionMetadata, seen: Mapping[int, SeenEpochs]) -> TransactionMetadata:
    """Return the image with an epoch that fences all epochs of the producer id's data in partitions.

    It is also above the next epoch, which a producer of transaction version 2 may have. The coordinator's log
    has lost the records of the transactions. The last known outcome is forgotten, so that a commit of a
    lost transaction does not count as a repeated request for it."""
    epochs = seen.get(metadata.producer_id)
    if epochs is None or epochs.of_data <= metadata.producer_epoch:
        return metadata
    return metadata._replace(
        producer_epoch=min(epochs.of_data + 2, LARGEST_EPOCH),
        last_producer_epoch=NO_PRODUCER_EPOCH,
        next_producer_id=NO_PRODUCER_ID,
        next_producer_epoch=NO_PRODUCER_EPOCH,
        state=S.EMPTY if metadata.state in IDLE else metadata.state,
    )


def markers_of(metadata: TransactionMetadata) -> WriteMarkers:
    """Return the markers for a state PREPARE_COMMIT or PREPARE_ABORT, also after a restart."""
    return WriteMarkers(
        metadata.transactional_id,
        metadata.producer_id,
        metadata.producer_epoch,
        metadata.state == PREPARE_COMMIT,
        metadata.topic_partitions,
        metadata.client_transaction_version,
    )


def record_of(metadata: TransactionMetadata) -> TransactionRecord:
    """Return the record that makes the state durable."""
    return TransactionRecord(metadata.transactional_id, metadata)

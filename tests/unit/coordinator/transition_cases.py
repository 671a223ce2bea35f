"""Every state, every event: what ``transition`` is asked for its table and for the diagram of the states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from txnkafka.coordinator.txn.txn_events import (
    AddOffsets,
    AddPartitions,
    EndTxn,
    Event,
    Expire,
    InitProducerId,
    MarkersWritten,
    NeedsProducerId,
    Refused,
    Result,
    Timeout,
    Transition,
    VerifyPartitions,
)
from txnkafka.coordinator.txn.txn_state import transition
from txnkafka.model import TopicPartition
from txnkafka.wire.records import TransactionMetadata, TransactionState

S = TransactionState
ID, PRODUCER, OLD_PRODUCER, NEW_PRODUCER, FOREIGN = "tx", 7, 6, 8, 99
EPOCH, LAST_EPOCH, EXHAUSTED, LARGEST = 5, 4, 32766, 32767
TIMEOUT_MS, STARTED, UPDATED, NOW = 60_000, 1_000_000, 1_000_500, 1_002_000
LATE, MUCH_LATER = STARTED + TIMEOUT_MS + 1, UPDATED + 7 * 86_400_000
INSIDE, ANOTHER = TopicPartition("t", 0), TopicPartition("t", 1)
OFFSETS = TopicPartition("__consumer_offsets", 3)
LEVELS = (0, 1, 2)


class Epochs(NamedTuple):
    """How far the producer of a state has come."""

    title: str
    producer_epoch: int
    last_producer_epoch: int
    previous_producer_id: int
    states: tuple[TransactionState, ...]
    next_producer_id: int = -1
    next_producer_epoch: int = -1


ORDINARY = Epochs("producer 7, epoch 5, last epoch 4", EPOCH, LAST_EPOCH, PRODUCER, tuple(S))
ALL_EPOCHS = (
    ORDINARY,
    Epochs("producer 7, epoch 32766, last epoch 32765", EXHAUSTED, EXHAUSTED - 1, PRODUCER, tuple(S)),
    Epochs(
        "producer 7, epoch 0, last epoch 32766; producer 6 before it",
        0,
        EXHAUSTED,
        OLD_PRODUCER,
        (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT),
    ),
    Epochs("producer 7, epoch 32767, last epoch 32766", LARGEST, EXHAUSTED, PRODUCER, tuple(S)),
    Epochs(
        "producer 7, epoch 32767, last epoch 32766; producer 10 is next",
        LARGEST,
        EXHAUSTED,
        PRODUCER,
        (S.PREPARE_COMMIT, S.PREPARE_ABORT),
        10,
    ),
    Epochs(
        "producer 7, epoch 5, last epoch 4; kept by producer 7, epoch 9 (KIP-939)",
        EPOCH,
        LAST_EPOCH,
        PRODUCER,
        (S.ONGOING,),
        PRODUCER,
        9,
    ),
    Epochs(
        "producer 7, epoch 32767, last epoch 3; kept by producer 10, whose next epoch is 4 (KIP-939)",
        LARGEST,
        3,
        10,
        (S.PREPARE_COMMIT, S.PREPARE_ABORT),
        10,
        4,
    ),
)


def state_of(state: TransactionState, epochs: Epochs = ORDINARY) -> TransactionMetadata:
    """The transactional id in this state."""
    has_partitions = state in (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT, S.PREPARE_EPOCH_FENCE)
    return TransactionMetadata(
        transactional_id=ID,
        producer_id=PRODUCER,
        previous_producer_id=epochs.previous_producer_id,
        next_producer_id=epochs.next_producer_id,
        producer_epoch=epochs.producer_epoch,
        next_producer_epoch=epochs.next_producer_epoch,
        transaction_timeout_ms=TIMEOUT_MS,
        state=state,
        topic_partitions=frozenset([INSIDE]) if has_partitions else frozenset(),
        last_update_timestamp=UPDATED,
        start_timestamp=-1 if state == S.EMPTY else STARTED,
        client_transaction_version=2,
        last_producer_epoch=epochs.last_producer_epoch,
    )


class Case(NamedTuple):
    """An event under a title, at a time."""

    title: str
    event: Event
    now_ms: int = NOW


def identities(epochs: Epochs) -> Iterator[tuple[str, int, int]]:
    """Producer ids and epochs that a request may come with."""
    epoch = epochs.producer_epoch
    yield "epoch E", PRODUCER, epoch
    yield "epoch E-1", PRODUCER, epoch - 1
    yield "epoch E+1", PRODUCER, min(epoch + 1, LARGEST)
    yield "another producer", FOREIGN, epoch
    if epochs.next_producer_epoch != -1:
        yield "next producer", epochs.next_producer_id, epochs.next_producer_epoch
    if epochs.previous_producer_id == OLD_PRODUCER:
        yield "producer before, 32766", OLD_PRODUCER, EXHAUSTED
        yield "producer before, 32765", OLD_PRODUCER, EXHAUSTED - 1


def cases(epochs: Epochs) -> Iterator[Case]:
    """All events, from the producer's point of view first."""
    yield Case("InitProducerId", InitProducerId(ID, 30_000))
    for name, producer_id, epoch in identities(epochs):
        yield Case(f"InitProducerId, {name}", InitProducerId(ID, 30_000, producer_id, max(epoch, 0)))
    if epochs.last_producer_epoch != epochs.producer_epoch - 1:
        last = epochs.last_producer_epoch
        yield Case("InitProducerId, last epoch", InitProducerId(ID, 30_000, PRODUCER, last))
    for name, producer_id, epoch in identities(epochs):
        named = (ID, producer_id, epoch)
        yield Case(f"AddPartitions t-1, {name}", AddPartitions(*named, frozenset([ANOTHER])))
        yield Case(
            f"VerifyPartitions t-0 t-1, {name}", VerifyPartitions(*named, frozenset([INSIDE, ANOTHER]))
        )
        for version in (0, 2):
            for committed in (True, False):
                verb = "commit" if committed else "abort"
                yield Case(f"EndTxn {version}, {verb}, {name}", EndTxn(*named, committed, version))
    mine = (ID, PRODUCER, epochs.producer_epoch)
    yield Case("AddPartitions t-0, epoch E", AddPartitions(*mine, frozenset([INSIDE])))
    yield Case("AddPartitions of none, epoch E", AddPartitions(*mine, frozenset()))
    yield Case("AddPartitions t-1 by its leader, epoch E", AddPartitions(*mine, frozenset([ANOTHER]), 2))
    yield Case("AddOffsets, epoch E", AddOffsets(*mine, OFFSETS))
    yield Case("Timeout, not yet", Timeout(ID), STARTED + TIMEOUT_MS)
    yield Case("Timeout", Timeout(ID), LATE)
    yield Case("MarkersWritten", MarkersWritten(*mine))
    yield Case("MarkersWritten, epoch E-1", MarkersWritten(ID, PRODUCER, epochs.producer_epoch - 1))
    yield Case("Expire, not yet", Expire(ID), MUCH_LATER - 1)
    yield Case("Expire", Expire(ID), MUCH_LATER)


REFUSED_ANYHOW = (
    Case("empty transactional id", InitProducerId("", 30_000)),
    Case("producer id without epoch", InitProducerId(ID, 30_000, PRODUCER)),
    Case("epoch without producer id", InitProducerId(ID, 30_000, -1, EPOCH)),
    Case("timeout 0", InitProducerId(ID, 0)),
    Case("timeout -1", InitProducerId(ID, -1)),
    Case("timeout above the maximum", InitProducerId(ID, 900_001)),
    Case("two-phase commit", InitProducerId(ID, 30_000, enable_2pc=True)),
    Case("kept prepared", InitProducerId(ID, 30_000, keep_prepared_txn=True)),
    Case("empty transactional id", AddPartitions("", PRODUCER, EPOCH, frozenset([ANOTHER]))),
    Case("empty transactional id", AddOffsets("", PRODUCER, EPOCH, OFFSETS)),
    Case("empty transactional id", VerifyPartitions("", PRODUCER, EPOCH, frozenset([ANOTHER]))),
    Case("empty transactional id", EndTxn("", PRODUCER, EPOCH, True, 0)),
    Case("empty transactional id", EndTxn("", PRODUCER, EPOCH, True, 2)),
)


def asked(metadata: TransactionMetadata | None, case: Case, level: int) -> tuple[Result, bool]:
    """The result, and whether it took a new producer id."""
    result = transition(metadata, case.event, now_ms=case.now_ms, version=level)
    if not isinstance(result, NeedsProducerId):
        return result, False
    return transition(metadata, case.event, now_ms=case.now_ms, version=level, producer_id=NEW_PRODUCER), True


def shown(metadata: TransactionMetadata | None, case: Case, level: int) -> str:
    """What becomes of the state, as a line for people."""
    result, took_id = asked(metadata, case, level)
    if isinstance(result, Refused):
        return f"refused: {result.error.name}"
    if not isinstance(result, Transition):
        return "parked"
    parts = [_image(metadata, result, case)]
    if took_id:
        parts.append("takes a new producer id")
    for effect in result.effects:
        kind = "COMMIT" if effect.committed else "ABORT"
        partitions = " ".join(map(str, sorted(effect.partitions))) or "no partition"
        identity = f"({effect.producer_id}, {effect.producer_epoch})"
        parts.append(f"markers {kind} {identity} of version {effect.transaction_version} to {partitions}")
    return "; ".join([*parts, _response(result)])


def _response(result: Transition) -> str:
    answer = result.response
    if not hasattr(answer, "error"):
        return "the request is parked"
    told = f"answers {answer.error.name}"
    if answer.producer_id != -1:
        told += f" ({answer.producer_id}, {answer.producer_epoch})"
    if answer.missing:
        told += f", not in it: {' '.join(map(str, sorted(answer.missing)))}"
    return told


def _image(before: TransactionMetadata | None, result: Transition, case: Case) -> str:
    after = result.metadata
    if result.record is None:
        assert after == before
        return "nothing is written"
    assert result.record.metadata == after
    if after is None:
        return "tombstone"
    assert after.last_update_timestamp == case.now_ms
    if before is None:
        before = after._replace(producer_id=-1, producer_epoch=-1)
    changes = [f"-> {after.state.label}"]
    changes += [f"{word} {value}" for word, value in _changes(before, after, case.now_ms)]
    return ", ".join(changes)


def _changes(
    before: TransactionMetadata, after: TransactionMetadata, now_ms: int
) -> Iterator[tuple[str, str]]:
    times = {-1: "none", now_ms: "now"}
    for word, name in (
        ("producer", "producer_id"),
        ("epoch", "producer_epoch"),
        ("last", "last_producer_epoch"),
        ("next", "next_producer_id"),
        ("next epoch", "next_producer_epoch"),
        ("timeout", "transaction_timeout_ms"),
        ("start", "start_timestamp"),
        ("client version", "client_transaction_version"),
    ):
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            yield word, times.get(new, str(new)) if word == "start" else str(new)
    if after.previous_producer_id != after.producer_id:
        yield "previous", str(after.previous_producer_id)
    if before.topic_partitions != after.topic_partitions:
        yield "partitions", " ".join(map(str, sorted(after.topic_partitions))) or "none"

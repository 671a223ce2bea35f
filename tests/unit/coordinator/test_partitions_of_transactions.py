"""AddPartitionsToTxn, AddOffsetsToTxn and verification: the cases of Kafka's TransactionCoordinatorTest."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.transition_cases import (
    ANOTHER,
    EPOCH,
    FOREIGN,
    ID,
    INSIDE,
    NOW,
    OFFSETS,
    PRODUCER,
    STARTED,
    state_of,
)
from tests.unit.coordinator.world import T0, T1, World
from txnkafka.coordinator.txn.txn_events import (
    AddOffsets,
    AddPartitions,
    Answer,
    Event,
    Parked,
    Refused,
    Result,
    Transition,
    VerifyPartitions,
)
from txnkafka.coordinator.txn.txn_state import transition
from txnkafka.error_codes import ErrorCode
from txnkafka.wire.records import TransactionMetadata, TransactionState

S = TransactionState
IDLE = (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT)
BOTH = frozenset([INSIDE, ANOTHER])


def asked(metadata: TransactionMetadata | None, event: Event) -> Result:
    return transition(metadata, event, now_ms=NOW, version=2)


def events(tid: str = ID, producer_id: int = PRODUCER, epoch: int = EPOCH) -> tuple[Event, ...]:
    return (
        AddPartitions(tid, producer_id, epoch, BOTH),
        AddPartitions(tid, producer_id, epoch, BOTH, 2),
        AddOffsets(tid, producer_id, epoch, OFFSETS),
        VerifyPartitions(tid, producer_id, epoch, BOTH),
    )


def test_who_may_not_add() -> None:
    ongoing = state_of(S.ONGOING)
    for event in events(tid=""):
        assert asked(ongoing, event) == Refused(ErrorCode.INVALID_REQUEST)
    for event in events():
        assert asked(None, event) == Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    for event in events(producer_id=FOREIGN):
        assert asked(ongoing, event) == Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    for epoch in (EPOCH - 1, EPOCH + 1):
        for event in events(epoch=epoch):
            assert asked(ongoing, event) == Refused(ErrorCode.PRODUCER_FENCED)


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_while_the_markers_are_written_all_wait_even_with_another_producer(state: S) -> None:
    for event in (*events()[:3], *events(producer_id=FOREIGN)[:3], *events(epoch=0)[:3]):
        assert asked(state_of(state), event) == Parked()


def test_partitions_join_and_the_start_stays() -> None:
    result = asked(state_of(S.ONGOING), events()[0])
    assert isinstance(result, Transition)
    assert result.metadata is not None
    assert result.metadata.topic_partitions == BOTH
    assert result.metadata.start_timestamp == STARTED
    assert result.metadata.last_update_timestamp == NOW


def test_known_partitions_are_not_logged() -> None:
    ongoing = state_of(S.ONGOING)
    event = AddPartitions(ID, PRODUCER, EPOCH, frozenset([INSIDE]))
    assert asked(ongoing, event) == Transition(ongoing, response=Answer())


@pytest.mark.parametrize("state", IDLE)
def test_the_first_partition_starts_the_transaction(state: S) -> None:
    for event, client_version in zip(events()[:3], (0, 2, 0), strict=True):
        result = asked(state_of(state), event)
        assert isinstance(result, Transition)
        metadata = result.metadata
        assert metadata is not None
        assert (metadata.state, metadata.start_timestamp) == (S.ONGOING, NOW)
        assert metadata.client_transaction_version == client_version


def test_verification_changes_nothing() -> None:
    ongoing = state_of(S.ONGOING)
    result = asked(ongoing, events()[3])
    assert result == Transition(ongoing, response=Answer(missing=frozenset([ANOTHER])))


def test_verification_while_the_markers_are_written() -> None:
    for state in (S.PREPARE_COMMIT, S.PREPARE_ABORT):
        metadata = state_of(state)
        assert asked(metadata, events()[3]) == Parked()
        mapping = Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        assert asked(metadata, events(producer_id=FOREIGN)[3]) == mapping
        assert asked(metadata, events(epoch=EPOCH - 1)[3]) == Refused(ErrorCode.PRODUCER_FENCED)


def test_the_new_producer_may_come_before_the_rotation_is_complete() -> None:
    """The answer to EndTxn names the new producer id while the markers of the old one are on their way."""
    world = World(first_producer_id=5)
    world.init()
    states = world.coordinator.partitions[world.coordinator.partition_of("tx")].metadata
    states["tx"] = states["tx"]._replace(producer_epoch=32766)
    last = Answer(ErrorCode.NONE, 5, 32766)
    world.begin(last, T0)
    ended = world.send(world.end(last, True))
    for log in world.host.state_logs:
        log.flush()
    assert ended == [Answer(ErrorCode.NONE, 6, 0)]
    following = world.send(AddPartitions("tx", 6, 0, frozenset([T1]), 2))
    assert following == []
    world.host.settle()
    assert following == [Answer()]
    assert (world.state().state, world.state().producer_id) == (S.ONGOING, 6)


def test_an_empty_list_opens_a_transaction() -> None:
    world = World()
    producer = world.init()
    assert world.error(AddPartitions("tx", *identity(producer), frozenset())) == ErrorCode.NONE
    assert (world.state().state, world.state().topic_partitions) == (S.ONGOING, frozenset())
    assert world.error(world.end(producer, True)) == ErrorCode.NONE
    assert world.state().state == S.COMPLETE_COMMIT
    assert not world.host.written


def identity(answer: Answer) -> tuple[int, int]:
    return answer.producer_id, answer.producer_epoch

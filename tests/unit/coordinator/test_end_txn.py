"""EndTxn: the cases of Kafka's TransactionCoordinatorTest that a coordinator alone can fulfil."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.transition_cases import EPOCH, FOREIGN, ID, NOW, PRODUCER, state_of
from tests.unit.coordinator.world import T0, T1, World
from txnkafka.coordinator.txn.txn_events import (
    AddPartitions,
    Answer,
    EndTxn,
    InitProducerId,
    NeedsProducerId,
    Parked,
    Refused,
    Result,
    Transition,
)
from txnkafka.coordinator.txn.txn_state import transition
from txnkafka.error_codes import ErrorCode
from txnkafka.wire.records import TransactionMetadata, TransactionState

S = TransactionState
NOTHING_TOLD = Answer()
WRONG_STATE, FENCED = Refused(ErrorCode.INVALID_TXN_STATE), Refused(ErrorCode.PRODUCER_FENCED)
MAPPING = Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)


def asked(
    metadata: TransactionMetadata | None,
    committed: bool,
    version: int,
    epoch: int = EPOCH,
    *,
    producer: int = PRODUCER,
) -> Result:
    return transition(metadata, EndTxn(ID, producer, epoch, committed, version), now_ms=NOW, version=2)


def step(result: Result) -> tuple[S, int, Answer | Parked]:
    """State and epoch behind it, and the answer."""
    assert isinstance(result, Transition)
    assert result.metadata is not None
    return result.metadata.state, result.metadata.producer_epoch, result.response


@pytest.mark.parametrize("version", [0, 2])
def test_unknown_ids(version: int) -> None:
    assert asked(None, True, version) == MAPPING
    assert asked(state_of(S.ONGOING), True, version, producer=FOREIGN) == MAPPING
    event = EndTxn("", PRODUCER, EPOCH, True, version)
    assert transition(None, event, now_ms=NOW, version=2) == Refused(ErrorCode.INVALID_REQUEST)


def test_version_1_other_epochs_are_fenced() -> None:
    for state in S:
        for epoch in (EPOCH - 1, EPOCH + 1):
            assert asked(state_of(state), True, 0, epoch) == FENCED


def test_version_1_ends_at_the_same_epoch() -> None:
    ongoing = state_of(S.ONGOING)
    assert step(asked(ongoing, True, 0)) == (S.PREPARE_COMMIT, EPOCH, NOTHING_TOLD)
    assert step(asked(ongoing, False, 0)) == (S.PREPARE_ABORT, EPOCH, NOTHING_TOLD)


@pytest.mark.parametrize(
    ("state", "committed", "expected"),
    [
        (S.COMPLETE_COMMIT, True, None),
        (S.COMPLETE_COMMIT, False, WRONG_STATE),
        (S.COMPLETE_ABORT, False, None),
        (S.COMPLETE_ABORT, True, WRONG_STATE),
        (S.EMPTY, True, WRONG_STATE),
        (S.EMPTY, False, WRONG_STATE),
    ],
)
def test_version_1_after_the_end(state: S, committed: bool, expected: Refused | None) -> None:
    metadata = state_of(state)
    assert asked(metadata, committed, 0) == (expected or Transition(metadata, response=NOTHING_TOLD))


@pytest.mark.parametrize("committed", [True, False])
def test_version_1_while_the_markers_are_written(committed: bool) -> None:
    """A request waits for the outcome; then it is a repetition, or the opposite of it."""
    for state in (S.PREPARE_COMMIT, S.PREPARE_ABORT):
        assert asked(state_of(state), committed, 0) == Parked()
    for first in (True, False):
        world = World(version=1)
        producer = world.init()
        world.begin(producer, T0, version=0)
        world.send(world.end(producer, first, version=0))
        error = world.error(world.end(producer, committed, version=0))
        assert error == (ErrorCode.NONE if first == committed else ErrorCode.INVALID_TXN_STATE)


def test_version_2_increments_the_epoch() -> None:
    result = asked(state_of(S.ONGOING), True, 2)
    assert step(result) == (S.PREPARE_COMMIT, EPOCH + 1, Answer(ErrorCode.NONE, PRODUCER, EPOCH + 1))
    assert isinstance(result, Transition)
    assert result.metadata is not None
    assert result.metadata.last_producer_epoch == EPOCH
    assert result.effects[0].producer_epoch == EPOCH + 1


def test_version_2_retry_while_the_markers_are_written() -> None:
    for state in (S.PREPARE_COMMIT, S.PREPARE_ABORT):
        for epoch in (EPOCH - 1, EPOCH):
            assert asked(state_of(state), True, 2, epoch) == Parked()
    # a retry is answered when the transaction is complete
    world = World()
    producer = world.init()
    world.begin(producer, T0)
    first, second = (world.send(world.end(producer, True)) for _ in range(2))
    world.host.settle()
    assert first == second == [Answer(ErrorCode.NONE, 0, 1)]


@pytest.mark.parametrize(
    ("state", "committed", "expected"),
    [
        pytest.param(S.COMPLETE_COMMIT, True, None, id="repeated commit"),
        pytest.param(S.COMPLETE_COMMIT, False, WRONG_STATE, id="abort of a commit"),
        pytest.param(S.COMPLETE_ABORT, False, None, id="repeated abort"),
        pytest.param(S.COMPLETE_ABORT, True, WRONG_STATE, id="commit of an abort"),
        pytest.param(S.EMPTY, True, FENCED, id="commit when empty"),
        pytest.param(S.EMPTY, False, FENCED, id="abort when empty"),
        pytest.param(S.ONGOING, True, FENCED, id="retry in the next transaction"),
    ],
)
def test_version_2_retries(state: S, committed: bool, expected: Refused | None) -> None:
    metadata = state_of(state)
    same = Transition(metadata, response=Answer(ErrorCode.NONE, PRODUCER, EPOCH))
    assert asked(metadata, committed, 2, EPOCH - 1) == (expected or same)


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_version_2_without_a_transaction(state: S) -> None:
    metadata = state_of(state)
    assert asked(metadata, True, 2) == WRONG_STATE
    result = asked(metadata, False, 2)
    assert step(result) == (S.PREPARE_ABORT, EPOCH + 1, Answer(ErrorCode.NONE, PRODUCER, EPOCH + 1))
    assert isinstance(result, Transition)
    assert [effect.partitions for effect in result.effects] == [frozenset()]


def test_an_abort_of_nothing_completes_without_a_marker() -> None:
    world = World()
    producer = world.init()
    assert world.ask(world.end(producer, False)) == Answer(ErrorCode.NONE, 0, 1)
    assert world.state().state == S.COMPLETE_ABORT
    assert (world.records(), world.host.written) == (3, [])


def test_version_2_other_epochs_are_fenced() -> None:
    for state in (S.EMPTY, S.ONGOING, S.COMPLETE_COMMIT, S.COMPLETE_ABORT):
        for epoch in (EPOCH - 2, EPOCH + 1):
            assert asked(state_of(state), False, 2, epoch) == FENCED


def exhausted() -> tuple[World, Answer]:
    """A transaction open at the last epoch that a producer may have."""
    world = World(first_producer_id=5)
    world.init()
    states = world.coordinator.partitions[world.coordinator.partition_of("tx")].metadata
    states["tx"] = states["tx"]._replace(producer_epoch=32766)
    producer = Answer(ErrorCode.NONE, 5, 32766)
    world.begin(producer, T0)
    return world, producer


@pytest.mark.parametrize("committed", [True, False])
def test_version_2_at_the_last_epoch(committed: bool) -> None:
    world, producer = exhausted()
    rotated = Answer(ErrorCode.NONE, 6, 0)
    assert world.ask(world.end(producer, committed)) == rotated
    assert [marker.producer_epoch for marker in world.host.written] == [32767]
    assert world.state().last_producer_epoch == 32766
    assert world.ask(world.end(producer, committed)) == rotated
    assert world.error(world.end(producer, not committed)) == ErrorCode.INVALID_TXN_STATE


def test_no_producer_id_is_there() -> None:
    world, producer = exhausted()
    while world.ids.take() is not None:
        pass
    before = world.state()
    assert world.error(world.end(producer, True)) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert world.state() == before
    assert asked(state_of(S.ONGOING)._replace(producer_epoch=32766), True, 2, 32766) == NeedsProducerId()


def test_the_partition_leaves_between_append_and_markers() -> None:
    world = World()
    producer = world.init()
    world.begin(producer, T0)
    answers = world.send(world.end(producer, True))
    world.coordinator.resign(world.coordinator.partition_of("tx"))
    world.host.settle()
    assert answers == [Answer(ErrorCode.NOT_COORDINATOR)]
    assert not world.host.written


@pytest.mark.parametrize("epoch", [0, 32766])
def test_a_producer_that_wakes_up_after_its_timeout(epoch: int) -> None:
    """Transaction version 2: an abort goes on with the new identity, a commit is refused."""
    world = World(first_producer_id=5)
    world.init(timeout_ms=100)
    states = world.coordinator.partitions[world.coordinator.partition_of("tx")].metadata
    states["tx"] = states["tx"]._replace(producer_epoch=epoch)
    producer = Answer(ErrorCode.NONE, 5, epoch)
    world.begin(producer, T0)
    world.advance(20_000)
    world.host.settle()
    assert [marker.producer_epoch for marker in world.host.written] == [epoch + 1]
    assert world.error(world.end(producer, True)) == ErrorCode.INVALID_TXN_STATE
    expected = (6, 0) if epoch else (5, 1)
    assert world.ask(world.end(producer, False)) == Answer(ErrorCode.NONE, *expected)
    assert world.ask(InitProducerId("tx", 100)) == Answer(ErrorCode.NONE, expected[0], expected[1] + 1)


def test_version_1_is_fenced_by_its_timeout() -> None:
    world = World(version=1)
    producer = world.init(timeout_ms=100)
    world.begin(producer, T0, version=0)
    world.advance(20_000)
    world.host.settle()
    for committed in (True, False):
        assert world.error(world.end(producer, committed, version=0)) == ErrorCode.PRODUCER_FENCED
    event = AddPartitions("tx", 0, 0, frozenset([T1]))
    assert world.error(event) == ErrorCode.PRODUCER_FENCED


def test_an_empty_abort_directly_after_a_commit() -> None:
    world = World()
    producer = world.init()
    world.begin(producer, T0)
    world.send(world.end(producer, True))
    answers = world.send(EndTxn("tx", 0, 1, False, 2))
    world.host.settle()
    assert answers == [Answer(ErrorCode.NONE, 0, 2)]


def test_a_late_copy_of_the_end_of_one_transaction_does_not_end_the_next() -> None:
    """KAFKA-17754: decisive is the epoch, which each transaction of version 2 has for itself."""
    world = World()
    first = world.init()
    world.begin(first, T0)
    late = world.end(first, False)
    second = world.ask(late)
    world.begin(second, T1)
    assert world.error(late) == ErrorCode.PRODUCER_FENCED
    assert world.state().state == S.ONGOING
    assert world.error(world.end(second, True)) == ErrorCode.NONE
    assert world.host.partitions[T1].visible() == ["value"]

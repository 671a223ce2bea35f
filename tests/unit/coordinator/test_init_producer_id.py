"""InitProducerId: the cases of Kafka's TransactionCoordinatorTest that a coordinator alone can fulfil."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.transition_cases import (
    EPOCH,
    EXHAUSTED,
    FOREIGN,
    ID,
    LAST_EPOCH,
    NOW,
    PRODUCER,
    state_of,
)
from tests.unit.coordinator.world import T0, World
from txnkafka.coordinator.old_clients import error_for
from txnkafka.coordinator.txn.txn_config import TransactionConfig
from txnkafka.coordinator.txn.txn_events import (
    Answer,
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
IDLE = (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT)


def asked(
    metadata: TransactionMetadata | None, *producer: int, version: int = 2, producer_id: int | None = None
) -> Result:
    event = InitProducerId(ID, 30_000, *producer)
    return transition(metadata, event, now_ms=NOW, version=version, producer_id=producer_id)


def given(metadata: TransactionMetadata | None, *producer: int, producer_id: int | None = None) -> Transition:
    result = asked(metadata, *producer, producer_id=producer_id)
    assert isinstance(result, Transition)
    return result


def identity(result: Transition) -> tuple[int, int, int]:
    """Producer id, epoch, last epoch; the answer has the first two."""
    metadata = result.metadata
    assert metadata is not None
    assert result.response == Answer(ErrorCode.NONE, metadata.producer_id, metadata.producer_epoch)
    return metadata.producer_id, metadata.producer_epoch, metadata.last_producer_epoch


def test_a_null_id_gets_a_new_producer_each_time() -> None:
    world, answers = World(), list[Answer]()
    world.coordinator.new_producer_id(answers.append)
    world.coordinator.new_producer_id(answers.append)
    assert answers == [Answer(ErrorCode.NONE, 0, 0), Answer(ErrorCode.NONE, 1, 0)]
    assert world.records() == 0


@pytest.mark.parametrize(
    ("event", "error"),
    [
        pytest.param(InitProducerId("", 1), ErrorCode.INVALID_REQUEST, id="empty id"),
        pytest.param(
            InitProducerId(ID, 1, keep_prepared_txn=True), ErrorCode.UNSUPPORTED_VERSION, id="keepPrepared"
        ),
        pytest.param(
            InitProducerId(ID, 1, enable_2pc=True),
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            id="two-phase commit while the broker has it off",
        ),
        pytest.param(InitProducerId(ID, 0), ErrorCode.INVALID_TRANSACTION_TIMEOUT, id="timeout 0"),
        pytest.param(InitProducerId(ID, -1), ErrorCode.INVALID_TRANSACTION_TIMEOUT, id="negative"),
        pytest.param(InitProducerId(ID, 900_001), ErrorCode.INVALID_TRANSACTION_TIMEOUT, id="> max"),
        pytest.param(InitProducerId(ID, 1, -1, 0), ErrorCode.INVALID_REQUEST, id="epoch alone"),
        pytest.param(InitProducerId(ID, 1, 7, -1), ErrorCode.INVALID_REQUEST, id="producer id alone"),
    ],
)
def test_refused_whatever_the_state(event: InitProducerId, error: ErrorCode) -> None:
    world = World()
    assert world.error(event) == error
    assert world.records() == 0


def test_the_largest_timeout_is_accepted() -> None:
    assert World().error(InitProducerId(ID, 900_000)) == ErrorCode.NONE


def test_a_new_id_has_epoch_0_and_one_record() -> None:
    world = World()
    assert world.init() == Answer(ErrorCode.NONE, 0, 0)
    assert (world.records(), world.state().state) == (1, S.EMPTY)


def test_a_new_or_expired_id_with_a_producer_gets_a_new_one() -> None:
    assert asked(None, 500, 4) == NeedsProducerId()
    assert identity(given(None, 500, 4, producer_id=9)) == (9, 0, -1)


@pytest.mark.parametrize("state", IDLE)
def test_without_a_producer_the_epoch_rises_and_the_last_one_is_forgotten(state: S) -> None:
    result = given(state_of(state))
    assert identity(result) == (PRODUCER, EPOCH + 1, -1)
    assert result.metadata is not None
    assert result.metadata.state == S.EMPTY
    assert (result.metadata.topic_partitions, result.metadata.start_timestamp) == (frozenset(), -1)
    assert result.metadata.transaction_timeout_ms == 30_000


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_while_the_markers_are_written_it_is_parked(state: S) -> None:
    assert asked(state_of(state)) == Parked()


def test_an_open_transaction_is_aborted_and_two_epochs_are_spent() -> None:
    for version in (0, 1, 2):
        world = World(version=version)
        producer = world.init()
        world.begin(producer, T0, version=version)
        assert world.init().producer_epoch == 2
        assert [(marker.producer_epoch, marker.committed) for marker in world.host.written] == [(1, False)]


def test_a_second_one_during_the_abort_waits_for_its_turn() -> None:
    world = World()
    world.begin(world.init(), T0)
    answers = [world.send(InitProducerId("tx", 60_000)) for _ in range(2)]
    world.host.settle()
    assert [each[0].producer_epoch for each in answers] == [2, 3]


def test_any_pending_transition_is_waited_for() -> None:
    world = World()
    producer = world.init()
    first, second = (world.send(InitProducerId("tx", 60_000, *producer_of(producer))) for _ in range(2))
    assert (first, second) == ([], [])
    world.host.settle()
    assert first == second == [Answer(ErrorCode.NONE, 0, 1)]


def producer_of(answer: Answer) -> tuple[int, int]:
    return answer.producer_id, answer.producer_epoch


@pytest.mark.parametrize("state", IDLE)
def test_with_a_producer(state: S) -> None:
    metadata = state_of(state)
    assert identity(given(metadata, PRODUCER, EPOCH)) == (PRODUCER, EPOCH + 1, EPOCH)
    assert identity(given(metadata, PRODUCER, LAST_EPOCH)) == (PRODUCER, EPOCH, LAST_EPOCH)
    fenced = Refused(ErrorCode.PRODUCER_FENCED)
    assert asked(metadata, PRODUCER, LAST_EPOCH - 1) == fenced
    assert asked(metadata, PRODUCER, EPOCH + 1) == fenced
    assert asked(metadata, FOREIGN, EPOCH) == fenced


def at(epoch: int) -> TransactionMetadata:
    """Idle at this epoch."""
    world = World()
    world.init()
    return world.state()._replace(producer_epoch=epoch, producer_id=PRODUCER)


def test_no_epoch_is_left() -> None:
    assert asked(at(EXHAUSTED)) == NeedsProducerId()
    assert identity(given(at(EXHAUSTED), producer_id=9)) == (9, 0, -1)
    assert identity(given(at(EXHAUSTED), PRODUCER, EXHAUSTED, producer_id=9)) == (9, 0, EXHAUSTED)


def test_retries_after_the_producer_id_changed() -> None:
    rotated = given(at(EXHAUSTED), PRODUCER, EXHAUSTED, producer_id=9).metadata
    assert rotated is not None
    again = given(rotated, PRODUCER, EXHAUSTED)
    assert identity(again) == (9, 0, EXHAUSTED)
    fenced = Refused(ErrorCode.PRODUCER_FENCED)
    for epoch in (0, EXHAUSTED - 1):  # 0 is the epoch of the new producer id
        assert asked(rotated, PRODUCER, epoch) == fenced, epoch
    bumped = given(rotated, 9, 0).metadata
    assert asked(bumped, PRODUCER, EXHAUSTED) == fenced


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_open_transaction_at_the_last_epoch(version: int) -> None:
    world = World(version=version)
    world.init()
    world.coordinator.partitions[world.coordinator.partition_of("tx")].metadata["tx"] = at(EXHAUSTED)
    world.begin(Answer(ErrorCode.NONE, PRODUCER, EXHAUSTED), T0, version=version)
    answer = world.init()
    assert [marker.producer_epoch for marker in world.host.written] == [32767]
    # at level 2 the abort has rotated the id already, and InitProducerId increments the new epoch
    assert producer_of(answer) == ((1, 1) if version == 2 else (1, 0))


@pytest.mark.parametrize("version", [0, 2])
def test_a_fence_that_cannot_be_written_spends_no_epoch(version: int) -> None:
    world = World(version=version)
    producer = world.init()
    world.begin(producer, T0, version=version)
    for _ in range(100):
        answers = world.send(InitProducerId("tx", 60_000))
        for log in world.host.state_logs:
            log.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert answers == [Answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)]
        assert world.state().producer_epoch == 0
    assert world.init().producer_epoch == 2


def test_a_timeout_while_the_abort_is_pending_does_not_bump_again() -> None:
    world = World()
    world.begin(world.init(timeout_ms=100), T0)
    world.host.now_ms += 1_000
    answers = world.send(InitProducerId("tx", 60_000))
    world.coordinator.advance(world.now)
    world.host.settle()
    assert answers[0].producer_epoch == 2


def test_the_error_that_an_old_client_understands() -> None:
    error = ErrorCode.PRODUCER_FENCED
    assert [error_for("InitProducerId", version, error) for version in (3, 4)] == [
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
    ]


def test_a_continued_producer_whose_transaction_was_aborted() -> None:
    """The fence keeps the last epoch at level 2 only."""
    for version, told in ((0, ErrorCode.PRODUCER_FENCED), (2, ErrorCode.NONE)):
        world = World(version=version)
        producer = world.init()
        world.begin(producer, T0, version=version)
        answer = world.ask(InitProducerId("tx", 60_000, *producer_of(producer)))
        assert answer.error == told
        assert answer.producer_epoch == (1 if version else -1)


def test_a_used_up_block_is_load_in_progress_until_the_next_is_durable() -> None:
    world = World(first_producer_id=0)
    taken = {world.ids.take() for _ in range(1000)}
    assert taken == set(range(1000))
    assert world.error(InitProducerId("tx", 60_000)) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert world.records() == 0
    world.ids.block_durable(5_000)
    assert world.init() == Answer(ErrorCode.NONE, 5_000, 0)


@pytest.mark.parametrize("committed", [True, False])
def test_without_parking_nothing_is_appended_while_the_markers_are_written(committed: bool) -> None:
    world = World(config=TransactionConfig(max_parked=0))
    producer = world.init()
    world.begin(producer, T0)
    world.host.refuse[T0] = ErrorCode.KAFKA_STORAGE_ERROR
    world.ask(world.end(producer, committed))
    records = world.records()
    for named in ((), producer_of(producer), (0, 1)):
        assert world.error(InitProducerId("tx", 60_000, *named)) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.records() == records

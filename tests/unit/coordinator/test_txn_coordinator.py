"""The owner of the transactional ids: what waits, what is in flight, what a failure leaves."""

from __future__ import annotations

import pytest

from tests.models.transaction_world import Written
from tests.unit.coordinator.world import T0, T1, World
from txnkafka.coordinator.txn.txn_config import TransactionConfig
from txnkafka.coordinator.txn.txn_events import AddPartitions, Answer, EndTxn, InitProducerId
from txnkafka.coordinator.txn.txn_listing import Filters, describe, list_transactions
from txnkafka.error_codes import ErrorCode
from txnkafka.wire.records import TransactionState

S = TransactionState


def add(producer: Answer, *partitions: object, version: int = 2) -> AddPartitions:
    names = frozenset(partitions)
    identity = producer.producer_id, producer.producer_epoch
    return AddPartitions("tx", *identity, names, version)  # type: ignore[arg-type]


def test_nothing_is_answered_before_its_record_is_durable() -> None:
    world = World()
    answers = world.send(InitProducerId("tx", 60_000))
    assert answers == []
    world.host.settle()
    assert answers == [Answer(ErrorCode.NONE, 0, 0)]


def test_end_txn_is_answered_behind_prepare_and_beside_the_markers() -> None:
    world = World()
    producer = world.init()
    world.begin(producer, T0, T1)
    answers = world.send(world.end(producer, True))
    assert not world.host.written
    for log in world.host.state_logs:
        log.flush()
    assert [each.partition for each in world.host.written] == [T0, T1]
    assert answers == [Answer(ErrorCode.NONE, 0, 1)]
    assert world.state().state == S.PREPARE_COMMIT
    world.host.settle()
    assert world.state().state == TransactionState.COMPLETE_COMMIT
    assert all(log.visible() == ["value"] for log in world.host.partitions.values())


def test_a_commit_waits_for_data_that_is_not_durable() -> None:
    world = World()
    producer = world.init()
    world.begin(producer, T0, T1)
    world.host.partitions[T1].append(Written(0, 0, "late"))
    records = world.records()
    answers = world.send(world.end(producer, True))
    for log in world.host.state_logs:
        log.flush()
    assert world.records() == records
    assert answers == []
    world.host.partitions[T1].flush()
    assert world.records() == records + 1
    world.host.settle()
    assert answers == [Answer(ErrorCode.NONE, 0, 1)]


def test_a_transaction_whose_commit_waits_for_data_does_not_time_out() -> None:
    world = World(config=TransactionConfig(max_parked_ms=100_000))
    producer = world.init(timeout_ms=1_000)
    world.begin(producer, T0)
    world.host.partitions[T0].append(Written(0, 0, "late"))
    answers = world.send(world.end(producer, True))
    world.advance(50_000)
    assert world.state().state == TransactionState.ONGOING
    world.host.partitions[T0].flush()
    world.host.settle()
    assert answers == [Answer(ErrorCode.NONE, 0, 1)]
    assert world.state().state == S.COMPLETE_COMMIT


def test_a_transaction_ends_before_its_beginning_is_durable() -> None:
    """The producer has seen its data in the log, and has not waited for an answer."""
    world = World()
    producer = world.init()
    records = world.records()
    joined = world.send(add(producer, T0))
    world.host.partitions[T0].append(Written(0, 0, "value"))
    ended = world.send(world.end(producer, True))
    assert world.records() == records + 1, "the data is not durable"
    world.host.partitions[T0].flush()
    assert world.records() == records + 2
    assert (joined, ended, world.host.written) == ([], [], [])
    for log in world.host.state_logs:
        log.flush()
    assert (joined, ended) == ([Answer(ErrorCode.NONE)], [Answer(ErrorCode.NONE, 0, 1)])
    assert [each.partition for each in world.host.written] == [T0]
    world.host.settle()
    assert world.state().state == S.COMPLETE_COMMIT


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_whose_beginning_cannot_be_durable_does_not_end(committed: bool) -> None:
    world = World()
    producer = world.init()
    joined, ended = world.send(add(producer, T0)), world.send(world.end(producer, committed))
    for log in world.host.state_logs:
        log.fail(ErrorCode.KAFKA_STORAGE_ERROR)
    assert joined == ended == [Answer(ErrorCode.NOT_COORDINATOR)]
    assert (world.host.written, world.state().state) == ([], S.EMPTY)


def test_a_commit_is_refused_with_the_partition_that_could_not_join() -> None:
    """It came when that record was in flight, so it means the data there, too."""
    world = World()
    producer = world.init()
    world.begin(producer, T0)
    joined = world.send(add(producer, T1))
    world.host.partitions[T1].append(Written(0, 0, "value"))
    ended = world.send(world.end(producer, True))
    for log in world.host.state_logs:
        log.fail(ErrorCode.REQUEST_TIMED_OUT)
    assert joined == ended == [Answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)]
    records = world.records()
    world.host.settle()
    assert world.records() == records
    assert world.state().state == S.ONGOING
    assert world.error(world.end(producer, False)) == ErrorCode.NONE


def test_a_commit_does_not_wait_for_the_data_of_others_and_only_once_for_its_own() -> None:
    world = World()
    producer = world.init()
    world.begin(producer, T0)
    busy = world.host.partitions[T0]
    busy.append(Written(99, 0, "of somebody else"))
    records = world.records()
    world.send(world.end(producer, True))
    assert world.records() == records + 1
    world.host.settle()
    following = Answer(ErrorCode.NONE, 0, 1)
    world.begin(following, T0)
    busy.append(Written(0, 1, "late"))
    answers = world.send(world.end(following, True))
    busy.waiting.insert(0, lambda _: busy.append(Written(0, 1, "later still")))
    busy.flush()
    world.host.settle()
    assert answers == [Answer(ErrorCode.NONE, 0, 2)]


def test_a_commit_whose_data_cannot_be_durable_is_refused() -> None:
    world = World()
    producer = world.init()
    world.begin(producer, T0)
    world.host.partitions[T0].append(Written(0, 0, "late"))
    answers = world.send(world.end(producer, True))
    world.host.partitions[T0].fail(ErrorCode.KAFKA_STORAGE_ERROR)
    assert answers == [Answer(ErrorCode.NOT_COORDINATOR)]
    assert world.state().state == S.ONGOING
    assert world.error(world.end(producer, False)) == ErrorCode.NONE


def test_an_abort_does_not_wait_for_data() -> None:
    world = World()
    producer = world.init()
    world.begin(producer, T0)
    world.host.partitions[T0].append(Written(0, 0, "late"))
    records = world.records()
    world.send(world.end(producer, False))
    assert world.records() == records + 1


def test_the_next_transaction_is_parked_until_complete_is_appended() -> None:
    world = World()
    producer = world.init()
    world.begin(producer, T0)
    ended = world.send(world.end(producer, True))
    (log,) = [log for log in world.host.state_logs if log.entries]
    log.flush()
    appended: list[str] = []
    following: list[Answer] = []
    world.coordinator.handle(
        add(ended[0], T1), following.append, world.now, lambda: appended.append("ongoing")
    )
    assert (appended, following) == ([], [])
    world.host.partitions[T0].flush()
    assert appended == ["ongoing"]
    assert following == []
    log.flush()
    assert following == [Answer()]
    assert world.state().topic_partitions == {T1}


def test_requests_are_served_in_the_order_of_their_arrival() -> None:
    world = World()
    producer = world.init()
    world.begin(producer, T0)
    told: list[str] = []
    world.coordinator.handle(world.end(producer, True), lambda _: told.append("end"), world.now)
    for i in range(3):
        world.coordinator.handle(InitProducerId("tx", 60_000), lambda _, i=i: told.append(str(i)), world.now)
    world.host.settle()
    assert told == ["end", "0", "1", "2"]
    assert world.state().producer_epoch == 4


def test_partitions_join_without_waiting_for_each_other() -> None:
    world = World()
    producer = world.init()
    first, second = world.send(add(producer, T0)), world.send(add(producer, T1))
    (log,) = [log for log in world.host.state_logs if log.entries]
    assert len(log.entries) == 3
    log.flush()
    assert (first, second) == ([Answer()], [Answer()])
    assert world.state().topic_partitions == {T0, T1}


def test_a_refusal_is_not_taken_from_a_state_that_may_not_come_to_be() -> None:
    world = World()
    producer = world.init()
    successor = world.send(InitProducerId("tx", 60_000))
    zombie = world.send(add(producer, T0))
    (log,) = [log for log in world.host.state_logs if log.entries]
    assert zombie == []
    log.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    world.host.settle()
    assert successor == [Answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)]
    assert zombie == [Answer()]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.CORRUPT_MESSAGE, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_errors_of_the_log_as_the_client_is_told(error: ErrorCode, told: ErrorCode) -> None:
    world = World()
    world.host.failing = error
    assert world.error(InitProducerId("tx", 60_000)) == told
    world.host.failing = ErrorCode.NONE
    answers = world.send(InitProducerId("tx", 60_000))
    for log in world.host.state_logs:
        log.fail(error)
    assert answers == [Answer(told)]
    assert world.init() == Answer(ErrorCode.NONE, 2, 0)


def test_a_parked_request_is_refused_when_it_has_waited_long_enough() -> None:
    world = World()
    producer = world.init()
    world.begin(producer, T0)
    world.host.refuse[T0] = ErrorCode.KAFKA_STORAGE_ERROR
    world.ask(world.end(producer, True))
    answers = world.send(InitProducerId("tx", 60_000))
    world.advance(world.coordinator.config.max_parked_ms - 1)
    assert answers == []
    assert world.advance(1) > world.now
    assert answers == [Answer(ErrorCode.CONCURRENT_TRANSACTIONS)]
    del world.host.refuse[T0]
    world.advance(2_000)
    world.host.settle()
    assert world.init().producer_epoch == 2


def test_without_parking_requests_are_refused_as_by_kafka() -> None:
    world = World(config=TransactionConfig(max_parked=0))
    producer = world.init()
    world.begin(producer, T0)
    concurrent = [Answer(ErrorCode.CONCURRENT_TRANSACTIONS)]
    first = world.send(InitProducerId("tx", 60_000))
    assert world.send(InitProducerId("tx", 60_000)) == concurrent
    world.host.settle()
    assert first == concurrent
    assert world.init().producer_epoch == 2


def test_who_sends_a_refused_request_again_at_once_is_not_forgotten() -> None:
    world = World()
    producer = world.init()
    world.begin(producer, T0)
    world.host.partitions[T0].append(Written(0, 0, "late"))
    told: list[ErrorCode] = []

    def send(answer: Answer | None = None) -> None:
        if answer is not None:
            told.append(answer.error)
        if answer is None or answer.error == ErrorCode.CONCURRENT_TRANSACTIONS:
            world.coordinator.handle(world.end(producer, True), send, world.now)

    send()
    behind = world.send(InitProducerId("tx", 60_000))
    world.advance(world.coordinator.config.max_parked_ms)
    assert told == [ErrorCode.CONCURRENT_TRANSACTIONS]
    assert behind == [Answer(ErrorCode.CONCURRENT_TRANSACTIONS)]
    world.host.settle()
    assert told == [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE]


def test_no_more_requests_are_parked_than_the_limit() -> None:
    world = World(config=TransactionConfig(max_parked=2))
    world.send(InitProducerId("tx", 60_000))
    answers = [world.send(InitProducerId("tx", 60_000)) for _ in range(3)]
    assert answers == [[], [], [Answer(ErrorCode.CONCURRENT_TRANSACTIONS)]]


def test_an_id_of_another_node_is_refused() -> None:
    world = World()
    world.init()
    partition = world.coordinator.partition_of("tx")
    waiting = world.send(InitProducerId("tx", 60_000))
    world.coordinator.resign(partition)
    assert waiting == [Answer(ErrorCode.NOT_COORDINATOR)]
    events = (InitProducerId("tx", 1), add(Answer(ErrorCode.NONE, 0, 0), T0), EndTxn("tx", 0, 0, True, 2))
    assert {world.error(event) for event in events} == {ErrorCode.NOT_COORDINATOR}
    assert describe(world.coordinator, "tx").error == ErrorCode.NOT_COORDINATOR
    assert world.error(EndTxn("", 0, 0, True, 2)) == ErrorCode.INVALID_REQUEST


def test_a_record_of_an_earlier_coordinator_epoch_changes_nothing_here() -> None:
    world = World()
    producer = world.init()
    world.begin(producer, T0)
    answers = world.send(world.end(producer, True))
    records = [log.entries[: log.durable] for log in world.host.state_logs]
    for log, durable in zip(world.host.state_logs, records, strict=True):
        log.entries[:] = durable
    world.load(coordinator_epoch=1)
    assert answers == [Answer(ErrorCode.NOT_COORDINATOR)]
    world.host.settle()
    assert world.state().state == S.ONGOING
    assert not world.host.written


def test_an_id_that_expires_is_not_shown() -> None:
    world = World()
    world.init()
    world.advance(8 * 86_400_000)
    assert describe(world.coordinator, "tx").error == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert list_transactions(world.coordinator, Filters(), world.now).transactions == ()
    waiting = world.send(InitProducerId("tx", 60_000, 0, 0))
    assert waiting == []
    world.host.settle()
    assert waiting == [Answer(ErrorCode.NONE, 1, 0)]


def test_an_id_that_is_too_long_for_its_key() -> None:
    world = World()
    assert world.error(InitProducerId("x" * 32_768, 60_000)) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.init("x" * 32_767).error == ErrorCode.NONE


def test_a_request_that_was_first_stays_first_when_nothing_has_to_be_marked() -> None:
    world = World()
    producer = world.init()
    world.ask(add(producer))
    told: list[str] = []
    world.coordinator.handle(InitProducerId("tx", 60_000), lambda _: told.append("first"), world.now)
    world.coordinator.handle(InitProducerId("tx", 60_000), lambda _: told.append("second"), world.now)
    world.host.settle()
    assert told == ["first", "second"]

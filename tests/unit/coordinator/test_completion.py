"""From PREPARE_* to COMPLETE_*: markers that fail, a COMPLETE_* that fails, and crashes in between."""

from __future__ import annotations

from tests.models.transaction_world import Partition, Written
from tests.unit.coordinator.world import T0, T1, T2, World
from txnkafka.coordinator.txn.txn_events import AddPartitions
from txnkafka.error_codes import ErrorCode
from txnkafka.wire.records import TransactionState

S = TransactionState


def test_a_deleted_topic_does_not_hold_up_its_siblings() -> None:
    world = World()
    producer = world.init()
    world.begin(producer, T0, T1)
    del world.host.partitions[T0]
    world.ask(world.end(producer, True))
    assert world.state().state == S.PREPARE_COMMIT
    assert world.host.partitions[T1].visible() == ["value"]
    world.coordinator.partition_deleted(T0, world.now)
    world.host.settle()
    assert world.state().state == S.COMPLETE_COMMIT
    assert world.init().producer_epoch == 2


def test_every_error_of_a_marker_ends_in_one_complete() -> None:
    for error in ErrorCode:
        world = World()
        producer = world.init()
        world.begin(producer, T0, T1)
        world.host.refuse[T0] = error
        world.ask(world.end(producer, True))
        if error == ErrorCode.NONE:
            world.host.settle()
        for _ in range(5):
            world.advance(1_000)
        world.host.refuse.clear()
        world.advance(1_000)
        world.host.settle()
        assert world.state().state == S.COMPLETE_COMMIT, error.name
        assert world.records() == 4, error.name


def test_complete_is_appended_again_when_that_failed() -> None:
    for error in (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.CORRUPT_MESSAGE):
        world = World()
        producer = world.init()
        world.begin(producer, T0)
        world.send(world.end(producer, True))
        for log in world.host.state_logs:
            log.flush()
        world.host.failing = error
        world.host.settle()
        world.advance(50)
        assert world.state().state == S.PREPARE_COMMIT
        world.host.failing = ErrorCode.NONE
        world.advance(100)
        for log in world.host.state_logs:
            log.fail(error)
        world.advance(100)
        world.host.settle()
        assert world.state().state == S.COMPLETE_COMMIT


def test_a_partition_of_the_state_topic_is_loaded_and_its_markers_are_written() -> None:
    world = World()
    producer = world.init()
    world.begin(producer, T0, T1)
    world.send(world.end(producer, True))
    for log in world.host.state_logs:
        log.flush()
    world.host.partitions[T0].flush()
    logs, partitions = world.host.crash(iter([0] * 9))
    assert partitions[T1].visible() == []
    again = World(logs, partitions, first_producer_id=1000)
    again.host.settle()
    assert again.state().state == S.COMPLETE_COMMIT
    assert partitions[T1].visible() == ["value"]
    assert [marker.producer_epoch for marker in again.host.written] == [1, 1]


def test_a_partition_outside_of_the_registry_is_tried_again() -> None:
    world = World()
    producer = world.init()
    world.ask(AddPartitions("tx", 0, 0, frozenset([T2]), 2))
    world.ask(world.end(producer, False))
    assert world.state().state == S.PREPARE_ABORT
    world.host.partitions[T2] = Partition()
    world.advance(1_000)
    world.host.settle()
    assert world.state().state == S.COMPLETE_ABORT


def test_data_behind_markers_without_an_epoch_of_their_own_waits_until_complete_is_durable() -> None:
    """A client that goes from transaction version 1 to 2. Its markers, written again, would end the data."""
    world = World()
    producer = world.init()
    world.begin(producer, T0, version=0)
    world.send(world.end(producer, True, version=0))
    log = next(log for log in world.host.state_logs if log.entries)
    log.flush()
    world.host.partitions[T0].flush()
    appended: list[str] = []
    event = AddPartitions("tx", 0, 0, frozenset([T0]), 2)
    world.coordinator.handle(event, lambda _: None, world.now, lambda: appended.append("data"))
    assert not appended
    assert len(log.entries) == log.durable + 1
    log.flush()
    assert appended == ["data"]


def test_data_of_the_next_transaction_outlives_a_crash_and_complete_does_not() -> None:
    """Its leader saved a flush. The markers of PREPARE_* are written again, and do not decide about it."""
    world = World()
    producer = world.init()
    world.begin(producer, T0, T1)
    world.send(world.end(producer, True))
    log = next(log for log in world.host.state_logs if log.entries)
    log.flush()
    for partition in world.host.partitions.values():
        partition.flush()
    following = world.host.partitions[T0]
    event = AddPartitions("tx", 0, 1, frozenset([T0]), 2)
    world.coordinator.handle(
        event, lambda _: None, world.now, lambda: following.append(Written(0, 1, "undecided"))
    )
    assert len(log.entries) == log.durable + 2
    following.durable = len(following.entries)
    logs, partitions = world.host.crash(iter([0] * 9))
    again = World(logs, partitions, first_producer_id=1000)
    assert [marker.partition for marker in again.host.written] == [T0, T1]
    again.host.settle()
    assert again.state().state == S.COMPLETE_COMMIT
    assert partitions[T0].visible() == ["value"]
    assert partitions[T0].open_transactions() == {0: 1}
    assert again.state().producer_epoch == 1
    assert again.state().topic_partitions == frozenset()


def test_markers_of_what_was_loaded_have_the_new_coordinator_epoch() -> None:
    world = World()
    producer = world.init()
    world.begin(producer, T0, T1)
    world.host.refuse[T1] = ErrorCode.KAFKA_STORAGE_ERROR
    world.ask(world.end(producer, False))
    world.host.refuse.clear()
    written = len(world.host.written)
    world.load(coordinator_epoch=3)
    world.host.settle()
    markers = world.host.written[written:]
    assert [(marker.partition, marker.coordinator_epoch) for marker in markers] == [(T0, 3), (T1, 3)]
    assert world.state().state == S.COMPLETE_ABORT

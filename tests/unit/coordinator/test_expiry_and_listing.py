"""Timeouts, expiry, loading, listing: cases of TransactionMetadataTest and TransactionStateManagerTest."""

from __future__ import annotations

from operator import attrgetter

import pytest

from tests.unit.coordinator.transition_cases import LATE, MUCH_LATER, NOW, STARTED, state_of
from tests.unit.coordinator.world import T0, T1, World
from txnkafka.coordinator.runtime import SLICE, batches_of
from txnkafka.coordinator.txn import txn_listing
from txnkafka.coordinator.txn.transaction_partition import TransactionPartition, loaded_records
from txnkafka.coordinator.txn.txn_events import (
    AddPartitions,
    Answer,
    Event,
    Expire,
    InitProducerId,
    Refused,
    Result,
    Timeout,
    TransactionRecord,
    Transition,
)
from txnkafka.coordinator.txn.txn_image import VALID_PREVIOUS_STATES, image_of
from txnkafka.coordinator.txn.txn_listing import Filters, Listed, Listing, describe, list_transactions
from txnkafka.coordinator.txn.txn_state import transition
from txnkafka.error_codes import ErrorCode
from txnkafka.wire.records import TransactionMetadata, TransactionState

S = TransactionState
IDLE = (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT)
NOT_NOW = Refused(ErrorCode.INVALID_TXN_STATE)
DAY = 86_400_000


def at(metadata: TransactionMetadata | None, event: Event, now_ms: int) -> Result:
    return transition(metadata, event, now_ms=now_ms, version=2)


# The state machine


def test_illegal_steps_are_bugs() -> None:
    for after, befores in VALID_PREVIOUS_STATES.items():
        for before in S:
            if before not in befores:
                with pytest.raises(ValueError, match=f"{before.label} to {after.label}"):
                    image_of(state_of(before), after)


def test_a_clock_that_goes_backwards_is_tolerated() -> None:
    world = World()
    world.host.now_ms = 10**12
    producer = world.init()
    world.set_clock(-DAY)
    world.begin(producer, T0)
    world.set_clock(-DAY)
    world.ask(world.end(producer, True))
    assert world.state().state == S.COMPLETE_COMMIT
    assert world.advance(0) > world.now


def test_a_clock_that_was_years_ahead_delays_nothing() -> None:
    """Deadlines that were set meanwhile come when it has been put right."""
    world = World()
    stuck, slow = world.init("stuck"), world.init("slow", timeout_ms=1_000)
    world.begin(stuck, T0, transactional_id="stuck")
    world.advance(0)
    world.set_clock(3 * DAY)
    world.host.refuse[T0] = ErrorCode.KAFKA_STORAGE_ERROR
    world.ask(world.end(stuck, True, "stuck"))
    parked = world.send(InitProducerId("stuck", 60_000))
    world.advance(0)
    world.set_clock(-3 * DAY)
    world.begin(slow, T1, transactional_id="slow")
    world.host.refuse.clear()
    world.host.now_ms += 4_000
    assert world.coordinator.advance(world.now) <= world.ticks.now + 10_000
    world.host.settle()
    assert [answer.producer_epoch for answer in parked] == [2]
    world.advance(10_000)
    world.host.settle()
    assert world.state("slow").state == S.COMPLETE_ABORT


# Timeouts


def test_only_an_open_transaction_times_out_by_its_start() -> None:
    for state in S:
        result = at(state_of(state), Timeout("tx"), LATE)
        assert isinstance(result, Transition) == (state == S.ONGOING)
        assert at(state_of(state), Timeout("tx"), LATE - 1) == NOT_NOW
    assert at(None, Timeout("tx"), LATE) == NOT_NOW
    assert at(state_of(S.ONGOING)._replace(transaction_timeout_ms=2**31 - 1), Timeout("tx"), 2**62) == NOT_NOW


def test_an_open_transaction_that_was_loaded_keeps_its_start() -> None:
    world = World()
    world.host.now_ms = STARTED
    world.begin(world.init(timeout_ms=50_000), T0)
    world.host.now_ms += 40_000
    logs, partitions = world.host.crash(iter([9] * 9))
    again = World(logs, partitions, first_producer_id=1000)
    again.host.now_ms = STARTED + 50_000
    again.advance(0)
    assert again.state().state == S.ONGOING
    again.advance(10_001)
    again.host.settle()
    assert again.state().state == S.COMPLETE_ABORT


def test_a_timeout_that_cannot_be_written_spends_one_epoch() -> None:
    for version in (1, 2):
        world = World(version=version)
        world.begin(world.init(timeout_ms=100), T0, version=version)
        for _ in range(5):
            world.advance(10_000)
            for log in world.host.state_logs:
                log.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert world.state().state == S.ONGOING
        world.advance(10_000)
        world.host.settle()
        assert (world.state().state, world.state().producer_epoch) == (S.COMPLETE_ABORT, 1)


def test_a_clock_that_goes_back_and_forth_ends_no_transaction() -> None:
    world = World()
    world.host.now_ms = 10**12
    producer = world.init()
    world.begin(producer, T0)
    world.advance(6_000)
    world.set_clock(-DAY)
    world.advance(11_000)
    world.set_clock(DAY)
    world.advance(11_000)
    world.host.settle()
    assert world.state().state == S.ONGOING
    assert world.error(world.end(producer, True)) == ErrorCode.NONE


def test_a_pending_transaction_is_left_alone() -> None:
    world = World()
    producer = world.init(timeout_ms=100)
    world.begin(producer, T0)
    world.host.now_ms += 10**6
    answers = world.send(world.end(producer, True))
    world.advance(0)
    world.host.settle()
    assert answers == [Answer(ErrorCode.NONE, 0, 1)]
    assert world.state().state == S.COMPLETE_COMMIT


def test_a_timeout_at_the_last_epoch_rotates_the_producer() -> None:
    """KAFKA-20090."""
    world = World(first_producer_id=5)
    world.init(timeout_ms=100)
    states = world.coordinator.partitions[world.coordinator.partition_of("tx")].metadata
    states["tx"] = states["tx"]._replace(producer_epoch=32766)
    world.begin(Answer(ErrorCode.NONE, 5, 32766), T0)
    world.advance(20_000)
    world.host.settle()
    assert (world.state().producer_id, world.state().producer_epoch) == (6, 0)
    assert world.state().state == S.COMPLETE_ABORT


# Expiry


def test_only_idle_ids_expire() -> None:
    for state in S:
        result = at(state_of(state), Expire("tx"), MUCH_LATER)
        expected = Transition(None, TransactionRecord("tx", None)) if state in IDLE else NOT_NOW
        assert result == expected
        assert at(state_of(state), Expire("tx"), MUCH_LATER - 1) == NOT_NOW


def test_an_expired_id_is_unknown() -> None:
    world = World()
    producer = world.init()
    world.advance(7 * DAY)
    world.host.settle()
    assert describe(world.coordinator, "tx").error == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    mapping = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.error(world.end(producer, True)) == mapping
    assert world.error(AddPartitions("tx", 0, 0, frozenset([T0]))) == mapping
    assert world.ask(InitProducerId("tx", 1_000, 0, 0)) == Answer(ErrorCode.NONE, 1, 0)


def test_an_id_that_a_client_takes_up_again_does_not_expire() -> None:
    """The record in flight is newer than the one by whose age it would."""
    world = World()
    world.init()
    world.host.now_ms += 8 * DAY
    answers = world.send(InitProducerId("tx", 60_000))
    world.advance(0)
    world.host.settle()
    world.begin(answers[0], T0)
    assert world.error(world.end(answers[0], True)) == ErrorCode.NONE


def test_a_tombstone_that_failed_leaves_the_id_usable() -> None:
    world = World()
    producer = world.init()
    for refuse_at_once in (True, False):
        world.host.failing = ErrorCode.MESSAGE_TOO_LARGE if refuse_at_once else ErrorCode.NONE
        world.advance(8 * DAY)
        for log in world.host.state_logs:
            log.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert describe(world.coordinator, "tx").error == ErrorCode.NONE
    world.begin(producer, T0)
    assert world.error(world.end(producer, True)) == ErrorCode.NONE


def test_tombstones_come_in_batches_that_the_log_accepts() -> None:
    records = [TransactionRecord(f"id-{i:05}", None) for i in range(5_000)]
    batches = list(batches_of(records, attrgetter("key"), 16_384))
    assert [record for batch in batches for record in batch] == records
    assert max(sum(26 + len(record.key) for record in batch) for batch in batches) <= 16_384 - 61
    assert len(batches) == 12
    assert [len(batch) for batch in batches_of(records[:3], attrgetter("key"), 10)] == [1, 1, 1]


def test_many_ids_expire_in_slices() -> None:
    world = World()
    world.host.max_bytes = 4_096
    number = SLICE + 500
    for i in range(number):
        world.send(InitProducerId(f"id-{i:05}", 60_000))
        if i % 900 == 0:
            world.ids.block_durable(10_000 * (i + 1))
    world.host.settle()
    records = world.records()
    assert records == number
    world.advance(8 * DAY)
    assert world.records() == records + SLICE
    assert world.advance(0) > world.now
    assert world.records() == records + number
    world.host.settle()
    assert list_transactions(world.coordinator, Filters(), world.now) == Listing(ErrorCode.NONE)


def test_an_id_whose_epoch_is_minus_1_expires_and_is_usable() -> None:
    never = state_of(S.EMPTY)._replace(producer_epoch=-1, last_producer_epoch=-1)
    assert at(never, Expire("tx"), MUCH_LATER) == Transition(None, TransactionRecord("tx", None))
    result = at(never, InitProducerId("tx", 1_000, 500, 3), NOW)
    assert isinstance(result, Transition)
    assert result.response == Answer(ErrorCode.NONE, 7, 0)


# Loading


def test_what_a_log_says() -> None:
    newer, older = state_of(S.ONGOING), state_of(S.EMPTY)
    log = [(TransactionRecord(name, None).key, record_value(older)) for name in ("tx", "gone", "cut")]
    log += [(log[0][0], record_value(newer)), (log[1][0], None)]
    log += [(log[0][0], b"\0\x63later"), (b"\0\1key", b"\0\1"), (None, b"")]
    log += [(log[2][0], record_value(newer)[:-9])]
    records, problems = loaded_records(log)
    assert records == [TransactionRecord("tx", newer), TransactionRecord("gone", None)]
    assert len(problems) == 4
    state = TransactionPartition(0)
    for record in records:
        state.replay(record)
    assert (list(state.metadata), list(state.ongoing)) == (["tx"], ["tx"])


def record_value(metadata: TransactionMetadata) -> bytes:
    value = TransactionRecord(metadata.transactional_id, metadata).encoded(1)[1]
    assert value is not None
    return value


@pytest.mark.parametrize(("version", "expected"), [(0, 0), (1, 1), (2, 1)])
def test_the_version_of_the_value(version: int, expected: int) -> None:
    world = World(version=version)
    producer = world.init()
    world.begin(producer, T0, version=0)
    values = [value for log in world.host.state_logs for _, value in log.entries]
    assert {int.from_bytes(value[:2], "big") for value in values} == {expected}


def test_a_client_of_version_2_is_served_at_level_0() -> None:
    """Kafka cannot write its state there, and blocks the id."""
    world = World(version=0)
    producer = world.init()
    world.begin(producer, T0, version=2)
    assert world.ask(world.end(producer, True)) == Answer(ErrorCode.NONE, 0, 1)
    assert world.state().state == S.COMPLETE_COMMIT


def test_a_retry_of_init_producer_id_after_a_restart() -> None:
    """KAFKA-20357: the last epoch is durable, too."""
    world = World()
    world.init()
    assert world.ask(InitProducerId("tx", 60_000, 0, 0)).producer_epoch == 1
    logs, partitions = world.host.crash(iter([9] * 9))
    again = World(logs, partitions, first_producer_id=1000)
    assert again.ask(InitProducerId("tx", 60_000, 0, 0)) == Answer(ErrorCode.NONE, 0, 1)


# ListTransactions, DescribeTransactions


def listing_world() -> World:
    world = World()
    world.host.now_ms = 1_000_000
    first, _, third = (world.init(name) for name in ("orders", "payments", "orders-2"))
    world.begin(first, T0, transactional_id="orders")
    world.host.now_ms += 5_000
    world.begin(third, T1, transactional_id="orders-2")
    return world


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(), ["orders", "orders-2", "payments"]),
        (Filters(producer_ids=frozenset([0, 1])), ["orders", "payments"]),
        (Filters(states=frozenset(["Ongoing"])), ["orders", "orders-2"]),
        (Filters(states=frozenset(["Nonsense"])), []),
        (Filters(duration_ms=4_000, states=frozenset(["Ongoing"])), ["orders"]),
        (Filters(pattern="orders.*"), ["orders", "orders-2"]),
        (Filters(pattern="orders"), ["orders"]),
        (Filters(frozenset([2]), frozenset(["Ongoing"]), 0, "orders.*"), []),
        (Filters(frozenset([2]), frozenset(["Ongoing"]), -1, "orders.*"), ["orders-2"]),
    ],
)
def test_filters_are_combined(filters: Filters, expected: list[str]) -> None:
    world = listing_world()
    found = list_transactions(world.coordinator, filters, world.now)
    assert [each.transactional_id for each in found.transactions] == expected
    assert found.error == ErrorCode.NONE


def test_a_row() -> None:
    world = listing_world()
    rows = list_transactions(world.coordinator, Filters(producer_ids=frozenset([2])), world.now).transactions
    assert rows == (Listed("orders-2", 2, "Ongoing"),)


def test_unknown_states() -> None:
    states = frozenset(["Nonsense", "Empty", "Absurd"])
    found = list_transactions(World().coordinator, Filters(states=states), 0)
    assert found.unknown_states == ("Absurd", "Nonsense")


def test_a_pattern_that_is_invalid_or_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator, refused = listing_world().coordinator, Listing(ErrorCode.INVALID_REGULAR_EXPRESSION)
    assert list_transactions(coordinator, Filters(pattern="("), 0) == refused
    monkeypatch.setattr(txn_listing, "MOST_STEPS", 50)
    assert list_transactions(coordinator, Filters(pattern="orders"), 0) == refused


def test_describe() -> None:
    world = listing_world()
    assert describe(world.coordinator, "").error == ErrorCode.INVALID_REQUEST
    assert describe(world.coordinator, "nobody").error == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    found = describe(world.coordinator, "orders")
    assert (found.producer_id, found.producer_epoch, found.state) == (0, 0, "Ongoing")
    assert (found.timeout_ms, found.start_ms, found.partitions) == (60_000, 1_000_000, (T0,))


def test_partitions_vanish_as_their_markers_are_written() -> None:
    world = World()
    producer = world.init()
    world.begin(producer, T0, T1)
    world.host.refuse[T1] = ErrorCode.KAFKA_STORAGE_ERROR
    world.ask(world.end(producer, True))
    found = describe(world.coordinator, "tx")
    assert (found.state, found.partitions) == ("PrepareCommit", (T1,))


def test_a_fence_at_the_largest_epoch_does_not_overflow() -> None:
    """Below transaction version 2 an aborted producer may have epoch 32767, and its transaction a timeout."""
    ongoing = state_of(S.ONGOING)._replace(producer_epoch=32767)
    for event in (Timeout("tx"), InitProducerId("tx", 1_000)):
        result = transition(ongoing, event, now_ms=LATE, version=1)
        assert isinstance(result, Transition)
        assert result.record is not None
        assert result.metadata is not None
        assert (result.metadata.state, result.metadata.producer_epoch) == (S.PREPARE_ABORT, 32767)
        assert [effect.producer_epoch for effect in result.effects] == [32767]

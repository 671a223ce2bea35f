"""The resolver beside a broker of this process: settlements, checks, parking, resuming."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.checkback.resolver_world import (
    FAST,
    GROUP,
    PARTITIONS,
    HalfWorld,
    is_ready,
    total,
    wait_for,
)
from txnkafka import Broker, ClosedError
from txnkafka.checkback.half_topics import CHECK_TOPIC, HALF_TOPIC, PARKED_TOPIC, half_partition
from txnkafka.checkback.resolver import Resolver, resolver_of
from txnkafka.wire.records.half_records import DecidedBy, EndRecord, HalfTombstone, Outcome

COMMIT, ROLLBACK, PARK, RESUME = Outcome


@pytest.fixture
def world() -> Iterator[HalfWorld]:
    with Broker.in_memory() as broker:
        yield HalfWorld(broker)


def test_the_topics_are_created_at_the_start(world: HalfWorld) -> None:
    with world.resolver():
        found = {each.name for each in world.admin.list_topics(include_internal=True)}
        assert {HALF_TOPIC, CHECK_TOPIC, PARKED_TOPIC} <= found


def test_a_committed_half_becomes_visible_once_with_its_bytes(world: HalfWorld) -> None:
    with world.resolver():
        world.half("a", ("t", 0), ("t", 1))
        assert world.values() == []
        world.decide("a")
        world.wait_visible("a", "a")
        world.decide("a")
        world.half("a")
        world.decide("a", ROLLBACK)
        wait_for(lambda: _is_clean(world), "tombstones of the late records")
        assert world.values() == [b"a", b"a"]


def test_a_half_that_is_rolled_back_leaves_no_trace_in_its_topic(world: HalfWorld) -> None:
    with world.resolver() as resolver:
        world.half("a")
        world.decide("a", ROLLBACK)
        world.decide("a", COMMIT)
        wait_for(lambda: total(resolver).ended == 1 and _is_clean(world), "END")
        assert (world.values(), world.end_of("t")) == ([], 0)


def test_the_first_decision_counts_although_both_came_before_the_resolver(world: HalfWorld) -> None:
    with world.resolver():
        pass
    world.half("a")
    world.decide("a", ROLLBACK)
    world.decide("a", COMMIT)
    world.half("b")
    world.decide("b", COMMIT)
    world.decide("b", ROLLBACK)
    with world.resolver():
        world.wait_visible("b")
        assert world.checks() == []


def test_halves_become_visible_in_the_order_of_their_decisions(world: HalfWorld) -> None:
    names = [name for name in map(str, range(200)) if half_partition(name, PARTITIONS) == 0]
    with world.resolver():
        for name in names:
            world.half(name)
        for name in reversed(names):
            world.decide(name)
        wait_for(lambda: len(world.values()) == len(names), "all halves")
        assert world.values() == [name.encode() for name in reversed(names)]


def test_an_undecided_half_is_checked_until_it_is_decided(world: HalfWorld) -> None:
    with world.resolver(FAST) as resolver:
        offset = world.half("a")
        (ask,) = wait_for(world.checks, "the first check")
        partition = half_partition("a", PARTITIONS)
        assert ask[:3] == (GROUP, "a", 1)
        assert (ask.half_partition, ask.half_offset) == (partition, offset)
        assert ask.batches[0].topic == "t"
        wait_for(lambda: total(resolver).unconfirmed == 1, "the unconfirmed check")
        world.asked("a", 1)
        wait_for(lambda: len(world.checks()) == 2, "the second check")
        assert world.checks()[1].ask_no == 2
        world.asked("a", 2)
        world.decide("a")
        world.wait_visible("a")
        wait_for(lambda: _is_clean(world), "tombstones")
        assert (total(resolver).unconfirmed, total(resolver).prepared) == (0, 0)


def test_checks_that_nobody_receives_are_not_counted_and_wait_in_the_topic(world: HalfWorld) -> None:
    with world.resolver({**FAST, "transaction_check_max": 1}) as resolver:
        world.half("a")
        wait_for(lambda: len(world.checks()) == 2, "the repeated check")
        assert [ask.ask_no for ask in world.checks()] == [1, 1]
        assert (total(resolver).prepared, total(resolver).parked) == (1, 0)


def test_the_last_answer_counts_within_one_more_interval(world: HalfWorld) -> None:
    with world.resolver({**FAST, "transaction_check_max": 1, "transaction_check_interval": 2_000}):
        world.half("a")
        wait_for(world.checks, "the check")
        world.asked("a", 1)
        world.decide("a", by=DecidedBy.CHECK)
        world.wait_visible("a")
        assert world.parked() == {}


def test_a_half_without_an_answer_is_parked_refuses_decisions_and_can_be_resumed(world: HalfWorld) -> None:
    with world.resolver({**FAST, "transaction_check_max": 2}) as resolver:
        world.half("a")
        for number in (1, 2):
            wait_for(lambda number=number: len(world.checks()) == number, f"check {number}")
            world.asked("a", number)
        wait_for(lambda: total(resolver).parked == 1, "the parked half")
        copy = world.parked()["a"]
        assert copy is not None
        assert (copy.asks, copy.reason, copy.producer_group) == (2, "undecided after 2 checks", GROUP)
        world.decide("a")
        wait_for(lambda: _is_clean(world), "the tombstone of the late decision")
        assert world.values() == []

        world.decide("a", RESUME, DecidedBy.ADMIN)
        wait_for(lambda: len(world.checks()) == 3, "the check after the half was resumed")
        assert (world.checks()[2].ask_no, world.parked()["a"]) == (1, None)
        world.asked("a", 1)
        world.decide("a", by=DecidedBy.CHECK)
        world.wait_visible("a")
        wait_for(lambda: _is_clean(world), "tombstones")


@pytest.mark.parametrize("policy", ["rollback", "keep"])
def test_the_policy_may_roll_back_or_keep(world: HalfWorld, policy: str) -> None:
    settings = {**FAST, "transaction_check_max": 1, "transaction_check_policy": policy}
    with world.resolver(settings) as resolver:
        world.half("a")
        wait_for(world.checks, "the check")
        world.asked("a", 1)
        if policy == "rollback":
            wait_for(lambda: total(resolver).ended == 1, "the rollback")
            (end,) = [each for each in world.log() if isinstance(each, EndRecord)]
            assert (end.outcome, end.by) == (ROLLBACK, DecidedBy.POLICY)
        else:
            world.half("b", check_max=2)
            wait_for(lambda: len(world.checks()) == 2, "the check of the other half")
            world.asked("b", 1)
            wait_for(lambda: len(world.checks()) == 3, "its second check")
            assert total(resolver)[2:5] == (2, 0, 0)
        assert (world.values(), world.parked()) == ([], {})


def test_a_half_is_parked_at_its_greatest_age(world: HalfWorld) -> None:
    with world.resolver({**FAST, "transaction_max_age": 300}):
        world.half("a", immunity_ms=3_600_000)
        copy = wait_for(lambda: world.parked().get("a"), "the parked half")
        assert "transaction.max.age" in copy.reason
        assert world.checks() == []


def test_an_immunity_delays_its_own_half_only(world: HalfWorld) -> None:
    with world.resolver(FAST):
        world.half("slow", immunity_ms=3_600_000)
        world.half("fast")
        assert [ask.transaction_id for ask in wait_for(world.checks, "the check")] == ["fast"]


def test_an_administrator_parks_a_half(world: HalfWorld) -> None:
    with world.resolver() as resolver:
        world.half("a")
        world.decide("a", PARK, DecidedBy.ADMIN)
        wait_for(lambda: total(resolver).parked == 1, "the parked half")
        copy = world.parked()["a"]
        assert copy is not None
        assert copy.reason == "parked by an administrator"


def test_outcomes_are_forgotten_after_their_retention(world: HalfWorld) -> None:
    with world.resolver({"half_partitions": PARTITIONS, "decision_retention": 200}) as resolver:
        world.half("a")
        world.decide("a")
        world.wait_visible("a")
        wait_for(lambda: world.log()[-1:] and total(resolver).ended == 0, "the end of the retention")
        wait_for(lambda: any(_is_buried_end(each) for each in world.log()), "the tombstone of END")
        world.decide("a")
        wait_for(lambda: _is_clean(world), "the tombstone of the late decision")
        assert world.values() == [b"a"]


def test_payloads_that_do_not_fit_into_memory_are_read_from_the_log(
    world: HalfWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("txnkafka.coordinator.half.half_image.HalfImage.__init__.__defaults__", (0,))
    with world.resolver(FAST) as resolver:
        names = [f"id{number}" for number in range(20)]
        for name in names:
            world.half(name)
        wait_for(lambda: len({ask.transaction_id for ask in world.checks()}) == 20, "the checks")
        assert all(len(ask.batches[0].records) > 60 for ask in world.checks())
        for name in names[::2]:
            world.decide(name)
        world.wait_visible(*names[::2])
        assert total(resolver).prepared == 10


def test_a_resolver_of_a_broker_is_started_once_and_ends_with_it() -> None:
    with Broker.in_memory() as broker:
        first = resolver_of(broker, {"half_partitions": 1})
        assert resolver_of(broker) is first
        wait_for(lambda: is_ready(first, 1), "the resolver")
        first.close()
        first.close()
        with pytest.raises(ClosedError):
            first.start()
        second = resolver_of(broker)
        assert second is not first
    second.wait()


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValueError, match=r"do you mean transaction\.timeout"):
        Resolver({"bootstrap.servers": "127.0.0.1:1", "transaction.timeut": 5})
    with pytest.raises(ValueError, match=r"bootstrap\.servers is missing: the resolver"):
        Resolver()


def _is_clean(world: HalfWorld) -> bool:
    """Return whether each record of a half but END has a tombstone after it."""
    last: dict[tuple[object, ...], bool] = {}
    for record in world.log():
        key = record.encode()[0]
        if not isinstance(record, EndRecord):
            last[key] = isinstance(record, HalfTombstone)
    return all(last.values())


def _is_buried_end(record: object) -> bool:
    return isinstance(record, HalfTombstone) and record.type.name == "END"

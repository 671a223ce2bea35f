"""Owners that die, are fenced, or meet topics that take no records: a committed half is visible exactly once.

An owner dies in these tests by stopping for ever at a chosen point of its transaction; or the test leaves a
transaction of the owner's transactional id open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.checkback.resolver_world import (
    FAST,
    PARTITIONS,
    SLOW,
    HalfWorld,
    is_ready,
    total,
    wait_for,
)
from txnkafka import Broker, CorruptRecordError, KafkaError, NetworkError, TopicPartition
from txnkafka.checkback.half_topics import HALF_TOPIC, half_partition, owner_id
from txnkafka.checkback.resolver import Resolver
from txnkafka.checkback.resolver import mover as mover_module
from txnkafka.checkback.resolver.mover import Mover
from txnkafka.client.admin import AlterConfigOp, ConfigResource, ConfigResourceType
from txnkafka.client.promise import Promise
from txnkafka.wire.records.half_records import DecidedBy, EndRecord, Outcome

COMMIT, ROLLBACK, PARK, RESUME = Outcome


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HalfWorld]:
    monkeypatch.setattr(mover_module, "_LOOKUP_MS", 200)
    monkeypatch.setattr(mover_module, "_PATIENCE_MS", 2_000)
    beats = {f"group.consumer.{name}heartbeat.interval.ms": 100 for name in ("min.", "")}
    with Broker.in_memory(**beats) as broker:
        yield HalfWorld(broker)


def _die_at(monkeypatch: pytest.MonkeyPatch, method: str, *, after: bool) -> Callable[[], bool]:
    """Let the first mover that calls ``method`` stop there for ever; return whether that has happened."""
    original, dead = getattr(Mover, method), []

    async def dies(self: Mover, *arguments: Any) -> None:
        if dead and dead[0] is not self:
            await original(self, *arguments)
            return
        if not dead:
            dead.append(self)
            if after:
                await original(self, *arguments)
        await Promise[None]()  # which nobody sets

    monkeypatch.setattr(Mover, method, dies)
    return lambda: bool(dead)


def _successor(world: HalfWorld, dead: Resolver) -> Resolver:
    """Start a resolver in place of one that is dead: the group has noticed it, and its transport is cut."""
    consumer = dead._core._consumer
    assert consumer is not None
    assert consumer.membership is not None
    dead._reactor.run(consumer.membership.leave())
    with dead._reactor.lock:
        for owner in dead._core.owners.values():
            owner._is_closing = True
        dead._core._is_closed = True
    dead._transport.close()
    successor = Resolver(SLOW, transport=world.broker._transport)
    successor.start()
    return successor


@pytest.mark.parametrize(
    ("method", "after"),
    [("carry_out", False), ("_end", False), ("_end", True)],
    ids=["before-the-transaction", "before-the-commit", "after-the-commit"],
)
def test_an_owner_dies_and_the_next_one_finishes_its_work(
    world: HalfWorld, monkeypatch: pytest.MonkeyPatch, method: str, after: bool
) -> None:
    has_died = _die_at(monkeypatch, method, after=after)
    dead = Resolver(SLOW, transport=world.broker._transport)
    dead.start()
    wait_for(lambda: is_ready(dead), "the resolver")
    world.half("a")
    world.decide("a")
    wait_for(has_died, "the death of the owner")
    if not after:
        assert world.values() == []
    with _successor(world, dead) as successor:
        world.wait_visible("a")
        wait_for(lambda: total(successor).ended == 1, "the next owner")
        world.half("b")
        world.decide("b")
        world.wait_visible("a", "b")
        assert world.checks() == []


def test_real_records_without_end_are_never_visible_and_moved_again(world: HalfWorld) -> None:
    with world.resolver():
        pass
    number = half_partition("a", PARTITIONS)
    world.half("a")
    world.decide("a")
    dead = world.broker.producer(transactional_id=owner_id(number))
    dead.init_transactions()
    dead.begin_transaction()
    dead.send("t", b"a", b"k", partition=0)
    dead.flush()
    with world.resolver():
        world.wait_visible("a")
    assert world.end_of("t") == 4  # the record and the marker of each transaction


def test_a_parked_copy_and_its_end_are_in_one_transaction(
    world: HalfWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_died = _die_at(monkeypatch, "_end", after=False)
    dead = Resolver(SLOW, transport=world.broker._transport)
    dead.start()
    wait_for(lambda: is_ready(dead), "the resolver")
    world.half("a")
    world.decide("a", PARK, DecidedBy.ADMIN)
    wait_for(has_died, "the death of the owner")
    assert not any(isinstance(each, EndRecord) for each in world.log())
    with _successor(world, dead) as successor:
        wait_for(lambda: total(successor).parked == 1, "the parked half")
        assert list(world.parked()) == ["a"]
        assert sum(isinstance(each, EndRecord) for each in world.log()) == 1


def test_an_owner_that_was_fenced_during_a_move_writes_nothing(
    world: HalfWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = half_partition("a", PARTITIONS)
    original, waits = Mover._end, [Promise[None]()]

    async def end(self: Mover) -> None:
        if waits:
            await waits[0]
        await original(self)

    monkeypatch.setattr(Mover, "_end", end)
    with world.resolver() as resolver:
        world.half("a")
        world.decide("a")
        wait_for(lambda: world.end_of("t") == 1, "the record of the open transaction")
        with world.broker.producer(transactional_id=owner_id(number)) as other:
            other.init_transactions()
        with resolver._reactor:
            waits.pop().set(None)
        world.wait_visible("a")
        wait_for(lambda: is_ready(resolver) and total(resolver).ended == 1, "the owner's second life")
        assert sum(isinstance(each, EndRecord) for each in world.log()) == 1


def test_a_resolver_that_starts_again_repeats_a_check_with_the_same_number(world: HalfWorld) -> None:
    with world.resolver(FAST):
        world.half("a")
        wait_for(world.checks, "the check")
    with world.resolver(FAST):
        wait_for(lambda: len(world.checks()) == 2, "the repeated check")
        assert [ask.ask_no for ask in world.checks()] == [1, 1]
    world.asked("a", 1)
    with world.resolver(FAST):
        wait_for(lambda: len(world.checks()) == 3, "the next check")
        assert world.checks()[2].ask_no == 2


def test_two_resolvers_divide_the_partitions_and_one_takes_over(world: HalfWorld) -> None:
    with world.resolver() as first:
        second = Resolver(SLOW, transport=world.broker._transport)
        second.start()
        wait_for(lambda: len(first.status()) == len(second.status()) == 1, "the division")
        names = [f"id{number}" for number in range(10)]
        for name in names:
            world.half(name)
            world.decide(name)
        world.wait_visible(*names)
        second.close()
        wait_for(lambda: is_ready(first), "the partitions of the other one")
        world.half("last")
        world.decide("last")
        world.wait_visible(*names, "last")
        assert total(first).ended == 11


# Topics that take no records


def test_a_half_of_a_deleted_topic_is_parked_and_its_neighbours_are_moved(world: HalfWorld) -> None:
    world.admin.create_topic("gone")
    with world.resolver() as resolver:
        for name in ("a", "b", "c"):
            world.half(name, ("t", 0), *((("gone", 0),) if name == "b" else ()))
        world.admin.delete_topics(["gone"])
        for name in ("a", "b", "c"):
            world.decide(name)
        world.wait_visible("a", "c")
        wait_for(lambda: total(resolver).parked == 1, "the parked half")
        copy = world.parked()["b"]
        assert copy is not None
        assert copy.reason == "gone: topic gone does not exist"
        assert "gone" not in {each.name for each in world.admin.list_topics()}

        world.admin.create_topic("gone")
        world.decide("b", RESUME, DecidedBy.ADMIN)
        wait_for(lambda: total(resolver).prepared == 1, "the resumed half")
        world.decide("b")
        world.wait_visible("a", "b", "c")


def test_a_half_that_has_become_too_large_is_parked_and_its_neighbours_are_moved(world: HalfWorld) -> None:
    """All are decided before the resolver starts, which settles them together first."""
    world.admin.create_topic("small")
    with world.resolver():
        names = [f"id{number}" for number in range(6)]
        for name in names:
            world.half(name, ("small", 0), ("t", 0), value=None if name != "id3" else b"x" * 2_000)
    topic = ConfigResource(ConfigResourceType.TOPIC, "small")
    world.admin.incremental_alter_configs({topic: [AlterConfigOp("max.message.bytes", "500")]})
    for name in names:
        world.decide(name)
    with world.resolver() as resolver:
        world.wait_visible(*(name for name in names if name != "id3"))
        wait_for(lambda: total(resolver).parked == 1, "the parked half")
        copy = world.parked()["id3"]
        assert copy is not None
        assert "MESSAGE_TOO_LARGE" in copy.reason


def test_a_half_of_the_largest_size_is_checked_and_parked(world: HalfWorld) -> None:
    topic = ConfigResource(ConfigResourceType.TOPIC, "t")
    world.admin.incremental_alter_configs({topic: [AlterConfigOp("max.message.bytes", "9000000")]})
    with world.resolver(FAST) as resolver:
        world.half("a", value=bytes((8 << 20) - 1_000))
        (ask, *_) = wait_for(world.checks, "the check")
        assert len(ask.batches[0].records) > 8_000_000
        world.decide("a", PARK, DecidedBy.ADMIN)
        wait_for(lambda: total(resolver).parked == 1, "the parked half")
        copy = world.parked()["a"]
        assert copy is not None
        assert copy.batches == ask.batches
        world.decide("a", RESUME, DecidedBy.ADMIN)
        wait_for(lambda: total(resolver).prepared == 1, "the resumed half")
        world.decide("a")
        wait_for(lambda: len(world.values()) == 1, "the record")


def test_a_partition_that_does_not_exist_parks_the_half(world: HalfWorld) -> None:
    with world.resolver() as resolver:
        world.half("a", ("t", 7))
        world.decide("a")
        wait_for(lambda: total(resolver).parked == 1, "the parked half")
        copy = world.parked()["a"]
        assert copy is not None
        assert copy.reason == "t: t has no partition 7: it has 0 to 1"


def test_bytes_that_are_no_batch_park_the_half(world: HalfWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    class Garbage:
        def build(self, _: object) -> bytes:
            return b"no batch"

    with world.resolver() as resolver:
        world._builder = Garbage()  # type: ignore[assignment]
        world.half("a")
        world.decide("a")
        wait_for(lambda: total(resolver).parked == 1, "the parked half")
        copy = world.parked()["a"]
        assert copy is not None
        assert copy.reason == "t: 8 bytes are not one record batch of magic 2"


def test_a_failure_that_passes_delays_the_halves_of_its_topic_only(
    world: HalfWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("txnkafka.checkback.resolver.settler._PAUSE_MS", 50)
    world.admin.create_topic("slow")
    original, failures = Mover.carry_out, [NetworkError("the leader is away")] * 4

    async def carry_out(self: Mover, content: Any) -> None:
        if failures and any(each.topic == "slow" for each in content.batches):
            error = failures.pop()
            raise mover_module.SettlementError(error, {"slow": error}, is_fatal=False)
        await original(self, content)

    monkeypatch.setattr(Mover, "carry_out", carry_out)
    with world.resolver() as resolver:
        names = [f"id{number}" for number in range(6)]
        for name in names:
            world.half(name, ("t", 0), *((("slow", 0),) if name == "id3" else ()))
        for name in names:
            world.decide(name)
        world.wait_visible(*names)
        wait_for(lambda: total(resolver).ended == 6, "the end of all halves")
        assert (failures, total(resolver).parked) == ([], 0)


def test_a_general_failure_is_repeated(world: HalfWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txnkafka.checkback.resolver.settler._PAUSE_MS", 20)
    original, failures = Mover.carry_out, [KafkaError("the coordinator is away")] * 3

    async def carry_out(self: Mover, content: Any) -> None:
        if failures:
            raise mover_module.SettlementError(failures.pop(), {}, is_fatal=False)
        await original(self, content)

    monkeypatch.setattr(Mover, "carry_out", carry_out)
    with world.resolver():
        world.half("a")
        world.decide("a")
        world.wait_visible("a")
        assert failures == []


def test_the_owner_recovers_from_a_bug(world: HalfWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    original, failures = Mover.carry_out, [1]

    async def carry_out(self: Mover, content: Any) -> None:
        if failures:
            failures.pop()
            raise ZeroDivisionError
        await original(self, content)

    monkeypatch.setattr(Mover, "carry_out", carry_out)
    with world.resolver():
        world.half("a")
        world.decide("a")
        world.wait_visible("a")


def test_a_damaged_record_of_the_log_does_not_stop_the_others(world: HalfWorld) -> None:
    with world.resolver() as resolver:
        for number in range(PARTITIONS):
            world._producer.send(HALF_TOPIC, b"\0", b"\0\0\0", partition=number).result()
        world.half("a")
        world.decide("a")
        world.wait_visible("a")
        assert all(owner.image.unreadable == 1 for owner in resolver._core.owners.values())


def test_a_partition_that_cannot_be_read_does_not_stop_the_others(world: HalfWorld) -> None:
    good = next(name for name in map(str, range(9)) if half_partition(name, PARTITIONS) == 0)
    with world.resolver() as resolver:
        consumer = resolver._core._consumer
        assert consumer is not None
        with resolver._reactor:
            state = consumer.subscription.assigned[TopicPartition(HALF_TOPIC, 1)]
            state.failure = CorruptRecordError("a damaged batch")
        world.half(good)
        world.decide(good)
        world.wait_visible(good)
        assert state.is_paused

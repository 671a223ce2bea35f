"""A resolver that starts on an old log: many halves, compaction, payloads."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.checkback.resolver_world import (
    FAST,
    PARTITIONS,
    HalfWorld,
    total,
    wait_for,
)
from txnkafka import Broker
from txnkafka.checkback.half_topics import HALF_TOPIC, PARKED_TOPIC
from txnkafka.checkback.resolver import Resolver
from txnkafka.client.admin import AlterConfigOp, ConfigResource, ConfigResourceType
from txnkafka.coordinator.half.half_image import Half, HalfImage, HalfState
from txnkafka.record.builder import RecordBatchBuilder
from txnkafka.wire.records.half_records import (
    DecidedBy,
    HalfBatch,
    HalfRecord,
    HalfRecordType,
    HalfTombstone,
    Outcome,
)

COMMIT, ROLLBACK, PARK, RESUME = Outcome
UNDECIDED = 10_000
MOST_BYTES = 20 << 20


@pytest.fixture
def world() -> Iterator[HalfWorld]:
    with Broker.in_memory() as broker:
        yield HalfWorld(broker)


@pytest.mark.parametrize("size", [100, 4_000])
def test_many_undecided_halves_need_little_memory(size: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The image is measured, with its schedule: payloads beyond its budget are only in the log."""
    builder = RecordBatchBuilder("none")
    batch = bytes(builder.build([(b"k", bytes(size), 1, [])]))
    rows = [
        HalfRecord(f"{number:032x}", number, "orders", 1, (HalfBatch("t", 0, batch),)).encode()
        for number in range(UNDECIDED)
    ]
    tracemalloc.start()
    try:
        image = HalfImage()
        for offset, (key, value) in enumerate(rows):
            image.replay(offset, key, value)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    began = time.perf_counter()
    again = HalfImage()
    for offset, (key, value) in enumerate(rows):
        again.replay(offset, key, value)
    seconds = time.perf_counter() - began
    with capsys.disabled():
        print(f"\n{UNDECIDED} halves of {size} bytes: {used / 2**20:.1f} MiB, replayed in {seconds:.2f} s")
    assert len(image) == len(again) == UNDECIDED
    assert used < MOST_BYTES


def test_a_resolver_starts_on_many_undecided_halves(
    world: HalfWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    with world.resolver():
        pass
    for number in range(UNDECIDED):
        world.half_later(f"id{number}")
    world.decide("id7")
    began = time.perf_counter()
    with world.resolver() as resolver:
        seconds = time.perf_counter() - began
        assert total(resolver).prepared in (UNDECIDED - 1, UNDECIDED)
        world.wait_visible("id7")
    with capsys.disabled():
        print(f"\na resolver was ready on {UNDECIDED} undecided halves in {seconds:.2f} s")


def test_every_state_survives_compaction(tmp_path: Path) -> None:
    settings = {"log.cleaner.backoff.ms": 10, "log.cleaner.delete.retention.ms": 0}
    with Broker.open(tmp_path / "data", **settings) as broker:
        world = HalfWorld(broker)
        with world.resolver(FAST):
            pass
        for topic in (HALF_TOPIC, PARKED_TOPIC):
            world.admin.incremental_alter_configs(
                {
                    ConfigResource(ConfigResourceType.TOPIC, topic): [
                        AlterConfigOp(name, value)
                        for name, value in {
                            "segment.bytes": "2000000", "segment.ms": "50",
                            "min.cleanable.dirty.ratio": "0.0", "delete.retention.ms": "0",
                        }.items()
                    ]
                }
            )  # fmt: skip
        with world.resolver() as resolver:
            for number in range(30):
                world.half(f"done{number}")
                world.decide(f"done{number}")
            world.half("parked")
            world.decide("parked", PARK, DecidedBy.ADMIN)
            world.half("prepared")
            wait_for(lambda: total(resolver)[2:6] == (1, 0, 1, 30), "the settlements")
        world.half("decided")
        world.decide("decided", ROLLBACK)
        world.decide("decided", COMMIT)  # contrary, without an owner
        wait_for(lambda: _rolled(world) and _left(world) == {"prepared", "decided"}, "compaction")
        visible = world.values()
        with world.resolver(FAST) as resolver:
            wait_for(lambda: total(resolver).ended == 31, "the rollback")
            assert {half.transaction_id: half.state for half in _halves(resolver)} == {
                "prepared": HalfState.PREPARED, "parked": HalfState.PARKED,
            }  # fmt: skip
            assert {ask.transaction_id for ask in wait_for(world.checks, "the check")} == {"prepared"}
            world.decide("parked", RESUME)
            wait_for(lambda: total(resolver).prepared == 2, "the resumed half")
            for name in ("parked", "prepared"):
                world.decide(name)
            wait_for(lambda: len(world.values()) == len(visible) + 2, "both halves")
            assert sorted(world.values()) == sorted([*visible, b"parked", b"prepared"])


def _rolled(world: HalfWorld) -> bool:
    """Append to each partition, so that older records are in closed segments."""
    for number in range(PARTITIONS):
        world._producer.send(HALF_TOPIC, None, b"\0\x02\0\1x", partition=number).result()
    return True


def _left(world: HalfWorld) -> set[str]:
    """Return the halves with a HALF record or its tombstone in the log."""
    return {
        each.transaction_id
        for each in world.log()
        if isinstance(each, HalfRecord)
        or (isinstance(each, HalfTombstone) and each.type is HalfRecordType.HALF)
    }


def _halves(resolver: Resolver) -> list[Half]:
    return [half for owner in resolver._core.owners.values() for half in owner.image]

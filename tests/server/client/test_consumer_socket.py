"""Consumers over a socket: records, groups of both protocols, groups with librdkafka, and a broker that
restarts."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer as LibrdkafkaConsumer

from tests.unit.client.consumer.wire_client import WireClient
from txnkafka import Broker
from txnkafka.client.consumer import Consumer
from txnkafka.model import TopicPartition

PROTOCOLS = ("classic", "consumer")
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.min.heartbeat.interval.ms": 50,
    "group.consumer.heartbeat.interval.ms": 50,
}
WAIT = 20_000
ROUNDS = 2_000


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.in_memory(**SETTINGS) as opened:
        opened.serve("127.0.0.1:0")
        yield opened


def reader(broker: Broker, **settings: Any) -> Consumer:
    given = {
        "bootstrap_servers": broker.address, "auto_offset_reset": "earliest", "heartbeat_interval_ms": 50,
        "session_timeout_ms": 6_000, **settings,
    }  # fmt: skip
    return Consumer(given)


def filled(broker: Broker, topic: str, partitions: int, count: int) -> list[TopicPartition]:
    """Create a topic with so many records in each partition, and a transaction that was aborted."""
    wire = WireClient(broker)
    wire.create(topic, partitions)
    found = [TopicPartition(topic, number) for number in range(partitions)]
    transaction = wire.begin(topic)
    for partition in found:
        transaction.write(partition, b"aborted")
    transaction.end(commit=False)
    for partition in found:
        for start in range(0, count, 100):
            wire.values(partition, *(b"%d" % number for number in range(start, min(count, start + 100))))
    return found


def poll_until(consumers: Collection[Consumer], is_done: Any) -> None:
    for _ in range(ROUNDS):
        if is_done():
            return
        for consumer in consumers:
            consumer.poll(20)
    raise AssertionError([consumer.assignment() for consumer in consumers])


def test_records_columns_and_arrow(broker: Broker) -> None:
    partitions = filled(broker, "orders", 2, 1_000)
    with reader(broker) as consumer:
        consumer.assign(partitions)
        values: list[list[bytes]] = [[], []]
        while sum(map(len, values)) < 2_000:
            for record in consumer.poll(WAIT):
                values[record.partition].append(record.value)
        assert values == [[b"%d" % number for number in range(1_000)]] * 2
        consumer.seek_to_beginning()
        count = 0
        while count < 2_000:
            count += consumer.poll_arrow(WAIT).num_rows
        assert count == 2_000
        assert {consumer.position(each) for each in partitions} == {1_002}
        assert consumer.end_offsets(partitions) == dict.fromkeys(partitions, 1_002)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_divides_and_hands_over(broker: Broker, protocol: str) -> None:
    partitions = filled(broker, "orders", 4, 10)
    one = reader(broker, group_id="g", group_protocol=protocol)
    two = reader(broker, group_id="g", group_protocol=protocol)
    seen: list[tuple[int, int]] = []
    for consumer in (one, two):
        consumer.subscribe(["orders"])
    for _ in range(ROUNDS):
        if len(seen) >= 40 and all(len(each.assignment()) == 2 for each in (one, two)):
            break
        for consumer in (one, two):
            seen += [(each.partition, each.offset) for each in consumer.poll(20)]
    assert len(set(seen)) == len(seen) == 40
    two.close()
    poll_until([one], lambda: one.assignment() == set(partitions))
    assert one.committed(partitions) == dict.fromkeys(partitions, (12, "", 0))
    one.close()


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
@pytest.mark.parametrize("is_leader", [True, False])
def test_a_group_with_librdkafka(broker: Broker, assignor: str, is_leader: bool) -> None:
    """Whichever joins first leads, and assigns for both."""
    partitions = filled(broker, "orders", 4, 1)
    ours = reader(broker, group_id="g", partition_assignment_strategy=assignor)
    theirs = LibrdkafkaConsumer(
        {
            "bootstrap.servers": broker.address, "group.id": "g", "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 50, "session.timeout.ms": 6_000,
            "partition.assignment.strategy": assignor,
        }
    )  # fmt: skip
    first = (lambda: ours.poll(20)) if is_leader else (lambda: theirs.poll(0.02))
    (theirs if not is_leader else ours).subscribe(["orders"])
    for _ in range(ROUNDS):
        if len(ours.assignment() if is_leader else theirs.assignment()) == 4:
            break
        first()
    (ours if not is_leader else theirs).subscribe(["orders"])
    for _ in range(ROUNDS):
        mine = {each.partition for each in ours.assignment()}
        others = {each.partition for each in theirs.assignment()}
        if len(mine) == len(others) == 2:
            break
        ours.poll(20)
        theirs.poll(0.02)
    assert (mine | others, mine & others) == ({each.partition for each in partitions}, set())
    theirs.close()
    ours.close()


def test_reading_and_the_group_survive_a_restart(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with Broker.open(data, **SETTINGS) as broker:
        address = broker.serve("127.0.0.1:0")
        (partition,) = filled(broker, "orders", 1, 10)
        consumer = reader(broker, group_id="g", auto_commit_interval_ms=0)
        consumer.subscribe(["orders"])
        found: list[int] = []
        for _ in range(ROUNDS):
            found += [each.offset for each in consumer.poll(20)]
            if len(found) >= 10:
                break
    assert consumer.poll(20) == []  # nobody is there
    with Broker.open(data, **SETTINGS) as broker:
        assert broker.serve(address) == address
        WireClient(broker).values(partition, b"after")
        for _ in range(ROUNDS):
            found += [each.offset for each in consumer.poll(20)]
            if len(found) >= 11:
                break
        assert found == [*range(2, 12), 12]
        consumer.close()

"""Transactional ids and producers that the broker forgets after a long time without use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from txnkafka import Broker, InvalidProducerIdMappingError, Producer, TopicPartition
from txnkafka.testing.broker_faults import advance, in_memory
from txnkafka.testing.movable_clock import MovableClock

DAY_MS = 86_400_000
PLACE = TopicPartition("orders", 0)


@pytest.fixture
def node() -> Iterator[tuple[Broker, MovableClock]]:
    broker, clock, _ = in_memory()
    with broker, broker.admin() as admin:
        admin.create_topic("orders")
        yield broker, clock


def commit(producer: Producer, value: bytes) -> None:
    with producer.transaction():
        producer.send("orders", value)


def values(broker: Broker) -> list[bytes | None]:
    with broker.consumer() as consumer:
        consumer.assign([PLACE])
        consumer.seek_to_beginning(PLACE)
        found: list[bytes | None] = []
        while consumer.lag(PLACE):
            found += [record.value for record in consumer.poll(1_000)]
        return found


def test_a_transactional_id_that_expired_needs_a_new_producer(node: tuple[Broker, MovableClock]) -> None:
    broker, clock = node
    with broker.producer(transactional_id="shop") as producer:
        commit(producer, b"before")
        advance(broker, clock, 8 * DAY_MS)
        with pytest.raises(InvalidProducerIdMappingError):
            commit(producer, b"never")
    with broker.producer(transactional_id="shop") as producer:
        commit(producer, b"after")
    assert values(broker) == [b"before", b"after"]


def test_a_partition_that_forgot_the_producer_of_a_living_id_accepts_it(
    node: tuple[Broker, MovableClock],
) -> None:
    broker, clock = node
    with broker.producer(transactional_id="shop") as producer, broker.admin() as admin:
        commit(producer, b"before")
        advance(broker, clock, 2 * DAY_MS)
        assert admin.describe_producers([PLACE])[PLACE] == ()
        commit(producer, b"after")
    assert values(broker) == [b"before", b"after"]


def test_an_idempotent_producer_continues_after_the_partition_forgot_it(
    node: tuple[Broker, MovableClock],
) -> None:
    broker, clock = node
    with broker.producer() as producer, broker.admin() as admin:
        for value in (b"1", b"2"):
            assert producer.send("orders", value).result().partition == 0
        advance(broker, clock, 2 * DAY_MS)
        assert admin.describe_producers([PLACE])[PLACE] == ()
        assert producer.send("orders", b"3").result().offset == 2
    assert values(broker) == [b"1", b"2", b"3"]


def test_an_open_transaction_keeps_its_producer(node: tuple[Broker, MovableClock]) -> None:
    broker, clock = node
    timeout_ms = 900_000
    with (
        broker.producer(transactional_id="shop", transaction_timeout_ms=timeout_ms) as producer,
        broker.admin() as admin,
    ):
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"1").result()
        advance(broker, clock, timeout_ms - 1_000)
        (state,) = admin.describe_producers([PLACE])[PLACE]
        assert state.current_transaction_start_offset == 0
        producer.commit_transaction()
    assert values(broker) == [b"1"]

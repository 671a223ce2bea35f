"""The clients for asyncio, in process and over a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from typing import Any

import pytest

from txnkafka import Broker, aio
from txnkafka.client.consumer import RebalanceListener
from txnkafka.errors import (
    ClosedError,
    IllegalStateError,
    MessageTooLargeError,
    ProducerFencedError,
    TopicAlreadyExistsError,
)
from txnkafka.model import TopicPartition

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.in_memory() as broker:
        yield broker


@pytest.fixture(params=["in process", "socket"])
def to_broker(broker: Broker, request: pytest.FixtureRequest) -> dict[str, Any]:
    """The argument that leads a client to the broker."""
    if request.param == "socket":
        return {"bootstrap_servers": broker.serve("127.0.0.1:0")}
    return {"broker": broker}


async def fail(producer: aio.Producer) -> None:
    async with producer.transaction():
        await producer.send_and_wait("orders", b"a mistake")
        raise ZeroDivisionError


def test_transactions_commit_and_abort(to_broker: dict[str, Any]) -> None:
    async def main() -> list[bytes | None]:
        async with aio.Admin(**to_broker) as admin:
            await admin.create_topic("orders", partitions=1)
            with pytest.raises(TopicAlreadyExistsError, match="orders"):
                await admin.create_topic("orders", partitions=1)
        async with aio.Producer(transactional_id="shop", **to_broker) as producer:
            async with producer.transaction():
                sent = await producer.send("orders", b"a book", key=b"anna")
            assert sent.done()
            assert (await sent).offset == 0
            with pytest.raises(ZeroDivisionError):
                await fail(producer)
            async with producer.transaction():
                assert (await producer.send_and_wait("orders", b"a lamp")).partition == 0
        async with aio.Consumer(auto_offset_reset="earliest", **to_broker) as consumer:
            await consumer.assign([ORDERS])
            found = []
            async for record in consumer:
                found.append(record.value)
                if len(found) == 2:
                    break
            assert await consumer.end_offsets([ORDERS]) == {ORDERS: await consumer.position(ORDERS)}
            return found

    assert asyncio.run(main()) == [b"a book", b"a lamp"]


def test_columns(to_broker: dict[str, Any]) -> None:
    async def main() -> None:
        async with aio.Producer(**to_broker) as producer:
            places = await producer.send_columns("orders", values=[b"a", b"b"], partition=0)
            assert [(each.partition, each.base_offset) for each in places] == [(0, 0)]
        async with aio.Consumer(auto_offset_reset="earliest", **to_broker) as consumer:
            await consumer.assign([ORDERS])
            table = await consumer.poll_arrow(20_000, columns=("value", "offset"))
            assert table.to_pydict() == {"value": [b"a", b"b"], "offset": [0, 1]}

    asyncio.run(main())


def test_many_tasks_send_beside_each_other(to_broker: dict[str, Any]) -> None:
    async def main() -> None:
        async with aio.Producer(linger_ms=1, **to_broker) as producer:

            async def send(number: int) -> int:
                return (await producer.send_and_wait("orders", b"%d" % number)).offset

            offsets = await asyncio.gather(*(send(number) for number in range(300)))
            assert sorted(offsets) == list(range(300))

    asyncio.run(main())


def test_the_event_loop_runs_while_a_consumer_waits(to_broker: dict[str, Any]) -> None:
    async def main() -> None:
        async with aio.Producer(**to_broker) as producer, aio.Consumer(**to_broker) as consumer:
            await producer.send_and_wait("orders", b"before")
            await consumer.assign([ORDERS])
            consumer.seek_to_end()
            assert await consumer.position(ORDERS) == 1
            waiting = asyncio.create_task(consumer.poll(20_000))
            await asyncio.sleep(0)
            assert not waiting.done()
            with pytest.raises(IllegalStateError, match="another task"):
                await consumer.poll(0)
            await producer.send_and_wait("orders", b"x")
            assert [record.value for record in await waiting] == [b"x"]

    asyncio.run(main())


def test_a_cancelled_poll_loses_no_record(to_broker: dict[str, Any]) -> None:
    async def main() -> None:
        async with aio.Producer(**to_broker) as producer, aio.Consumer(**to_broker) as consumer:
            await producer.send_and_wait("orders", b"before")
            await consumer.assign([ORDERS])
            consumer.seek_to_end()
            assert await consumer.position(ORDERS) == 1
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(consumer.poll(20_000), 0.05)
            await producer.send_and_wait("orders", b"x")
            assert [record.value for record in await consumer.poll(20_000)] == [b"x"]

    asyncio.run(main())


def test_a_group_calls_coroutines_of_its_listener_in_the_loop(to_broker: dict[str, Any]) -> None:
    calls = []

    class Listener(RebalanceListener):
        async def on_partitions_assigned(  # type: ignore[override]
            self, partitions: Collection[TopicPartition]
        ) -> None:
            await asyncio.sleep(0)
            calls.append(("assigned", sorted(partitions)))

        async def on_partitions_revoked(  # type: ignore[override]
            self, partitions: Collection[TopicPartition]
        ) -> None:
            await asyncio.sleep(0)
            calls.append(("revoked", sorted(partitions)))

    async def main() -> None:
        async with aio.Producer(**to_broker) as producer:
            await producer.send_and_wait("orders", b"x")
        consumer = aio.Consumer(group_id="g", auto_offset_reset="earliest", **to_broker)
        async with consumer:
            consumer.subscribe("orders", listener=Listener())
            assert [record.value for record in await consumer.poll(20_000)] == [b"x"]
            await consumer.commit()
            committed = (await consumer.committed([ORDERS]))[ORDERS]
            assert committed is not None
            assert committed.offset == 1

    asyncio.run(main())
    assert calls == [("assigned", [ORDERS]), ("revoked", [ORDERS])]


def test_errors_reach_the_task(to_broker: dict[str, Any]) -> None:
    async def main() -> None:
        async with aio.Producer(transactional_id="shop", **to_broker) as first:
            await first.init_transactions()
            async with aio.Producer(transactional_id="shop", **to_broker) as second:
                await second.init_transactions()
            with pytest.raises(ProducerFencedError):
                async with first.transaction():
                    await first.send("orders", b"x")
        with pytest.raises(ClosedError):
            await first.flush()
        async with aio.Producer(**to_broker) as third:
            with pytest.raises(MessageTooLargeError):
                await third.send("orders", bytes(2_000_000))

    asyncio.run(main())

"""Groups of real clients: librdkafka, kafka-python and aiokafka share partitions, commit offsets, and copy
from one topic to another exactly once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, ConsumerGroupState, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.server.serving import Serving

WAIT = 20.0
QUIET: dict[str, Any] = {"log_level": 0}
TOPICS = ("shared:2", "copied:1", "python:1", "asyncio:1", "restarted:1", "out:1")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with served(tmp_path_factory.mktemp("groups") / "data") as serving:
        yield serving
        assert serving.stop() == 0
        assert "error" not in serving.log()


def served(path: Path, port: int = 0) -> Serving:
    options = [word for topic in TOPICS for word in ("--create-topic", topic)]
    return Serving(path, *options, "--config", "group.initial.rebalance.delay.ms=0", port=port)


def consumer(broker: Serving, group: str, **options: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.address, "group.id": group, "auto.offset.reset": "earliest",
            "enable.auto.commit": False, "session.timeout.ms": 6000, "heartbeat.interval.ms": 200,
            **QUIET, **options,
        }
    )  # fmt: skip


def produce(broker: Serving, topic: str, *values: bytes) -> None:
    client = Producer({"bootstrap.servers": broker.address, "linger.ms": 0, **QUIET})
    for value in values:
        client.produce(topic, value, partition=0)
    assert client.flush(WAIT) == 0


def until(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not is_done():
        assert time.monotonic() < deadline, "it does not come"


def read(client: Consumer, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []

    def poll() -> bool:
        message = client.poll(0.2)
        if message is not None and message.error() is None:
            found.append(message.value())
        return len(found) >= count

    until(poll)
    return found


def committed(client: Consumer, topic: str) -> int:
    (found,) = client.committed([TopicPartition(topic, 0)], timeout=WAIT)
    return int(found.offset)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_two_members_share_the_partitions(broker: Serving, strategy: str) -> None:
    options = {"partition.assignment.strategy": strategy}
    first, second = (consumer(broker, f"shared {strategy}", **options) for _ in range(2))
    for client in (first, second):
        client.subscribe(["shared"])

    def are_shared() -> bool:
        first.poll(0.1)
        second.poll(0.1)
        return [len(first.assignment()), len(second.assignment())] == [1, 1]

    until(are_shared)
    admin = AdminClient({"bootstrap.servers": broker.address, **QUIET})
    name = f"shared {strategy}"
    described = admin.describe_consumer_groups([name], request_timeout=WAIT)[name].result(WAIT)
    assert described.state == ConsumerGroupState.STABLE
    assert sorted(len(each.assignment.topic_partitions) for each in described.members) == [1, 1]
    second.close()

    def has_all() -> bool:
        first.poll(0.1)
        return len(first.assignment()) == 2

    until(has_all)
    first.close()


def test_a_consumer_goes_on_where_its_group_has_committed(broker: Serving) -> None:
    produce(broker, "restarted", b"0", b"1", b"2", b"3")
    first = consumer(broker, "goes on")
    first.subscribe(["restarted"])
    assert read(first, 2)[:2] == [b"0", b"1"]
    first.commit(offsets=[TopicPartition("restarted", 0, 2)], asynchronous=False)
    first.close()
    second = consumer(broker, "goes on")
    second.subscribe(["restarted"])
    assert read(second, 2) == [b"2", b"3"]
    second.close()


def test_a_copy_commits_records_and_offsets_together(broker: Serving) -> None:
    produce(broker, "copied", *(b"%d" % number for number in range(6)))
    client = consumer(broker, "copies")
    client.subscribe(["copied"])
    writer = Producer(
        {"bootstrap.servers": broker.address, "transactional.id": "copier", "linger.ms": 0, **QUIET}
    )
    writer.init_transactions(WAIT)
    for round_number, commit in enumerate((True, False, True)):
        (value,) = read(client, 1)
        writer.begin_transaction()
        writer.produce("out", value, partition=0)
        after = [TopicPartition("copied", 0, int(value or b"") + 1)]
        writer.send_offsets_to_transaction(after, client.consumer_group_metadata(), WAIT)
        if commit:
            writer.commit_transaction(WAIT)
        else:
            writer.abort_transaction(WAIT)
        assert committed(client, "copied") == (1, 1, 3)[round_number]
    client.close()
    check = consumer(broker, "none")
    check.assign([TopicPartition("out", 0, 0)])
    assert read(check, 2) == [b"0", b"2"]
    check.close()


def test_kafka_python(broker: Serving) -> None:
    produce(broker, "python", b"a", b"b")
    settings = {
        "bootstrap_servers": broker.address, "group_id": "python", "auto_offset_reset": "earliest",
        "enable_auto_commit": False, "consumer_timeout_ms": int(WAIT * 1000),
    }  # fmt: skip
    with closing(kafka.KafkaConsumer("python", **settings)) as client:
        assert next(client).value == b"a"
        client.commit({kafka.TopicPartition("python", 0): kafka.OffsetAndMetadata(1, "words", -1)})
    with closing(kafka.KafkaConsumer("python", **settings)) as again:
        assert next(again).value == b"b"


def test_aiokafka(broker: Serving) -> None:
    produce(broker, "asyncio", b"a", b"b")

    async def copy() -> list[bytes]:
        found: list[bytes] = []
        for _ in range(2):
            client = aiokafka.AIOKafkaConsumer(
                "asyncio", bootstrap_servers=broker.address, group_id="asyncio",
                auto_offset_reset="earliest", enable_auto_commit=False,
            )  # fmt: skip
            writer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=broker.address, transactional_id="asyncio copier"
            )
            async with client, writer:
                message = await asyncio.wait_for(client.getone(), WAIT)
                found.append(message.value)
                async with writer.transaction():
                    await writer.send_and_wait("out", message.value, partition=0)
                    where = aiokafka.TopicPartition("asyncio", 0)
                    await writer.send_offsets_to_transaction({where: message.offset + 1}, "asyncio")
        return found

    assert asyncio.run(copy()) == [b"a", b"b"]


def test_a_group_outlives_a_kill_of_the_server(tmp_path: Path) -> None:
    with served(tmp_path / "data") as first:
        produce(first, "restarted", b"0", b"1", b"2")
        client = consumer(first, "outlives")
        client.subscribe(["restarted"])
        assert read(client, 1)[0] == b"0"
        client.commit(offsets=[TopicPartition("restarted", 0, 1)], asynchronous=False)
        port = first.port
        first.kill()
    with served(tmp_path / "data", port) as second:
        assert read(client, 2)[-1] == b"2"
        assert committed(client, "restarted") == 1
        client.close()
        assert second.stop() == 0
        assert "error" not in second.log()

"""Real clients on a real broker: what one of them is promised, another one sees."""

from __future__ import annotations

import asyncio
import select
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.server.serving import EVENT_LOOPS, Serving
from txnkafka.wire.messages import APIS, RequestHeader, write_request
from txnkafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

QUIET: dict[str, Any] = {"log_level": 0}
WAIT = 15.0


@pytest.fixture(scope="module", params=EVENT_LOOPS)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    path = tmp_path_factory.mktemp("serve") / "data"
    with Serving(path, "--create-topic", "shared:2", event_loop=request.param) as serving:
        yield serving
        assert serving.stop() == 0
        assert "error" not in serving.log()


def producer(broker: Serving, transactional_id: str | None = None, **options: Any) -> Producer:
    settings: dict[str, Any] = {"bootstrap.servers": broker.address, "linger.ms": 0, **QUIET, **options}
    if transactional_id is not None:
        settings["transactional.id"] = transactional_id
    made = Producer(settings)
    if transactional_id is not None:
        made.init_transactions(WAIT)
    return made


def transaction(client: Producer, topic: str, *values: bytes, commit: bool = True) -> None:
    client.begin_transaction()
    for value in values:
        client.produce(topic, value, partition=0)
    assert client.flush(WAIT) == 0
    (client.commit_transaction if commit else client.abort_transaction)(WAIT)


def values(broker: Serving, topic: str, isolation_level: str = "read_committed") -> list[bytes | None]:
    """All records of partition 0, up to the end that the broker says the consumer has."""
    settings: dict[str, Any] = {
        "bootstrap.servers": broker.address, "group.id": "none", "isolation.level": isolation_level,
        "enable.auto.commit": False, "enable.partition.eof": True, **QUIET,
    }  # fmt: skip
    client, found = Consumer(settings), list[bytes | None]()
    client.assign([TopicPartition(topic, 0, 0)])
    try:
        while (message := client.poll(WAIT)) is not None:
            if message.error() is not None:
                assert message.error().name() == "_PARTITION_EOF"
                return found
            found.append(message.value())
    finally:
        client.close()
    pytest.fail(f"{topic} has no end after {found}")


def create(broker: Serving, topic: str, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address, **QUIET})
    admin.create_topics([NewTopic(topic, 1, config=configs)], request_timeout=WAIT)[topic].result(WAIT)


# confluent-kafka


def test_transactions(broker: Serving) -> None:
    create(broker, "transactions")
    client = producer(broker, "transactions")
    transaction(client, "transactions", b"one", b"two")
    transaction(client, "transactions", b"never", commit=False)
    transaction(client, "transactions", b"three")
    assert values(broker, "transactions") == [b"one", b"two", b"three"]
    assert values(broker, "transactions", "read_uncommitted") == [b"one", b"two", b"never", b"three"]


def test_an_open_transaction_holds_read_committed_back(broker: Serving) -> None:
    create(broker, "open")
    client = producer(broker, "open")
    client.begin_transaction()
    client.produce("open", b"undecided", partition=0)
    assert client.flush(WAIT) == 0
    plain = producer(broker)
    plain.produce("open", b"behind", partition=0)
    assert plain.flush(WAIT) == 0
    assert values(broker, "open") == []
    assert values(broker, "open", "read_uncommitted") == [b"undecided", b"behind"]
    client.commit_transaction(WAIT)
    assert values(broker, "open") == [b"undecided", b"behind"]


def test_a_second_instance_fences_the_first(broker: Serving) -> None:
    create(broker, "fenced")
    first = producer(broker, "fenced")
    transaction(first, "fenced", b"before")
    first.begin_transaction()
    first.produce("fenced", b"zombie", partition=0)
    assert first.flush(WAIT) == 0
    second = producer(broker, "fenced")
    with pytest.raises(KafkaException) as caught:
        first.commit_transaction(WAIT)
    assert caught.value.args[0].fatal()
    transaction(second, "fenced", b"after")
    assert values(broker, "fenced") == [b"before", b"after"]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codecs(broker: Serving, codec: str) -> None:
    topic = f"codec-{codec}"
    client = producer(broker, **{"compression.codec": codec})
    for number in range(50):
        client.produce(topic, b"%03d" % number * 40)  # the topic is created by its first use
    assert client.flush(WAIT) == 0
    assert values(broker, topic) == [b"%03d" % number * 40 for number in range(50)]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(broker: Serving, acks: str) -> None:
    topic = f"acks-{acks}"
    create(broker, topic)
    client = producer(broker, acks=acks)
    client.produce(topic, b"a")
    assert client.flush(WAIT) == 0
    deadline = time.monotonic() + WAIT
    while values(broker, topic) != [b"a"]:  # with acks 0 nobody says when it is there
        assert time.monotonic() < deadline


def test_watermarks_and_times(broker: Serving) -> None:
    create(broker, "times")
    client = producer(broker)
    for number in range(5):
        client.produce("times", b"x", partition=0, timestamp=1_000_000_000_000 + number)
    assert client.flush(WAIT) == 0
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "none", **QUIET})
    try:
        assert consumer.get_watermark_offsets(TopicPartition("times", 0), WAIT) == (0, 5)
        (found,) = consumer.offsets_for_times([TopicPartition("times", 0, 1_000_000_000_003)], WAIT)
        assert found.offset == 3
    finally:
        consumer.close()


def test_a_consumer_that_waits_is_answered_by_a_flush(broker: Serving) -> None:
    """Its fetch may wait for longer than the test does."""
    create(broker, "waits")
    consumer = Consumer(
        {"bootstrap.servers": broker.address, "group.id": "none", "fetch.wait.max.ms": 300_000, **QUIET}
    )
    consumer.assign([TopicPartition("waits", 0, 0)])
    try:
        assert consumer.poll(0.5) is None
        client = producer(broker)
        client.produce("waits", b"now", partition=0)
        message = consumer.poll(WAIT)
        assert message is not None
        assert message.value() == b"now"
        client.flush(WAIT)
    finally:
        consumer.close()


def test_admin(broker: Serving) -> None:
    create(broker, "admin")
    admin = AdminClient({"bootstrap.servers": broker.address, **QUIET})
    metadata = admin.list_topics(timeout=WAIT)
    assert len(metadata.topics["shared"].partitions) == 2
    assert admin.describe_cluster().result(WAIT).cluster_id == metadata.cluster_id
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        admin.create_topics([NewTopic("admin", 1)], request_timeout=WAIT)["admin"].result(WAIT)
    admin.delete_topics(["admin"], request_timeout=WAIT)["admin"].result(WAIT)
    assert "admin" not in admin.list_topics(timeout=WAIT).topics


# kafka-python


def test_kafka_python(broker: Serving) -> None:
    create(broker, "python")
    client = kafka.KafkaProducer(bootstrap_servers=broker.address, transactional_id="python", linger_ms=0)
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=broker.address, isolation_level="read_committed", auto_offset_reset="earliest",
        consumer_timeout_ms=int(WAIT * 1000),
    )  # fmt: skip
    try:
        client.init_transactions()
        for value, ends in ((b"yes", client.commit_transaction), (b"no", client.abort_transaction)):
            client.begin_transaction()
            client.send("python", value, partition=0).get(WAIT)
            ends()
        client.begin_transaction()
        client.send("python", b"again", partition=0).get(WAIT)
        client.commit_transaction()
        partition = kafka.TopicPartition("python", 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        assert [next(consumer).value for _ in range(2)] == [b"yes", b"again"]
    finally:
        consumer.close()
        client.close()


# aiokafka


async def aio_transactions(address: str) -> list[bytes | None]:
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=address, transactional_id="aio") as client:
        async with client.transaction():
            await client.send_and_wait("aio", b"yes", partition=0)
        await client.begin_transaction()
        await client.send_and_wait("aio", b"no", partition=0)
        await client.abort_transaction()
        async with client.transaction():
            await client.send_and_wait("aio", b"again", partition=0)
    async with aiokafka.AIOKafkaConsumer(
        bootstrap_servers=address, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        partition = aiokafka.TopicPartition("aio", 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        return [(await asyncio.wait_for(consumer.getone(), WAIT)).value for _ in range(2)]


def test_aiokafka(broker: Serving) -> None:
    create(broker, "aio")
    assert asyncio.run(aio_transactions(broker.address)) == [b"yes", b"again"]


# Ends


@pytest.mark.parametrize(
    ("durability", "end"),
    [
        ("fsync", "SIGTERM"),
        ("page_cache", "SIGINT"),
        ("fsync", "SIGHUP"),
        ("fsync", "SIGKILL"),
        ("page_cache", "SIGKILL"),
    ],
)
def test_what_was_acknowledged_is_there_after_a_restart(tmp_path: Path, durability: str, end: str) -> None:
    data = tmp_path / "data"
    with Serving(data, "--create-topic", "t:1", "--durability", durability) as first:
        client = producer(first, "t")
        transaction(client, "t", b"committed")
        transaction(client, "t", b"aborted", commit=False)
        client.begin_transaction()
        client.produce("t", b"open", partition=0)
        assert client.flush(WAIT) == 0
        if end == "SIGKILL":
            first.kill()
        else:
            assert first.stop(getattr(signal, end)) == 0
    with Serving(data) as second:
        assert values(second, "t") == [b"committed"]
        assert values(second, "t", "read_uncommitted") == [b"committed", b"aborted", b"open"]
        transaction(producer(second, "t"), "t", b"next")
        assert values(second, "t") == [b"committed", b"next"]


def test_a_process_that_is_killed_loses_nothing_of_the_page_cache(tmp_path: Path) -> None:
    data, count = tmp_path / "data", 40
    with Serving(data, "--durability", "page_cache") as first:
        create(first, "t", **{"internal.segment.bytes": "1000"})
        client = producer(first, "t")
        for number in range(count):
            transaction(client, "t", b"%d" % number)
        first.kill()
    assert len(list((data / "t-0").glob("*.log"))) > 5
    with Serving(data) as second:
        assert values(second, "t") == [b"%d" % number for number in range(count)]


@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL"])
def test_an_end_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path, end: str) -> None:
    data, acknowledged = tmp_path / "data", list[bytes]()

    def delivered(error: Any, message: Any) -> None:
        if error is None:
            acknowledged.append(message.value())

    with Serving(data, "--create-topic", "t:1") as first:
        client = producer(first, **{"linger.ms": 1, "message.timeout.ms": 2000})
        for number in range(5000):
            client.produce("t", b"%d" % number, partition=0, on_delivery=delivered)
            client.poll(0)
        while len(acknowledged) < 500:
            assert client.poll(WAIT) > 0
        if end == "SIGKILL":
            first.kill()
        else:
            assert first.stop() == 0
        client.flush(WAIT)
    assert len(acknowledged) >= 500
    with Serving(data) as second:
        found = values(second, "t")
    assert found[: len(acknowledged)] == acknowledged
    assert found == [b"%d" % number for number in range(len(found))]


def test_a_client_goes_on_after_a_restart(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Serving(data, "--create-topic", "t:1") as first:
        port = first.port
        client = producer(first, "t")
        transaction(client, "t", b"before")
        first.kill()
    with Serving(data, port=port) as second:
        transaction(client, "t", b"after")
        assert values(second, "t") == [b"before", b"after"]


# Strangers


def conversation(broker: Serving, data: bytes) -> bytes:
    """What the broker says to these bytes before it closes the connection."""
    with socket.create_connection((broker.host, broker.port), WAIT) as connection:
        connection.sendall(data)
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
        return answer


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "looks like an HTTP client"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", "TLS connection"),
        (struct.pack(">i", 200 << 20), "socket.request.max.bytes"),
        (struct.pack(">ihhih", 10, 999, 0, 1, -1), "unknown API key 999"),
    ],
)
def test_a_stranger_is_named_and_left(broker: Serving, data: bytes, said: str) -> None:
    assert conversation(broker, data) == b""
    assert said in broker.log()


def test_answers_before_a_fault_are_sent(broker: Serving) -> None:
    versions = struct.pack(">ihhih", 10, 18, 0, 7, -1)
    answer = conversation(broker, versions + struct.pack(">ihhih", 10, 999, 0, 8, -1))
    assert answer[4:10] == struct.pack(">ih", 7, 0)


def test_a_broker_stops_reading_when_its_answers_are_not_taken(broker: Serving) -> None:
    create(broker, "large")
    client = producer(broker)
    client.produce("large", bytes(900_000), partition=0)
    assert client.flush(WAIT) == 0
    header = RequestHeader(APIS[1], 4, 7, "x" * 30_000)
    partitions = (FetchPartition(partition_max_bytes=1 << 20),)
    topics = (FetchTopic(topic="large", partitions=partitions),)
    frame = b"".join(map(bytes, write_request(header, FetchRequest(topics=topics))))
    with socket.create_connection((broker.host, broker.port), WAIT) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        sent = 0
        while select.select([], [connection], [], 0.5)[1]:
            sent += connection.send(frame[sent % len(frame) :])
            assert sent < 64 << 20
        rest = threading.Thread(target=connection.sendall, args=(frame[sent % len(frame) :],))
        rest.start()
        for _ in range(-(-sent // len(frame))):
            size, correlation_id = struct.unpack(">ii", exactly(connection, 8))
            assert correlation_id == 7
            assert len(exactly(connection, size - 4)) > 900_000
        rest.join()


def exactly(connection: socket.socket, size: int) -> bytearray:
    """So many bytes."""
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        assert part
        data += part
    return data

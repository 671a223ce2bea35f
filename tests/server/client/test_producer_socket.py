"""Producers over a socket: calls as in process, other clients beside them, and broken connections."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from threading import Thread
from typing import Any

import pytest

from txnkafka import Broker, TopicPartition
from txnkafka.client.producer import Producer
from txnkafka.errors import ProducerFencedError


@pytest.fixture
def address() -> Iterator[str]:
    with Broker.in_memory(num_partitions=2) as broker:
        yield broker.serve("127.0.0.1:0")


def producer_to(address: str, **settings: Any) -> Producer:
    return Producer(bootstrap_servers=address, **settings)


def read(address: str, topic: str) -> list[tuple[int, bytes]]:
    """Return (partition, value) of the committed records, read by another client."""
    confluent = pytest.importorskip("confluent_kafka")
    consumer = confluent.Consumer({
        "bootstrap.servers": address, "group.id": "reader", "auto.offset.reset": "earliest",
        "isolation.level": "read_committed", "enable.partition.eof": True,
    })  # fmt: skip
    consumer.assign([confluent.TopicPartition(topic, number, 0) for number in range(2)])
    found, ended = [], set()
    while len(ended) < 2:
        message = consumer.poll(10)
        assert message is not None, "no record and no end came"
        if message.error() is None:
            found.append((message.partition(), message.value()))
        elif message.error().code() == confluent.KafkaError._PARTITION_EOF:
            ended.add(message.partition())
        else:
            raise AssertionError(message.error())
    consumer.close()
    return sorted(found, key=lambda row: row[0])


def test_transactions_are_read_by_another_client(address: str) -> None:
    with producer_to(address, transactional_id="shop", compression_type="lz4") as producer:
        with producer.transaction():
            future = producer.send("orders", b"1", partition=0)
            result = producer.send_columns("orders", values=[b"2", b"3"], partition=1)
        producer.begin_transaction()
        producer.send("orders", b"aborted", partition=0).result()
        producer.abort_transaction()
        with producer.transaction():
            producer.send("orders", b"4", partition=0)
    assert (future.result().offset, result.result()) == (0, [("orders", 1, 0, 2)])
    assert read(address, "orders") == [(0, b"1"), (0, b"4"), (1, b"2"), (1, b"3")]


def test_a_second_producer_fences_the_first(address: str) -> None:
    with producer_to(address, transactional_id="shop") as first:
        first.init_transactions()
        first.begin_transaction()
        first.send("orders", b"zombie", partition=0).result()
        with producer_to(address, transactional_id="shop") as second, second.transaction():
            second.send("orders", b"1", partition=0)
        assert first.send("orders", b"zombie", partition=0).exception() is not None
        with pytest.raises(ProducerFencedError):
            first.abort_transaction()
    assert read(address, "orders") == [(0, b"1")]


def test_threads_send_beside_each_other(address: str) -> None:
    with producer_to(address, batch_size=1000) as producer:

        def send(thread: int) -> None:
            for number in range(500):
                producer.send("orders", b"%d %d" % (thread, number), partition=thread % 2)

        threads = [Thread(target=send, args=(number,)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    found = [value for _, value in read(address, "orders")]
    for thread in range(4):
        own = [value for value in found if value.startswith(b"%d " % thread)]
        assert own == [b"%d %d" % (thread, number) for number in range(500)]


class Breaker:
    """A proxy of ``target`` that ends each connection after some bytes of requests."""

    def __init__(self, after_bytes: int) -> None:
        self.target = ""
        self._after = after_bytes
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        self.is_breaking = True
        Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        host, _, port = self.target.rpartition(":")
        with client, socket.create_connection((host, int(port))) as server:
            back = Thread(target=self._copy, args=(server, client, 1 << 62), daemon=True)
            back.start()
            self._copy(client, server, self._after)
            back.join()

    def _copy(self, source: socket.socket, to: socket.socket, limit: int) -> None:
        copied = 0
        with suppress(OSError):
            while (content := source.recv(65536)) and (copied < limit or not self.is_breaking):
                to.sendall(content)
                copied += len(content)
        for each in (source, to):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()


def test_records_are_written_once_over_connections_that_break() -> None:
    breaker = Breaker(20_000)
    advertised = f"PLAINTEXT://{breaker.address}"
    with Broker.in_memory(num_partitions=2, advertised_listeners=advertised) as broker:
        breaker.target = broker.serve("127.0.0.1:0")
        producer = producer_to(breaker.address, batch_size=2000, reconnect_backoff_ms=1)
        values = [b"%d" % number * 10 for number in range(4000)]
        for value in values:
            producer.send("orders", value, partition=0)
        producer.flush()
        assert breaker.connections > 3
        breaker.is_breaking = False
        producer.close()
        assert [value for _, value in read(breaker.address, "orders")] == values
        breaker.close()


def test_partitions_and_metadata_over_a_socket(address: str) -> None:
    with producer_to(address) as producer:
        assert [row.number for row in producer.partitions_for("orders")] == [0, 1]
        future = producer.send("orders", b"1", key=b"anna", headers=[("h", b"v")], timestamp=5)
        assert future.result(timeout=30).timestamp == 5
        assert future.result().topic == TopicPartition("orders", 0).topic

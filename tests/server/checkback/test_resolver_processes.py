"""Resolvers over sockets, and in processes: ``txnkafka resolve``, ``txnkafka serve --resolve``."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.server.serving import Serving
from txnkafka import Admin, Broker, Consumer, Producer
from txnkafka.checkback.half_topics import CHECK_TOPIC, HALF_TOPIC, half_partition
from txnkafka.checkback.resolver import Resolver
from txnkafka.record.builder import RecordBatchBuilder
from txnkafka.wire.records.check_records import ask_record_of, decode_ask_log
from txnkafka.wire.records.half_records import (
    DecidedBy,
    DecideRecord,
    HalfBatch,
    HalfLogRecord,
    HalfRecord,
    Outcome,
)

pytestmark = pytest.mark.process
PARTITIONS = 2
FAST = {"transaction_timeout": 200, "transaction_check_interval": 200, "half_partitions": PARTITIONS}
PATIENCE_S = 60.0


class Client:
    """Writes halves and decisions, and reads topic ``orders``, over a socket."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._producer = Producer(bootstrap_servers=address, linger_ms=0)
        self._reader = Consumer(bootstrap_servers=address, topics=["orders"], auto_offset_reset="earliest")
        self._nonces = count(1)
        self._visible: list[bytes] = []

    def half(self, name: str) -> None:
        now_ms = time.time_ns() // 1_000_000
        batch = bytes(RecordBatchBuilder("none").build([(b"k", name.encode(), now_ms, [])]))
        batches = (HalfBatch("orders", 0, batch),)
        self._append(HalfRecord(name, next(self._nonces), "shop", now_ms, batches))

    def decide(self, name: str, outcome: Outcome = Outcome.COMMIT) -> None:
        self._append(DecideRecord(name, next(self._nonces), "shop", outcome, DecidedBy.PRODUCER, 1))

    def _append(self, record: HalfLogRecord) -> None:
        key, value = record.encode()
        partitions = len(self._producer.partitions_for(HALF_TOPIC))
        number = half_partition(record.transaction_id, partitions)
        self._producer.send(HALF_TOPIC, value, key, partition=number).result()

    def wait_visible(self, *names: str) -> None:
        def read() -> bool:
            self._visible += [each.value for each in self._reader.poll(100)]
            return len(self._visible) >= len(names)

        wait_for(read, f"{len(names)} visible halves")
        self._visible += [each.value for each in self._reader.poll(100)]
        assert sorted(self._visible) == sorted(name.encode() for name in names)

    def checks(self) -> set[str]:
        """The ids of the checks until now."""
        settings: dict[str, Any] = {"topics": [CHECK_TOPIC], "auto_offset_reset": "earliest"}
        with Consumer(bootstrap_servers=self.address, **settings) as consumer:
            records = [ask_record_of(decode_ask_log(each.key, each.value)) for each in consumer.poll(300)]
        return {each.transaction_id for each in records if each is not None}

    def close(self) -> None:
        self._producer.close()
        self._reader.close()


def wait_for(condition: Callable[[], object], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, f"{what} did not come"
        time.sleep(0.01)


def has_topics(address: str) -> bool:
    with Admin(bootstrap_servers=address) as admin:
        names = {each.name for each in admin.list_topics(include_internal=True)}
        return {HALF_TOPIC, CHECK_TOPIC} <= names


@pytest.fixture
def served() -> Iterator[tuple[Broker, str]]:
    with Broker.in_memory() as broker:
        broker.admin().create_topic("orders")
        yield broker, broker.serve("127.0.0.1:0")


def test_a_resolver_over_a_socket_and_its_successor(served: tuple[Broker, str]) -> None:
    _, address = served
    with Resolver(FAST, bootstrap_servers=address) as resolver:
        wait_for(lambda: sum(each.is_live for each in resolver.status()) == PARTITIONS, "the resolver")
        client = Client(address)
        for name in ("a", "b", "c"):
            client.half(name)
        client.decide("a")
        client.decide("b", Outcome.ROLLBACK)
        client.wait_visible("a")
        wait_for(lambda: "c" in client.checks(), "the check")
    with Resolver(FAST, bootstrap_servers=address):
        client.decide("c")
        client.wait_visible("a", "c")
        client.close()


def test_resolve_is_killed_and_another_process_takes_over(served: tuple[Broker, str], tmp_path: Path) -> None:
    _, address = served
    first = _resolve(address, tmp_path)
    wait_for(lambda: has_topics(address), "the topics")
    client = Client(address)
    client.half("a")
    client.decide("a")
    client.wait_visible("a")
    second = _resolve(address, tmp_path)
    first.kill()
    first.wait()
    client.half("b")
    client.decide("b")
    client.half("c")
    client.wait_visible("a", "b")
    wait_for(lambda: "c" in client.checks(), "the check of the undecided half")
    client.close()
    second.terminate()
    assert second.wait(60) == 0
    for process in (first, second):
        assert process.stdout is not None
        process.stdout.close()


def test_serve_resolves_and_continues_after_a_kill(tmp_path: Path) -> None:
    options = ("--resolve", "--create-topic", "orders:1", "--config", "offsets.topic.num.partitions=2")
    with Serving(tmp_path / "data", *options) as server:
        wait_for(lambda: has_topics(server.address), "the topics")
        client = Client(server.address)
        committed = [f"committed{number}" for number in range(5)]
        for name in (*committed, "rolled back", "undecided"):
            client.half(name)
        for name in committed:
            client.decide(name)
        client.decide("rolled back", Outcome.ROLLBACK)
        server.kill()
        client.close()
    with Serving(tmp_path / "data", *options) as server:
        client = Client(server.address)
        client.wait_visible(*committed)
        wait_for(lambda: client.checks() == {"undecided"}, "the check of the undecided half alone")
        client.decide("undecided")
        client.wait_visible(*committed, "undecided")
        client.close()
        assert server.stop() == 0
        assert "Traceback" not in server.log()


def _resolve(address: str, folder: Path) -> subprocess.Popen[str]:
    settings = [f"-X{name.replace('_', '.')}={value}" for name, value in FAST.items()]
    command = [sys.executable, "-m", "txnkafka", "resolve", "-b", address, *settings]
    with (folder / "resolve.log").open("a") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == f"resolving {address}\n"
    return process

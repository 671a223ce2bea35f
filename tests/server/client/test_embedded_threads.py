"""Many threads use one embedded broker: beside a busy thread, beside a server, and after its close."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest

from txnkafka import Broker, LogDirError, TopicPartition
from txnkafka.client.producer import Producer
from txnkafka.errors import ClosedError, KafkaError

SECONDS = 120  # after which a thread counts as stuck


def run_all(work: list[Callable[[], None]]) -> None:
    """Run functions in threads, and wait for all."""
    errors: list[BaseException] = []

    def guarded(function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=guarded, args=(each,), daemon=True) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in threads), "a thread is stuck"
    if errors:
        raise errors[0]


@pytest.mark.parametrize("is_served", [False, True], ids=["in process", "also served"])
def test_32_producers_beside_a_busy_thread(tmp_path: Path, is_served: bool) -> None:
    count, ended = 6, Event()

    def burn() -> None:
        while not ended.is_set():
            sum(range(1000))

    with Broker.open(tmp_path / "data") as broker:
        broker.admin().create_topic("orders", partitions=4)
        address = broker.serve("127.0.0.1:0") if is_served else ""

        def transact(number: int) -> Callable[[], None]:
            def run() -> None:
                name = f"producer-{number}"
                if is_served and number % 8 == 0:
                    producer = Producer(bootstrap_servers=address, transactional_id=name)
                else:
                    producer = broker.producer(transactional_id=name)
                with producer:
                    for i in range(count):
                        with producer.transaction():
                            for partition in (number % 4, (number + 1) % 4):
                                producer.send("orders", b"%d" % i, key=name.encode(), partition=partition)

            return run

        busy = Thread(target=burn, daemon=True)
        busy.start()
        try:
            run_all([transact(number) for number in range(32)])
        finally:
            ended.set()
        busy.join(SECONDS)
        found = defaultdict(list)
        with broker.consumer(consumer_timeout_ms=500) as consumer:
            consumer.assign([TopicPartition("orders", number) for number in range(4)])
            for record in consumer:
                found[record.key, record.partition].append(int(record.value or b""))
    assert len(found) == 64
    assert set(map(tuple, found.values())) == {tuple(range(count))}


def test_a_waiting_consumer_gets_a_record_of_another_thread(tmp_path: Path) -> None:
    with Broker.in_memory() as broker:
        broker.admin().create_topic("orders", partitions=1)
        got = []

        def read() -> None:
            with broker.consumer() as consumer:
                consumer.assign([TopicPartition("orders", 0)])
                while len(got) < 20:
                    got.extend(record.value for record in consumer.poll(30_000))

        def write() -> None:
            with broker.producer(linger_ms=1) as producer:
                for i in range(20):  # nobody waits for these, except the consumer
                    producer.send("orders", b"%d" % i)

        run_all([read, write])
        assert got == [b"%d" % i for i in range(20)]


def test_close_ends_the_calls_that_wait(tmp_path: Path) -> None:
    broker, entered = Broker.in_memory(), Event()
    errors: list[KafkaError] = []
    broker.admin().create_topic("orders", partitions=1)
    consumer = broker.consumer()
    consumer.assign([TopicPartition("orders", 0)])

    def read() -> None:
        entered.set()
        try:
            while True:
                consumer.poll(60_000)
        except KafkaError as error:
            errors.append(error)

    def close() -> None:
        entered.wait(SECONDS)
        broker.close()

    run_all([read, close])
    assert [type(error) for error in errors] == [ClosedError]


def test_clients_of_a_closed_broker_raise(tmp_path: Path) -> None:
    broker = Broker.open(tmp_path / "data")
    producer, consumer, admin = broker.producer(), broker.consumer(group_id="g"), broker.admin()
    producer.send("orders", b"x").result()
    broker.close()
    for call in (
        lambda: producer.send("orders", b"y"),
        producer.flush,
        lambda: consumer.subscribe("orders"),
        admin.list_topics,
        broker.producer,
    ):
        with pytest.raises(KafkaError, match="closed"):
            call()
    for client in (producer, consumer, admin):
        client.close()


def test_a_second_process_gets_the_process_id_of_the_owner(tmp_path: Path) -> None:
    with Broker.open(tmp_path / "data") as broker:
        producer = broker.producer()
        producer.send("orders", b"x").result()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            said = []
            for call in (lambda: producer.send("orders", b"y"), producer.flush, broker.admin):
                try:
                    call()
                    said.append("no error")
                except (ClosedError, LogDirError) as error:
                    said.append(str(error))
            os.write(write, "\n".join(said).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            said = pipe.read().decode().splitlines()
        os.waitpid(child, 0)
        assert len(said) == 3
        assert all(f"process {os.getpid()}" in line for line in said), said

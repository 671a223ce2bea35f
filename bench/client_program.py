"""The program of ``clients.ClientSide``: sends or reads records with one library; prints its costs as JSON.

    python -m bench.client_program LIBRARY WORK BOOTSTRAP COUNT

CPU seconds are those of the whole process, all threads of the library included, from the first record to the
last; creating the client, and joining its threads, is not counted.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

TOPIC, PARTITION = "bench", 0
VALUE = b"v" * 92  # with key, timestamps and lengths a record of 100 bytes
PER_TRANSACTION = 20_000


@contextmanager
def timed(found: dict[str, float]) -> Iterator[None]:
    """Measure CPU and wall clock of a block."""
    cpu, wall = time.process_time(), time.perf_counter()
    yield
    found["cpu"], found["wall"] = time.process_time() - cpu, time.perf_counter() - wall


def send_txnkafka(servers: str, count: int, found: dict[str, float]) -> None:
    from txnkafka import Producer

    with Producer(bootstrap_servers=servers, transactional_id="bench") as producer:
        producer.init_transactions()
        with timed(found):
            for _ in range(0, count, PER_TRANSACTION):
                with producer.transaction():
                    for _ in range(PER_TRANSACTION):
                        producer.send(TOPIC, VALUE, partition=PARTITION)


def send_columns_txnkafka(servers: str, count: int, found: dict[str, float]) -> None:
    import pyarrow as pa

    from txnkafka import Producer

    values = pa.array([VALUE] * PER_TRANSACTION)
    with Producer(bootstrap_servers=servers, transactional_id="bench") as producer:
        producer.init_transactions()
        with timed(found):
            for _ in range(0, count, PER_TRANSACTION):
                with producer.transaction():
                    producer.send_columns(TOPIC, values=values, partition=PARTITION)


def send_arrow_txnkafka(servers: str, count: int, found: dict[str, float]) -> None:
    import pyarrow as pa

    from txnkafka import Producer

    batch = pa.record_batch({"value": pa.array([VALUE] * PER_TRANSACTION)})
    with Producer(bootstrap_servers=servers, transactional_id="bench") as producer:
        producer.init_transactions()
        with timed(found):
            for _ in range(0, count, PER_TRANSACTION):
                with producer.transaction():
                    producer.send_arrow(TOPIC, batch, partition=PARTITION)


def send_confluent(servers: str, count: int, found: dict[str, float]) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": servers, "transactional.id": "bench", "queue.buffering.max.messages": 1_000_000}
    )
    producer.init_transactions()
    with timed(found):
        for _ in range(0, count, PER_TRANSACTION):
            producer.begin_transaction()
            for _ in range(PER_TRANSACTION):
                producer.produce(TOPIC, VALUE, partition=PARTITION)
            producer.commit_transaction()


def send_kafka_python(servers: str, count: int, found: dict[str, float]) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=servers, transactional_id="bench", linger_ms=5)
    producer.init_transactions()
    with timed(found):
        for _ in range(0, count, PER_TRANSACTION):
            producer.begin_transaction()
            for _ in range(PER_TRANSACTION):
                producer.send(TOPIC, VALUE, partition=PARTITION)
            producer.commit_transaction()
    producer.close()


def send_aiokafka(servers: str, count: int, found: dict[str, float]) -> None:
    from aiokafka import AIOKafkaProducer

    async def main() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id="bench", linger_ms=5)
        await producer.start()
        with timed(found):
            for _ in range(0, count, PER_TRANSACTION):
                async with producer.transaction():
                    for _ in range(PER_TRANSACTION):
                        await producer.send(TOPIC, VALUE, partition=PARTITION)
        await producer.stop()

    asyncio.run(main())


def read_txnkafka(servers: str, count: int, found: dict[str, float]) -> int:
    from txnkafka import Consumer, TopicPartition

    size = 0
    with Consumer(bootstrap_servers=servers) as consumer:
        consumer.assign([TopicPartition(TOPIC, PARTITION)])
        consumer.seek(TopicPartition(TOPIC, PARTITION), 0)
        with timed(found):
            for left, record in zip(range(count), consumer, strict=False):  # noqa: B007
                size += len(record.value or b"")
    return size


def read_arrow_txnkafka(servers: str, count: int, found: dict[str, float]) -> int:
    import pyarrow.compute as pc

    from txnkafka import Consumer, TopicPartition

    size = read = 0
    with Consumer(bootstrap_servers=servers) as consumer:
        consumer.assign([TopicPartition(TOPIC, PARTITION)])
        consumer.seek(TopicPartition(TOPIC, PARTITION), 0)
        with timed(found):
            while read < count:
                table = consumer.poll_arrow(1000, columns=("value", "offset")).slice(0, count - read)
                read += table.num_rows
                if table.num_rows:
                    size += pc.sum(pc.binary_length(table["value"])).as_py()
    return size


def read_confluent(servers: str, count: int, found: dict[str, float]) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, PARTITION, 0)])
    size = read = 0
    with timed(found):
        while read < count:
            for message in consumer.consume(min(500, count - read), 1):
                size += len(message.value())
                read += 1
    consumer.close()
    return size


def read_kafka_python(servers: str, count: int, found: dict[str, float]) -> int:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed")
    consumer.assign([TopicPartition(TOPIC, PARTITION)])
    consumer.seek(TopicPartition(TOPIC, PARTITION), 0)
    size = 0
    with timed(found):
        for left, record in zip(range(count), consumer, strict=False):  # noqa: B007
            size += len(record.value)
    consumer.close()
    return size


def main(library: str, work: str, servers: str, count: str) -> None:
    """Do the work, and print its costs."""
    name = f"{work}_{library}".replace("-", "_")
    function: Callable[..., Any] = globals()[name]
    found: dict[str, float] = {}
    size = function(servers, int(count), found)
    print(json.dumps({**found, "size": size}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

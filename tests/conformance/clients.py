"""Real clients that write: librdkafka (confluent-kafka), the Java producer, kafka-python."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from confluent_kafka import Producer
from confluent_kafka import TopicPartition as OffsetOf
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaProducer

from tests.conformance.broker import java
from txnkafka import TopicPartition

__all__ = ["Clients", "Message", "send"]

TEN_MINUTES_MS = 600_000
SECONDS = 30


class Message(NamedTuple):
    """What is sent; ``timestamp`` in milliseconds, None is the client's clock."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int | None = None


class Served(Protocol):
    """A broker that runs."""

    @property
    def bootstrap_servers(self) -> str:
        """Its address."""


class Clients:
    """Clients of one broker. Producers live until ``close``: one that is dropped would end what is open."""

    def __init__(self, kafka: Served) -> None:
        self.bootstrap_servers = kafka.bootstrap_servers
        # silent: when the broker stops they would say so, again and again
        self._common = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}
        self._admin = AdminClient(self._common)
        self._producers: list[Producer] = []

    def create(self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Create a topic and wait for it."""
        found = self._admin.create_topics([NewTopic(topic, partitions, 1, config=dict(config or {}))])
        found[topic].result(SECONDS)

    def producer(self, **config: object) -> Producer:
        """A producer of librdkafka; options with _ for the dots."""
        options = {name.replace("_", "."): value for name, value in config.items()}
        self._producers.append(Producer({**self._common, "linger.ms": 5, **options}))
        return self._producers[-1]

    def transactional(
        self, transactional_id: str, *, timeout_ms: int = TEN_MINUTES_MS, **config: object
    ) -> Producer:
        """A transactional one."""
        found = self.producer(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms, **config)
        found.init_transactions(SECONDS)
        return found

    def delete_records(self, which: TopicPartition, before: int) -> None:
        """DeleteRecords: ``before`` becomes the log start offset."""
        wanted = OffsetOf(*which, before)
        for each in self._admin.delete_records([wanted]).values():
            each.result(SECONDS)

    def produce_with_java(self, topic: str, records: int, transactional_id: str, transaction_ms: int) -> None:
        """Apache Kafka's own producer (ProducerPerformance), which speaks the newest transaction protocol."""
        options = f"--topic {topic} --num-records {records} --record-size 200 --throughput 2000"
        options += f" --bootstrap-server {self.bootstrap_servers}"
        options += f" --transactional-id {transactional_id} --transaction-duration-ms {transaction_ms}"
        command = java("-Xmx256m", "org.apache.kafka.tools.ProducerPerformance", *options.split())
        subprocess.run(command, check=True, capture_output=True)

    def leave_hanging(self, stray: TopicPartition, other: TopicPartition, transactional_id: str) -> None:
        """A transaction over both partitions of which the coordinator knows ``other`` only: its commit
        leaves ``stray`` without an end marker, for ever.

        The client is made to believe that it has told the coordinator already.
        """
        producer = KafkaProducer(bootstrap_servers=self.bootstrap_servers, transactional_id=transactional_id)
        producer.init_transactions()
        producer.begin_transaction()
        known: set[Any] = producer._transaction_manager._partitions_in_transaction
        known.add(stray)
        for topic, partition in (stray, other):
            producer.send(topic, partition=partition, value=b"late").get(SECONDS)
        producer.commit_transaction()
        producer.close()

    def close(self) -> None:
        """Drop the producers."""
        self._producers.clear()


def send(producer: Producer, topic: str, messages: Iterable[Message], partition: int = 0) -> None:
    """Send and wait until all of it is on the log."""
    failed: list[object] = []
    for key, value, headers, timestamp in messages:
        producer.produce(
            topic,
            value,
            key,
            partition,
            headers=list(headers),
            timestamp=timestamp or 0,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    remaining = producer.flush(SECONDS)
    if remaining or failed:
        raise RuntimeError(f"{topic}-{partition}: {remaining} not sent, {failed[:1]}")

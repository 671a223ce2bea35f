"""What the benchmarks ask of confluent-kafka beside producing: topics, and all records of a topic."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from bench.servers import Server

__all__ = ["SECONDS", "TOPIC", "create_topic", "messages"]

TOPIC = "bench"
SECONDS = 30  # until a client gives up
AT_ONCE = 10_000
PATIENCE = 0.02  # seconds: consume waits for as many messages as it is asked for, or so long


def create_topic(server: Server, partitions: int) -> None:
    """Create the topic of the benchmarks, and wait until all partitions are served: Kafka answers before."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, partitions, 1)])[TOPIC].result(SECONDS)
    wanted = {TopicPartition(TOPIC, number): OffsetSpec.latest() for number in range(partitions)}
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            for answer in admin.list_offsets(wanted, request_timeout=SECONDS).values():
                answer.result()
            return
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(PATIENCE)


def messages(
    server: Server, partitions: int, settings: Mapping[str, object] | None = None
) -> Iterator[list[Message]]:
    """Yield what a read_committed consumer is given, from the beginning of the topic to its end. Raises
    RuntimeError when the server does not bring it there."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": "bench",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
            **(settings or {}),
        }
    )
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(partitions)])
    ends: set[int] = set()
    deadline = time.monotonic() + SECONDS
    try:
        while len(ends) < partitions:
            found = consumer.consume(AT_ONCE, PATIENCE)
            if found:
                deadline = time.monotonic() + SECONDS
            elif time.monotonic() > deadline:
                raise RuntimeError(f"{server.name}: no end of the topic in {SECONDS} seconds")
            ended = [message.partition() for message in found if message.error()]
            ends.update(ended)
            yield [message for message in found if not message.error()] if ended else found
    except KafkaException as error:
        raise RuntimeError(f"{server.name}: {error}") from None
    finally:
        consumer.close()

"""Groups and their offsets go to Apache Kafka and come back: committed, pending in an open transaction, with
members."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.conformance.broker import KafkaBroker
from tests.server.serving import Serving

SECONDS = 30
TOPIC = "t"
STARTING = (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR)
"""What Apache Kafka answers in its first second; librdkafka's consumer hands it to its caller."""


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaBroker]:
    """Not running; its directory is that of our broker."""
    broker = KafkaBroker(tmp_path, {"offsets.topic.num.partitions": "50"}, is_static=True)
    yield broker
    broker.stop()


def served(kafka: KafkaBroker) -> Serving:
    return Serving(kafka.log_dir, "--create-topic", f"{TOPIC}:1")


def consumer(server: str, group: str, isolation_level: str = "read_committed") -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": server, "group.id": group, "auto.offset.reset": "earliest",
            "enable.auto.commit": False, "isolation.level": isolation_level, "log_level": 0,
        }
    )  # fmt: skip


def committed(server: str, group: str) -> int:
    """The last committed offset, pending ones aside: only read_committed consumers wait for those.

    A consumer asks, not an admin client: librdkafka 2.16 reads a null pointer when its admin client is told
    that a coordinator is loading.
    """
    client = consumer(server, group, "read_uncommitted")
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            (found,) = client.committed([TopicPartition(TOPIC, 0)], SECONDS)
        except KafkaException as error:
            if error.args[0].code() not in STARTING or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            client.close()
            return int(found.offset)


def commit(server: str, group: str, offset: int) -> None:
    client = consumer(server, group)
    client.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    client.close()


def transaction(server: str, transactional_id: str, offset: int) -> Producer:
    """A transaction that commits an offset of the group ``pending``, and is open."""
    client = consumer(server, "pending")
    client.assign([TopicPartition(TOPIC, 0, 0)])
    producer = Producer({"bootstrap.servers": server, "transactional.id": transactional_id, "log_level": 0})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    offsets = [TopicPartition(TOPIC, 0, offset)]
    producer.send_offsets_to_transaction(offsets, client.consumer_group_metadata(), SECONDS)
    client.close()
    return producer


def member(server: str) -> None:
    """A group whose only member reads a record, commits, and goes without a word."""
    writer = Producer({"bootstrap.servers": server, "log_level": 0})
    writer.produce(TOPIC, b"value", partition=0)
    assert writer.flush(SECONDS) == 0
    client = consumer(server, "members")
    client.subscribe([TOPIC])
    assert client.poll(SECONDS) is not None
    client.commit(asynchronous=False)
    client.close()


def test_groups_go_to_kafka_and_come_back(kafka: KafkaBroker) -> None:
    with served(kafka) as ours:
        commit(ours.address, "simple", 7)
        member(ours.address)
        commit(ours.address, "pending", 1)
        opened = transaction(ours.address, "first", 3)
        done = transaction(ours.address, "second", 2)
        done.commit_transaction(SECONDS)
        assert [committed(ours.address, each) for each in ("simple", "members", "pending")] == [7, 1, 2]
        assert ours.stop() == 0
    del opened

    kafka.start()
    there = kafka.bootstrap_servers
    assert [committed(there, each) for each in ("simple", "members", "pending")] == [7, 1, 2]
    transaction(there, "first", 5).commit_transaction(SECONDS)  # the new instance aborts what was open
    assert committed(there, "pending") == 5
    commit(there, "simple", 8)
    commit(there, "of kafka", 9)
    still_open = transaction(there, "third", 6)
    kafka.stop()
    del still_open

    with served(kafka) as ours:
        names = ("simple", "members", "pending", "of kafka")
        assert [committed(ours.address, each) for each in names] == [8, 1, 5, 9]
        transaction(ours.address, "third", 11).commit_transaction(SECONDS)
        assert committed(ours.address, "pending") == 11
        assert ours.stop() == 0
        assert "error" not in ours.log()

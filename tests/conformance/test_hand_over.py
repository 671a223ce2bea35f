"""A data directory goes from our broker to Apache Kafka and back: topics, records, transactional ids.

No record is lost or shown twice, a transaction that is open stays open, and no producer id is given out
twice.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Where

from tests.conformance.broker import KafkaBroker
from tests.unit.broker.node import Node
from tests.unit.broker.node import Producer as Ours
from txnkafka.env import LocalDataFiles, SystemClock
from txnkafka.error_codes import ErrorCode

SECONDS = 30
NONE = ErrorCode.NONE
Row = tuple[int, bytes]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """Not running; its directory is not there yet."""
    broker = KafkaBroker(tmp_path_factory.mktemp("hand-over"), is_static=True)
    broker.log_dir.mkdir(parents=True)
    yield broker
    broker.stop()


def ours(kafka: KafkaBroker) -> Node:
    """Our broker on the directory, by the clock of the machine."""
    return Node(
        LocalDataFiles(), str(kafka.log_dir), now_ms=SystemClock().now_ms(),
        transaction_state_log_num_partitions=50,
    )  # fmt: skip


def consumed(kafka: KafkaBroker, level: str = "read_committed") -> list[Row]:
    """What Kafka's consumer gets of both partitions."""
    options = {
        "bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "isolation.level": level,
        "enable.partition.eof": True, "log_level": 0,
    }  # fmt: skip
    consumer, found, ended = Consumer(options), list[Row](), 0
    consumer.assign([Where("t", 0, 0), Where("t", 1, 0)])
    while ended < 2:
        message = consumer.poll(SECONDS)
        assert message is not None, "nothing comes any more"
        if message.error():
            ended += 1
        else:
            found.append((message.partition(), message.value()))
    consumer.close()
    return sorted(found)


def send(kafka: KafkaBroker, transactional_id: str, value: bytes, partition: int) -> None:
    """A transaction of librdkafka."""
    options = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}
    producer = Producer({**options, "transactional.id": transactional_id})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce("t", value, partition=partition)
    producer.commit_transaction(SECONDS)


def test_a_directory_goes_to_kafka_and_comes_back(kafka: KafkaBroker) -> None:
    node = ours(kafka)
    assert node.create("t", 2, retention_ms="-1") == NONE
    open_one, done = Ours(node, "open"), Ours(node, "done")
    assert done.send(b"one", 0, 1) == [NONE, NONE]
    assert done.end() == NONE
    assert done.send(b"aborted", 0, 1) == [NONE, NONE]
    assert done.end(commit=False) == NONE
    assert open_one.send(b"open", 1) == [NONE]
    topic_id, given = node.broker.image.topics["t"].topic_id, done.identity.producer_id
    node.close()

    kafka.start()
    assert consumed(kafka) == [(0, b"one"), (1, b"one")]
    assert len(consumed(kafka, "read_uncommitted")) == 5
    send(kafka, "done", b"known id", 0)
    send(kafka, "new", b"new id", 0)
    kafka.stop()

    node = ours(kafka)
    assert node.broker.image.topics["t"].topic_id == topic_id
    assert node.broker.logs[next(iter(node.broker.logs))].fenced is None
    assert node.values(0) == [b"one", b"known id", b"new id"]
    assert node.values(1) == [b"one"]
    describe = node.broker.transactions.describe
    assert [describe(each).state for each in ("open", "done", "new")] == [
        "Ongoing", "CompleteCommit", "CompleteCommit"
    ]  # fmt: skip
    assert describe("done").producer_id == given
    later = Ours(node, "later")
    ids = [open_one.identity.producer_id, given, describe("new").producer_id, later.identity.producer_id]
    assert len(set(ids)) == 4
    open_one.node = node
    assert open_one.send(b"and more", 1) == [NONE]
    assert open_one.end() == NONE
    assert later.send(b"later", 0, 1) == [NONE, NONE]
    assert later.end() == NONE
    node.close()

    kafka.start()
    assert consumed(kafka) == [
        (0, b"known id"), (0, b"later"), (0, b"new id"), (0, b"one"),
        (1, b"and more"), (1, b"later"), (1, b"one"), (1, b"open"),
    ]  # fmt: skip

"""Directories with a dynamic quorum, which Apache Kafka has formatted, go to txnkafka and back.

No record is lost or shown twice, a transaction that is open can be continued, and no producer id is given
out twice.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Where
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.broker import KafkaBroker
from tests.unit.broker.node import Node
from tests.unit.broker.node import Producer as Ours
from txnkafka.broker.registry.metadata_snapshot import find_snapshots
from txnkafka.env import LocalDataFiles, SystemClock
from txnkafka.error_codes import ErrorCode

SECONDS = 30
NONE = ErrorCode.NONE
Row = tuple[int, bytes]


@pytest.fixture
def formatted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """Not running; its directory was formatted by ``kafka-storage format --standalone``. Kafka writes
    snapshots of its metadata often."""
    broker = KafkaBroker(
        tmp_path_factory.mktemp("formatted"), {"metadata.log.max.record.bytes.between.snapshots": "200"}
    )
    broker.format()
    yield broker
    broker.stop()


def ours(kafka: KafkaBroker, **configs: int) -> Node:
    """Our broker on the directory, by the clock of the machine."""
    configs.setdefault("transaction_state_log_num_partitions", 50)
    return Node(LocalDataFiles(), str(kafka.log_dir), now_ms=SystemClock().now_ms(), **configs)


def consumed(kafka: KafkaBroker, level: str = "read_committed") -> list[Row]:
    """Return the records that Kafka's consumer receives from both partitions."""
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


def create_topics(kafka: KafkaBroker, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    for future in admin.create_topics([NewTopic(name, 2, 1) for name in names]).values():
        future.result(SECONDS)


def topics(kafka: KafkaBroker) -> list[str]:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    return list(admin.list_topics(timeout=SECONDS).topics)


def test_a_directory_that_kafka_has_formatted_is_served_and_goes_to_kafka(formatted: KafkaBroker) -> None:
    """Never started there: the features come from bootstrap.checkpoint, the voter from 0-0.checkpoint."""
    node = ours(formatted)
    assert node.create("t", 2) == NONE
    first = Ours(node, "x")
    assert first.send(b"one", 0, 1) == [NONE, NONE]
    assert first.end() == NONE
    node.close()
    formatted.start()
    assert consumed(formatted) == [(0, b"one"), (1, b"one")]
    send(formatted, "x", b"two", 0)
    formatted.stop()
    node = ours(formatted)
    assert node.values(0) == [b"one", b"two"]
    node.close()


def replaced_by_our_snapshot(formatted: KafkaBroker) -> tuple[Ours, str]:
    """Add a topic, a transaction and an open one, and leave only our newest snapshot of the registry. Return
    the producer of the open transaction and the id of the topic ``t``."""
    directory = formatted.log_dir / "__cluster_metadata-0"
    of_kafka = find_snapshots(LocalDataFiles(), str(directory))
    assert len(of_kafka) > 1, "Kafka has written snapshots"
    node = ours(
        formatted, metadata_log_max_record_bytes_between_snapshots=1, metadata_max_retention_ms=-1,
        transaction_state_log_num_partitions=4,
    )  # fmt: skip
    assert set(node.broker.image.topics) >= {"t", "theirs"}
    assert node.values(0) == [b"theirs"]
    assert node.create("ours") == NONE
    mine = Ours(node, "y")
    assert mine.send(b"ours", 0, 1) == [NONE, NONE]
    assert mine.end() == NONE
    left = Ours(node, "open")
    assert left.send(b"open", 1) == [NONE]
    topic_id = node.broker.image.topics["t"].topic_id
    node.wait(1)
    newest = find_snapshots(LocalDataFiles(), str(directory))[-1]
    assert newest.end_offset > of_kafka[-1].end_offset
    assert node.broker.metadata.log.log_end_offset == newest.end_offset
    node.close()
    for path in directory.iterdir():
        if path.name != newest.name:
            path.unlink()
    return left, topic_id


def test_snapshots_of_both_and_a_dynamic_quorum_go_back_and_forth(formatted: KafkaBroker) -> None:
    """The log before the newest snapshot is removed: only the snapshot names the topics."""
    formatted.start()
    create_topics(formatted, "t", "theirs")
    send(formatted, "x", b"theirs", 0)
    formatted.stop()
    left, topic_id = replaced_by_our_snapshot(formatted)

    formatted.start()
    assert consumed(formatted) == [(0, b"ours"), (0, b"theirs"), (1, b"ours")]
    assert {"t", "theirs", "ours"} <= set(topics(formatted))
    send(formatted, "x", b"again", 0)
    send(formatted, "new", b"new id", 1)
    formatted.stop()

    node = ours(formatted, transaction_state_log_num_partitions=4)
    assert node.values(0) == [b"theirs", b"ours", b"again"]
    assert node.values(1) == [b"ours"], "the open transaction holds back the rest"
    assert node.broker.image.topics["t"].topic_id == topic_id
    left.node = node
    assert left.send(b"and more", 1) == [NONE]
    assert left.end() == NONE
    later = Ours(node, "later")
    assert later.send(b"later", 0) == [NONE]
    assert later.end() == NONE
    ids = [node.broker.transactions.describe(each).producer_id for each in ("x", "y", "new", "open", "later")]
    assert len(set(ids)) == 5
    node.close()

    formatted.start()
    assert consumed(formatted) == [
        (0, b"again"), (0, b"later"), (0, b"ours"), (0, b"theirs"),
        (1, b"and more"), (1, b"new id"), (1, b"open"), (1, b"ours"),
    ]  # fmt: skip

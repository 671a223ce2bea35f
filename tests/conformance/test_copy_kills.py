"""librdkafka and Java copy a topic in one group, and every third transaction is aborted, while the server and
the copiers are killed and paused. What is left is the same to `LogDir` and to Apache Kafka, which takes the
directory over. TXNKAFKA_COPY_SECONDS says how long (an hour: 3600), TXNKAFKA_SEED what happens when."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as Where

from tests.conformance.broker import KafkaBroker
from tests.conformance.copy_kills import (
    GROUP,
    PARTITIONS,
    SOURCE,
    TARGET,
    committed_offsets,
    copy_under_kills,
)
from txnkafka import LogDir, TopicPartition

COPY_SECONDS = float(os.environ.get("TXNKAFKA_COPY_SECONDS", "60"))
SEED = int(os.environ.get("TXNKAFKA_SEED", "1"))
SECONDS = 30


class Left(NamedTuple):
    """What the server has left."""

    kafka: KafkaBroker  # on the same directory, not running
    report: str


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    properties = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
    kafka = KafkaBroker(tmp_path_factory.mktemp("copies"), properties, is_static=True)
    yield Left(kafka, copy_under_kills(kafka.log_dir, seconds=COPY_SECONDS, seed=SEED))
    kafka.stop()


def test_everything_is_copied_once(left: Left, capsys: pytest.CaptureFixture[str]) -> None:
    """All comparisons are made in ``copy_under_kills``."""
    assert left.report.split()[0].isdigit()
    with capsys.disabled():
        print(f"\n{left.report}")


def test_kafka_reads_the_same(left: Left) -> None:
    """Records and offsets of the group, after Kafka has taken the directory over."""
    log_dir = LogDir(str(left.kafka.log_dir))
    log = {
        partition: [
            (record.offset, record.value) for record in log_dir.partition(TARGET, partition).records()
        ]
        for partition in range(PARTITIONS)
    }
    offsets = log_dir.committed_offsets()
    left.kafka.start()
    assert read(left.kafka.bootstrap_servers) == log
    assert committed_offsets(left.kafka.bootstrap_servers) == {
        partition: offsets[GROUP, TopicPartition(SOURCE, partition)].offset for partition in range(PARTITIONS)
    }


def read(server: str) -> dict[int, list[tuple[int, bytes | None]]]:
    """The copy, by Kafka's broker."""
    options = {
        "bootstrap.servers": server, "group.id": "none", "log_level": 0, "isolation.level": "read_committed",
        "enable.partition.eof": True,
    }  # fmt: skip
    consumer = Consumer(options)
    consumer.assign([Where(TARGET, partition, 0) for partition in range(PARTITIONS)])
    found: dict[int, list[tuple[int, bytes | None]]] = {partition: [] for partition in range(PARTITIONS)}
    ended = 0
    while ended < PARTITIONS:
        message = consumer.poll(SECONDS)
        assert message is not None, "nothing comes any more"
        if message.error() is None:
            found[message.partition()].append((message.offset(), message.value()))
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF
            ended += 1
    consumer.close()
    return found

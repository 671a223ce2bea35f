"""`txnkafka serve` is killed again and again under three transactional clients and two consumers. What is
left is the same to `LogDir`, to Spark and to Apache Kafka. TXNKAFKA_KILLS says how often it is killed, and
TXNKAFKA_SEED when."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as Where
from pyspark.sql import SparkSession

from tests.conformance.broker import KafkaBroker
from tests.conformance.transactional_clients import JavaReader, started
from tests.conftest import LONG
from tests.server.client_commands import ConfluentClient
from tests.server.client_process import kafka_python
from tests.server.kills import IMPATIENT, PARTITIONS, TOPIC, kill_under_load, records
from tests.server.transaction_load import Reader, Writing

KILLS = int(os.environ.get("TXNKAFKA_KILLS", "200" if LONG else "60"))
SEED = int(os.environ.get("TXNKAFKA_SEED", "1"))
SECONDS = 30
Records = dict[int, list[tuple[int, str]]]


class Left(NamedTuple):
    """What the server has left."""

    kafka: KafkaBroker  # on the same directory, not running
    report: str
    records: Records


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    kafka = KafkaBroker(tmp_path_factory.mktemp("kills"), is_static=True)
    clients = {
        "librdkafka": Writing(ConfluentClient(1.5)),
        "java-4.4": Writing(started("java-4.4", kafka.log_dir.parent / "java.log"), IMPATIENT),
        "kafka-python": Writing(kafka_python(kafka.log_dir.parent / "python.log"), IMPATIENT),
    }
    readers = {"librdkafka": Reader, "java-4.4": partial(JavaReader, kafka.log_dir.parent)}
    report = kill_under_load(clients, kafka.log_dir, kills=KILLS, seed=SEED, readers=readers)
    yield Left(kafka, report, records(kafka.log_dir))
    kafka.stop()


def test_nothing_acknowledged_is_lost(left: Left, capsys: pytest.CaptureFixture[str]) -> None:
    """All comparisons are made in ``kill_under_load``."""
    assert left.report.startswith(f"{KILLS} kills")
    assert all(left.records.values())
    with capsys.disabled():
        print(f"\n{left.report}")


def test_spark_reads_the_same(left: Left, spark: SparkSession) -> None:
    frame = spark.read.format("txnkafka").option("subscribe", TOPIC).load(str(left.kafka.log_dir))
    found: Records = {partition: [] for partition in range(PARTITIONS)}
    for row in frame.select("partition", "offset", "value").orderBy("partition", "offset").collect():
        found[row.partition].append((row.offset, bytes(row.value).decode().rstrip(".")))
    assert found == left.records


def test_kafka_reads_the_same(left: Left) -> None:
    """Kafka takes the directory over."""
    left.kafka.start()
    options = {
        "bootstrap.servers": left.kafka.bootstrap_servers, "group.id": "g", "log_level": 0,
        "isolation.level": "read_committed", "enable.partition.eof": True,
    }  # fmt: skip
    consumer = Consumer(options)
    consumer.assign([Where(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    found: Records = {partition: [] for partition in range(PARTITIONS)}
    ended = 0
    while ended < PARTITIONS:
        message = consumer.poll(SECONDS)
        assert message is not None, "nothing comes any more"
        if message.error() is None:
            value = (message.value() or b"").decode().rstrip(".")
            found[message.partition()].append((message.offset(), value))
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF
            ended += 1
    consumer.close()
    assert found == left.records

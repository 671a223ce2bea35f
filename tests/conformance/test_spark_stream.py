"""Spark's own Kafka source and ours, over the same broker and over its files: equal rows, in batches and in
streams, with both isolation levels."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from tests.conformance.broker import KafkaBroker
from tests.conformance.clients import Clients, Message
from tests.conformance.rows import COLUMNS, DEFAULTS, LEVELS, Rows, rows, rows_of_kafka
from txnkafka import TopicPartition

SOURCES = ("kafka", "broker", "files")  # Spark's, ours over the broker, ours over its directory
GROWING = "growing"


def connected(reader: Any, source: str, kafka: KafkaBroker) -> Any:
    """A reader or stream reader of one source."""
    if source == "files":
        return reader.format("txnkafka").option("path", str(kafka.log_dir))
    found = reader.format("kafka" if source == "kafka" else "txnkafka")
    return found.option("kafka.bootstrap.servers", kafka.bootstrap_servers)


class Streams:
    """Queries of each source; each has a checkpoint, and goes on where its last run ended."""

    def __init__(self, spark: SparkSession, kafka: KafkaBroker, directory: Path) -> None:
        self._spark = spark
        self._kafka = kafka
        self._directory = directory

    def run(self, source: str, options: Mapping[str, str]) -> tuple[list[list[Row]], Mapping[str, Any]]:
        """Run a query up to the present end; return the rows of each batch, and the last end offsets."""
        batches: list[list[Row]] = []

        def take(frame: DataFrame, _: int) -> None:
            batches.append(frame.selectExpr(*COLUMNS).collect())

        stream = connected(self._spark.readStream, source, self._kafka)
        stream = stream.options(**{"startingOffsets": "earliest", "includeHeaders": "true", **options})
        writer = stream.load().writeStream.foreachBatch(take).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self._directory / source)).start()
        query.awaitTermination()
        ends = [json.loads(found["sources"][0]["endOffset"] or "{}") for found in query.recentProgress]
        last = ends[-1] if ends else {}
        return batches, {topic: parts for topic, parts in last.items() if not topic.startswith("#")}


def by_partition(batches: list[list[Row]]) -> Rows:
    found: Rows = defaultdict(list)
    for batch in batches:
        for row in batch:
            found[TopicPartition(row.topic, row.partition)].append(row)
    return {name: sorted(each, key=lambda row: row.offset) for name, each in found.items()}


@pytest.mark.parametrize("level", LEVELS)
def test_batches_over_a_broker(spark: SparkSession, kafka: KafkaBroker, level: str) -> None:
    options = {"kafka.isolation.level": level}
    expected = rows_of_kafka(spark, kafka, options)
    assert len(expected) > 10
    reader = connected(spark.read, "broker", kafka)
    for more in ({}, {"minPartitions": "40"}, {"kafka.max.partition.fetch.bytes": "20000"}):
        assert rows(reader.options(**{**DEFAULTS, **options, **more}).load()) == expected


@pytest.mark.parametrize("level", LEVELS)
def test_streams(spark: SparkSession, kafka: KafkaBroker, tmp_path: Path, level: str) -> None:
    options = {**DEFAULTS, "kafka.isolation.level": level, "maxOffsetsPerTrigger": "2500"}
    expected = {name: each for name, each in rows_of_kafka(spark, kafka, options).items() if each}
    streams = Streams(spark, kafka, tmp_path)
    ends = []
    for source in SOURCES:
        batches, end = streams.run(source, options)
        assert len(batches) > 2
        assert by_partition(batches) == expected, source
        ends.append(end)
    assert ends[0] == ends[1] == ends[2]


@pytest.fixture
def clients(kafka: KafkaBroker) -> Iterator[Clients]:
    found = Clients(kafka)
    yield found
    found.close()


@pytest.mark.parametrize("level", LEVELS)
def test_streams_go_on(
    spark: SparkSession, kafka: KafkaBroker, clients: Clients, tmp_path: Path, level: str
) -> None:
    """New records, partitions and topics, an aborted transaction, and one that is open meanwhile."""
    topic = f"{GROWING}-{level}"
    options = {"subscribePattern": f"^{topic}", "kafka.isolation.level": level}
    streams = Streams(spark, kafka, tmp_path)
    clients.create(topic, 1)
    counts = []

    def look() -> None:
        found = {}
        for source in SOURCES:
            batches, end = streams.run(source, options)
            found[source] = by_partition(batches), end
        assert found["broker"] == found["kafka"], "broker"
        assert found["files"] == found["kafka"], "files"
        counts.append(sum(map(len, found["kafka"][0].values())))

    write(clients, topic, 3, commit=True)
    write(clients, topic, 2, commit=False)
    look()
    open_ = clients.producer(transactional_id=f"open-{level}")
    open_.init_transactions()
    open_.begin_transaction()
    open_.produce(topic, b"open", partition=0)
    open_.flush()
    write(clients, topic, 4, commit=True)
    clients.create(f"{topic}-new", 1)
    write(clients, f"{topic}-new", 5, commit=True)
    look()
    open_.abort_transaction()
    look()
    committed = level == "read_committed"
    assert counts == ([3, 5, 4] if committed else [5, 10, 0])


def write(clients: Clients, topic: str, count: int, *, commit: bool) -> None:
    producer = clients.producer(transactional_id=f"{topic}-{count}")
    producer.init_transactions()
    producer.begin_transaction()
    for number in range(count):
        message = Message(b"k", b"%d" % number, (), 1_700_000_000_000 + number)
        producer.produce(topic, message.value, message.key, partition=0, timestamp=message.timestamp)
    producer.flush()
    if commit:
        producer.commit_transaction()
    else:
        producer.abort_transaction()

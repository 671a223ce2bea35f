"""A sink without Spark: rows are staged, and published to an embedded broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from txnkafka import Broker
from txnkafka.env import LocalDataFiles
from txnkafka.spark.schema import HEADERS
from txnkafka.spark.sink.decision import BatchId, Verdict
from txnkafka.spark.sink.publication import publish
from txnkafka.spark.sink.row_encoder import TopicLayout
from txnkafka.spark.sink.sink_options import SinkOptions, parse_sink_options
from txnkafka.spark.sink.staged import Staged
from txnkafka.spark.sink.task import stage

TOPICS = {"out": 3, "other": 2}
LAYOUTS = {name: TopicLayout(count, 1 << 20) for name, count in TOPICS.items()}
QUERY = "3f0c8c46-5a0e-4d3d-9b68-08e42c5c1a3e"
FEW = {"transaction.state.log.num.partitions": 1, "offsets.topic.num.partitions": 1}


_KINDS: dict[str, DataType] = {
    "string": StringType(), "binary": BinaryType(), "int": IntegerType(), "bigint": LongType(),
    "double": DoubleType(), "timestamp": TimestampType(), "headers": HEADERS,
    "map": MapType(StringType(), BinaryType()),
}  # fmt: skip


def columns(text: str) -> StructType:
    """Return a schema of ``name kind, …``; Spark's own parser needs a JVM."""
    pairs = (each.split() for each in text.split(","))
    return StructType([StructField(name, _KINDS[kind]) for name, kind in pairs])


def broker() -> Broker:
    """Return a broker in memory with the topics."""
    made = Broker.in_memory(**FEW)
    create_topics(made)
    return made


def create_topics(broker: Broker) -> None:
    """Create ``TOPICS``."""
    with broker.admin() as admin:
        for name, count in TOPICS.items():
            admin.create_topic(name, partitions=count)


def sink(folder: Path, **more: str) -> SinkOptions:
    """Return the options of a sink for ``TOPICS``."""
    given = {
        "kafka.bootstrap.servers": "127.0.0.1:1", "transactionalId": "job", "stagingPath": str(folder / "s"),
    }  # fmt: skip
    return parse_sink_options({**given, **more}, is_stream=True)


def staged(options: SinkOptions, values: Sequence[str], topics: Sequence[str] | None = None) -> Staged:
    """Stage rows as one task; by default they alternate between the topics."""
    chosen = topics or [list(TOPICS)[number % 2] for number in range(len(values))]
    batch = pa.record_batch({"value": pa.array(values), "key": pa.array(values), "topic": pa.array(chosen)})
    return stage([batch], options, LAYOUTS)


def publish_batch(
    broker: Broker, options: SinkOptions, number: int, tasks: Sequence[Staged], *, run: str = "run",
    query: str = QUERY,
) -> Verdict:  # fmt: skip
    """Publish a batch as the driver does."""
    return publish(broker, options, BatchId(number, query, run), tasks, LocalDataFiles())


def committed(broker: Broker, topics: Mapping[str, int] = TOPICS) -> list[str]:
    """Return the values that a read_committed consumer gets now, sorted."""
    with broker.consumer(*topics, consumer_timeout_ms=0) as consumer:
        ends = consumer.end_offsets(sorted(consumer.assignment()))
        found = []
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            found += [(record.value or b"").decode() for record in consumer.poll(100)]
    return sorted(found)

"""One question to Spark's own Kafka source, which asks the broker, and to ours, which reads its files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from pyspark.sql import DataFrame, Row, SparkSession

from tests.conformance.broker import KafkaBroker
from tests.conformance.topics import PARTITIONS
from txnkafka import TopicPartition

__all__ = ["LEVELS", "Rows", "rows", "rows_of_kafka", "rows_of_txnkafka"]

LEVELS = ("read_committed", "read_uncommitted")
COLUMNS = ("topic", "partition", "offset", "unix_millis(timestamp) as timestamp", "timestampType")
COLUMNS += ("key", "value", "headers")
DEFAULTS = {"subscribe": ",".join(PARTITIONS), "includeHeaders": "true"}

Rows = dict[TopicPartition, list[Row]]


def rows_of_kafka(spark: SparkSession, kafka: KafkaBroker, options: Mapping[str, str]) -> Rows:
    """Through the broker."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap_servers)
    return rows(reader.options(**_with_defaults(options)).load())


def rows_of_txnkafka(spark: SparkSession, kafka: KafkaBroker, options: Mapping[str, str]) -> Rows:
    """From the broker's directory."""
    return rows(spark.read.format("txnkafka").options(**_with_defaults(options)).load(str(kafka.log_dir)))


def _with_defaults(options: Mapping[str, str]) -> dict[str, str]:
    if options.keys() & {"subscribe", "subscribePattern", "assign"}:
        return {"includeHeaders": "true", **options}
    return {**DEFAULTS, **options}


def rows(frame: DataFrame) -> Rows:
    """All columns of each partition, in the order in which Spark gives them: that of its tasks."""
    found: Rows = defaultdict(list)
    for row in frame.selectExpr(*COLUMNS).collect():
        found[TopicPartition(row.topic, row.partition)].append(row)
    return dict(found)

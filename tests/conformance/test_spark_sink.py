"""The Spark sink with Apache Kafka: as the target, and as the next owner of a data directory.

Kafka's own consumer reads the result. A publication in the middle dies before its decision.
"""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.conformance.broker import KafkaBroker
from tests.conformance.kafka_log import compiled
from tests.unit.spark.sink.sinks import LAYOUTS, TOPICS, staged
from tests.unit.spark.sink.test_publication import CrashError, Dying
from txnkafka import Admin, Broker
from txnkafka.env import LocalDataFiles, SystemClock
from txnkafka.handover.hand_over import hand_over
from txnkafka.handover.report import Owner
from txnkafka.spark.sink.decision import BatchId
from txnkafka.spark.sink.publication import publish
from txnkafka.spark.sink.sink_options import SinkOptions, parse_sink_options
from txnkafka.spark.sink.target import Clients, open_target

JOB = "nightly"


def write(spark: SparkSession, version: int, rows: int, **options: str) -> None:
    """Write numbers as a version of the job, by two tasks."""
    frame = spark.range(version * 100, version * 100 + rows, numPartitions=2).selectExpr(
        "cast(id as string) as key", f"concat(id, ' of {version}') as value",
        "if(id % 2 = 0, 'out', 'other') as topic",
    )  # fmt: skip
    writer = frame.write.format("txnkafka").options(**options, txnAppId=JOB, txnVersion=str(version))
    writer.option("compression", "lz4").mode("append").save()


def dies(clients: Clients, options: SinkOptions) -> None:
    """Publish version 1 up to the decision."""

    class Target:
        def producer(self, **settings: object) -> Dying:
            made = clients.producer(**settings)
            made.__class__ = Dying
            made.step, made.left = "commit_transaction", 1  # type: ignore[attr-defined]
            return made  # type: ignore[return-value]

        admin = clients.admin

    with pytest.raises(CrashError):
        publish(Target(), options, BatchId(1), [staged(options, ["never"] * 50)], LocalDataFiles())


def story(spark: SparkSession, **options: str) -> list[str]:
    """Write versions with repetitions and a crash; return what must be there."""
    write(spark, 0, 40, **options)
    write(spark, 0, 40, **options)
    given = parse_sink_options({**options, "txnAppId": JOB, "txnVersion": "1"}, is_stream=False)
    with open_target(given) as clients:
        dies(clients, given)
    write(spark, 1, 30, **options)
    write(spark, 1, 30, **options)
    with pytest.raises(PySparkException, match="batch 0 of transactional id nightly is refused"):
        write(spark, 0, 40, **options)
    return sorted(f"{number} of {number // 100}" for number in [*range(40), *range(100, 130)])


def consumed(kafka: KafkaBroker) -> list[str]:
    """Return what Kafka's own consumer reads with read_committed."""
    command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    command += ["-cp", compiled(), "Consume", kafka.bootstrap_servers, *TOPICS]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    rows = [line.split(" ") for line in text.splitlines()]
    return sorted(base64.b64decode(row[7][1:]).decode() for row in rows if row[0] == "read_committed")


def test_apache_kafka_is_the_target(spark: SparkSession, tmp_path: Path) -> None:
    with KafkaBroker(tmp_path / "kafka") as kafka:
        servers = kafka.bootstrap_servers
        with Admin(bootstrap_servers=servers) as admin:
            for name, layout in LAYOUTS.items():
                admin.create_topic(name, partitions=layout.partitions)
        options = {"stagingPath": str(tmp_path / "staging"), "kafka.bootstrap.servers": servers}
        expected = story(spark, **options)
        assert consumed(kafka) == expected
    assert len(list((tmp_path / "staging").iterdir())) == 1  # of the publication that died


def test_apache_kafka_opens_the_directory(spark: SparkSession, tmp_path: Path) -> None:
    kafka = KafkaBroker(tmp_path / "kafka", is_static=True)
    path = str(kafka.log_dir)
    with Broker.open(path, node_id=1) as broker, broker.admin() as admin:
        for name, layout in LAYOUTS.items():
            admin.create_topic(name, partitions=layout.partitions)
    expected = story(spark, path=path)
    assert hand_over(LocalDataFiles(), path, Owner.KAFKA, now_ms=SystemClock().now_ms()).is_ready
    try:
        kafka.start()
        assert consumed(kafka) == expected
    finally:
        kafka.stop()

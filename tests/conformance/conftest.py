"""One broker with all topics, and one Spark session that has Spark's own Kafka source."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.conformance import transactional_clients
from tests.conformance.both import SUMMARY
from tests.conformance.broker import KafkaBroker
from tests.conformance.card import card_clients
from tests.conformance.card.tool_jobs import KCAT_LEFT_OUT
from tests.conformance.clients import Clients
from tests.conformance.maven import spark_kafka_jars
from tests.conformance.options import LEFT_OUT
from tests.conformance.topics import PROPERTIES, write_topics
from tests.spark.conftest import spark_session


@pytest.fixture(scope="package")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that serves ``topics.PARTITIONS``."""
    with KafkaBroker(tmp_path_factory.mktemp("kafka"), PROPERTIES) as broker:
        clients = Clients(broker)
        try:
            write_topics(broker, clients)
            yield broker
        finally:
            clients.close()


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """As in tests/spark, with Spark's own Kafka source."""
    jars = ",".join(map(str, spark_kafka_jars()))
    yield from spark_session(tmp_path_factory.mktemp("spark"), {"spark.jars": jars})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in SUMMARY:
        terminalreporter.write_line(line)
    of_card = card_clients.LEFT_OUT | ({"kcat": KCAT_LEFT_OUT} if KCAT_LEFT_OUT else {})
    for name, reason in {**LEFT_OUT, **transactional_clients.LEFT_OUT, **of_card}.items():
        terminalreporter.write_line(f"left out: {name}: {reason}")

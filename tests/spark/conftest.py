"""One small Spark session for all tests: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.conftest import LONG

ROOT = Path(__file__).resolve().parents[2]
SPARK = tuple(int(number) for number in pyspark.__version__.split(".")[:2])
TAKES_MINUTES = {
    "test_recipes.py": "the ways to get the package to a cluster, executors killed under SQL",
    "test_sink_random_kills.py": "two drivers of the sink, an executor killed, kills at random times",
}

NEEDS_ARROW_UDFS = {"test_functions.py": "the functions are Arrow UDFs, which Spark has from 4.1 on"}
LEFT_OUT = {
    name: f"without TXNKAFKA_LONG: {name}, {what}" for name, what in TAKES_MINUTES.items() if not LONG
}
NEEDS_TRIGGERS = {"test_stream_limits.py": "a Python source learns the trigger from Spark 4.2 on"}
if SPARK < (4, 2):
    LEFT_OUT |= {name: f"before Spark 4.2: {name}, {what}" for name, what in NEEDS_TRIGGERS.items()}
if SPARK < (4, 1):
    LEFT_OUT |= {name: f"on Spark 4.0: {name}, {what}" for name, what in NEEDS_ARROW_UDFS.items()}

collect_ignore = list(LEFT_OUT)

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # quick to start
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start a session with two cores; a task may fail once."""
    yield from spark_session(tmp_path_factory.mktemp("spark"))


def spark_session(directory: Path, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Start a session and stop it after its use; one at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))  # workers import this package and these tests
        patch.delenv("SPARK_HOME", raising=False)
        builder = SparkSession.builder.master("local[2,2]").appName("txnkafka tests")
        for name, value in {**SETTINGS, **(settings or {}), "spark.local.dir": str(directory)}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not LONG:
        terminalreporter.write_line(
            "left out without TXNKAFKA_LONG: in test_sink_kills.py all but one of the kills"
        )
    for why in LEFT_OUT.values():
        terminalreporter.write_line(f"left out {why}")

"""The streams of docs/pipelines.md on ``txnkafka serve``, with Spark's own Kafka source and sink.

Spark is killed in the middle of a batch and started again. The committed records arrive once, or at least
once through Spark's Kafka sink.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from tests.conformance.maven import spark_kafka_jars
from tests.pages import ROOT
from tests.server.serving import Serving
from txnkafka import LogDir

DRIVER = Path(__file__).with_name("pipeline_driver.py")
FILES, SINK, TRANSACTIONS = (
    "Stream to files", "Stream to a topic, at least once", "Stream to a topic, exactly once",
)  # fmt: skip
TRANSACTIONS_WRITTEN, RECORDS = 60, 10
LIMIT = 240  # seconds for a run of Spark on a busy machine


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    topics = ("--create-topic", "orders:2", "--create-topic", "copies:2")
    with Serving(tmp_path / "data", *topics) as server:
        write_transactions(server.address)
        yield server


def write_transactions(address: str) -> None:
    """Write transactions to both partitions, with every third transaction aborted."""
    producer = Producer({"bootstrap.servers": address, "transactional.id": "shop"})
    producer.init_transactions()
    for number in range(TRANSACTIONS_WRITTEN):
        producer.begin_transaction()
        for i in range(RECORDS):
            producer.produce("orders", f"{number}-{i}".encode(), partition=(number + i) % 2)
        producer.flush()
        if number % 3 == 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()


COMMITTED = {
    f"{number}-{i}".encode()
    for number in range(TRANSACTIONS_WRITTEN)
    if number % 3 != 2
    for i in range(RECORDS)
}


def start(heading: str, address: str, folder: Path, crash: str = "") -> subprocess.Popen[bytes]:
    """Start a driver in its own process group, which includes its JVM."""
    arguments = [str(ROOT), heading, address, str(folder), ",".join(map(str, spark_kafka_jars())), crash]
    with (folder.parent / "spark.log").open("ab") as log:
        command = [sys.executable, str(DRIVER), *arguments]
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def run(heading: str, address: str, folder: Path, crash: str = "") -> int:
    """Run a driver to its end; returns its exit status."""
    process = start(heading, address, folder, crash)
    try:
        return process.wait(LIMIT)
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run_and_kill_in_a_batch(heading: str, address: str, folder: Path) -> None:
    """Kill a driver when it has planned its third batch and not completed it."""
    process = start(heading, address, folder)
    try:
        deadline = time.monotonic() + LIMIT
        while not (batch := in_flight(folder)):
            assert process.poll() is None, "it ended before it was killed"
            assert time.monotonic() < deadline, (folder.parent / "spark.log").read_text()
            time.sleep(0.005)
    finally:
        kill(process)
    assert batch in names(folder, "offsets")


def names(folder: Path, kind: str) -> set[str]:
    return {path.name for path in folder.glob(f"checkpoints/*/{kind}/*") if path.name.isdecimal()}


def in_flight(folder: Path) -> str:
    """Return the batch that runs, from the third one on; empty while no batch runs."""
    running = names(folder, "offsets") - names(folder, "commits")
    return next((batch for batch in running if int(batch) >= 2), "")


def copies(data: Path) -> Counter[bytes | None]:
    """Count the committed records of the topic that a stream has written."""
    log_dir = LogDir(data)
    return Counter(
        record.value
        for number in log_dir.topics["copies"].partitions
        for record in log_dir.partition("copies", number).records()
    )


def test_stream_to_files(serving: Serving, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    run_and_kill_in_a_batch(FILES, serving.address, folder)
    assert run(FILES, serving.address, folder) == 0
    listed = {
        line.partition('"path":"file://')[2].partition('"')[0]
        for path in (folder / "lake/orders/_spark_metadata").glob("[0-9]*")  # 9.compact repeats those before
        for line in path.read_text().splitlines()[1:]
    }
    columns = [pq.ParquetFile(path).read(["value"]).column(0) for path in listed]
    values = [value for column in columns for value in column.to_pylist()]
    assert Counter(values) == Counter(COMMITTED)


def test_stream_to_a_topic_at_least_once(serving: Serving, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    run_and_kill_in_a_batch(SINK, serving.address, folder)
    assert run(SINK, serving.address, folder) == 0
    assert set(copies(tmp_path / "data")) == COMMITTED


@pytest.mark.parametrize("crash", ["before", "after"])
def test_stream_to_a_topic_exactly_once(serving: Serving, tmp_path: Path, crash: str) -> None:
    """The process dies with its records in the log and no decision, or after the decision and before Spark
    notes that the batch is complete."""
    folder = tmp_path / "work"
    folder.mkdir()
    assert run(TRANSACTIONS, serving.address, folder, crash) == -signal.SIGKILL
    written = copies(tmp_path / "data").total()
    assert 0 < written < len(COMMITTED)
    assert in_flight(folder), "Spark repeats the batch"
    assert run(TRANSACTIONS, serving.address, folder) == 0
    assert copies(tmp_path / "data") == Counter(COMMITTED)

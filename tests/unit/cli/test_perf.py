"""``txnkafka perf`` on a data directory: the records and fields, not the speed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.clusters import broker_on
from tests.unit.cli.conftest import Run
from txnkafka import LogDir
from txnkafka.cli.perf import percentiles


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with the topic orders."""
    folder = tmp_path / "data"
    with broker_on(folder) as broker, broker.admin() as admin:
        admin.create_topic("orders")
    return folder


def measured(run: Run, data: Path, *arguments: object) -> dict[str, Any]:
    answer = run("perf", *arguments, "--data", data, "--format", "json")
    assert (answer.status, answer.stderr) == (0, "")
    row: dict[str, Any] = json.loads(answer.stdout)
    assert row["seconds"] >= 0
    assert row["records_per_second"] > 0
    return row


def sizes(data: Path) -> list[int]:
    records = LogDir(data).partition("orders", 0).records(isolation_level="read_committed")
    return [len(record.value or b"") for record in records]


def test_records_are_sent_and_read(run: Run, data: Path) -> None:
    row = measured(run, data, "produce", "orders", "--num-records", 300, "--record-size", 10)
    assert (row["records"], row["bytes"]) == (300, 3_000)
    latency = row["latency_ms"]
    assert list(latency) == ["mean", "p50", "p95", "p99", "p999", "max"]
    assert 0 < latency["p50"] <= latency["p95"] <= latency["p99"] <= latency["p999"] <= latency["max"]
    assert sizes(data) == [10] * 300
    read = measured(run, data, "consume", "orders")
    assert (read["records"], read["bytes"], "latency_ms" in read) == (300, 3_000, False)
    assert measured(run, data, "consume", "orders", "--num-records", 1)["records"] >= 1


def test_records_are_sent_in_transactions(run: Run, data: Path) -> None:
    ids = ("--transactional-id", "perf")
    numbers = ("--num-records", 25, "--transaction-records", 10, "--throughput", 10_000)
    assert measured(run, data, "produce", "orders", *ids, *numbers)["records"] == 25
    (described,) = json.loads(run("topics", "describe", "orders", "--data", data, "--format", "json").stdout)
    assert described["partitions"][0]["last_stable_offset"] == 25 + 3
    assert len(sizes(data)) == 25


def test_small_transactions(run: Run, data: Path) -> None:
    row = measured(run, data, "transactions", "orders", "--count", 4, "--transaction-records", 2)
    assert (row["transactions"], row["records"]) == (4, 8)
    assert row["latency_ms"]["max"] > 0
    assert len(sizes(data)) == 8


def test_text(run: Run, data: Path) -> None:
    first, second = run("perf", "produce", "orders", "--num-records", 1_000, "--data", data).lines
    assert first.startswith("1,000 records sent in ")
    assert second.startswith("latency: mean ")
    _, count, _ = run("perf", "transactions", "orders", "--count", 1, "--data", data).lines
    assert count.startswith("1 transaction: ")


def test_a_missing_topic(run: Run, data: Path) -> None:
    answer = run("perf", "consume", "gone", "--data", data)
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.stderr.startswith("txnkafka: error: topic gone: ")


@pytest.mark.parametrize("ids", [(), ("--transactional-id", "perf")])
def test_records_that_the_broker_refuses(run: Run, data: Path, ids: tuple[str, ...]) -> None:
    assert run("topics", "alter", "orders", "--config", "max.message.bytes=100", "--data", data).status == 0
    answer = run("perf", "produce", "orders", "--num-records", 2, "--record-size", 900, *ids, "--data", data)
    assert (answer.status, answer.stdout) == (2, "")
    assert answer.stderr.startswith("txnkafka: error: ")
    assert sizes(data) == []


def test_percentiles() -> None:
    found = percentiles([number / 1000 for number in range(1, 1_001)])
    assert found == {"mean": 500.5, "p50": 501, "p95": 951, "p99": 991, "p999": 1_000, "max": 1_000}
    assert set(percentiles([0.002]).values()) == {2.0}

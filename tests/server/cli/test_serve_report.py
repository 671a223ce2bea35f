"""What ``txnkafka serve`` logs of its start, a recovery, its stop, and of listeners that others can reach."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

import txnkafka
from tests.server.serving import Serving
from txnkafka.server.exposure import is_loopback, warn_of_exposure
from txnkafka.server.listeners import Endpoint

SECONDS = 30


def events(serving: Serving) -> dict[str, dict[str, Any]]:
    """The rows of the log that have an event, by its name."""
    rows = [json.loads(line) for line in serving.log().splitlines()]
    return {row["event"]: row for row in rows if "event" in row}


def test_a_clean_start_and_stop(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Serving(data, "--create-topic", "orders:3") as serving:
        assert serving.stop() == 0
        start, stop = serving.log().splitlines()
    identity = (data / "meta.properties").read_text()
    assert start.startswith(f"txnkafka: note: txnkafka {txnkafka.__version__} serves {data}: cluster ")
    assert start.endswith(", node 1, partitions 3")
    assert start.split("cluster ")[1].split(",")[0] in identity
    assert stop.startswith("txnkafka: note: stopped cleanly, ")


def test_after_a_kill_the_start_says_what_was_checked_and_cut(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Serving(data, "--create-topic", "orders:2") as serving:
        producer = Producer({"bootstrap.servers": serving.address, "log_level": 0})
        producer.produce("orders", b"x" * 100, partition=0)
        assert producer.flush(SECONDS) == 0
        serving.kill()
    with (data / "orders-0" / "00000000000000000000.log").open("ab") as log:
        log.write(b"torn" * 10)
    Path(tmp_path / "data.log").write_text("")
    with Serving(data, "--log-format", "json") as serving:
        assert serving.stop() == 0
        found = events(serving)
    assert list(found) == ["recovery", "start", "stop"]
    recovery = found["recovery"]
    assert (recovery["logs_checked"], recovery["bytes_cut"], recovery["directory"]) == (2, 40, str(data))
    assert recovery["seconds"] >= 0
    assert "was not stopped cleanly: 2 logs checked, 40 bytes cut, " in recovery["message"]
    assert found["start"]["partitions"] == 2
    assert found["stop"]["is_clean"] is True


def test_a_new_directory_is_no_recovery(tmp_path: Path) -> None:
    with Serving(tmp_path / "data", "--log-format", "json") as serving:
        assert serving.stop() == 0
        assert list(events(serving)) == ["start", "stop"]


def test_a_stop_after_which_logs_are_checked_is_not_called_clean(tmp_path: Path) -> None:
    """A partition that cannot be opened keeps the marker of a clean stop away."""
    data = tmp_path / "data"
    with Serving(data, "--create-topic", "orders:1") as serving:
        assert serving.stop() == 0
    elsewhere = tmp_path / "elsewhere"
    (data / "orders-0").rename(elsewhere)
    (data / "orders-0").symlink_to(elsewhere)
    (tmp_path / "data.log").write_text("")
    with Serving(data, "--log-format", "json") as serving:
        assert serving.stop() == 0
        found = events(serving)
    assert not (data / ".kafka_cleanshutdown").exists()
    assert found["stop"]["is_clean"] is False
    assert "the next start checks all logs" in found["stop"]["message"]


@pytest.mark.parametrize(
    ("addresses", "host", "is_exposed"),
    [
        ([("127.0.0.1", 1)], "127.0.0.1", False),
        ([("127.0.0.1", 1), ("::1", 1)], "localhost", False),
        ([("127.0.0.1", 1)], "", False),
        ([("0.0.0.0", 1), ("::", 1)], "0.0.0.0", True),
        ([("0.0.0.0", 1)], "localhost", True),
        ([("127.0.0.1", 1), ("10.0.0.1", 1)], "127.0.0.1", True),
        ([("127.0.0.1", 1)], "kafka.example.com", True),
        ([("fe80::1%eth0", 1)], "fe80::1%eth0", True),
    ],
)
def test_listeners_beyond_the_loopback(
    caplog: pytest.LogCaptureFixture, addresses: list[tuple[str, int]], host: str, is_exposed: bool
) -> None:
    loopback = [("127.0.0.1", 9)], Endpoint("OTHER", "127.0.0.1", 9)
    with caplog.at_level(logging.WARNING):
        warn_of_exposure([addresses, loopback[0]], [Endpoint("A", host, 1), loopback[1]])
    assert [each.levelname for each in caplog.records] == ["WARNING"] * is_exposed
    if is_exposed:
        assert "the listener A can be reached from other machines" in caplog.text
        assert "clients are not authenticated: each of them may read, write and delete" in caplog.text


def test_the_warning_is_on_stderr(tmp_path: Path) -> None:
    """Of the one listener with a name that other machines may know."""
    listeners = "advertised.listeners=PLAINTEXT://127.0.0.1:0,PLAINTEXT_2://kafka.example.com:9092"
    with Serving(tmp_path / "data", "--listen", "127.0.0.2:0", "--config", listeners) as serving:
        assert serving.stop() == 0
        (warning,) = [line for line in serving.log().splitlines() if "txnkafka: warning" in line]
    assert "the listener PLAINTEXT_2 can be reached from other machines (127.0.0.2:" in warning
    assert "advertised as PLAINTEXT_2://kafka.example.com:9092" in warning


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.3.2.1", True), ("::1", True), ("localhost", True), ("a.localhost", True),
     ("0.0.0.0", False), ("::", False), ("192.168.1.1", False), ("localhost.example", False)],
)  # fmt: skip
def test_is_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected

"""The metrics of a served broker over HTTP: what clients do shows, and hostile clients hurt nobody."""

from __future__ import annotations

import asyncio
import contextlib
import json
import platform
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Offset
from prometheus_client.parser import text_string_to_metric_families

import txnkafka
from tests.server.serving import Serving
from txnkafka.broker.broker import open_broker
from txnkafka.env import SystemClock
from txnkafka.server.metrics import exposition
from txnkafka.server.metrics.exposition import MOST_SCRAPES, MetricsServer
from txnkafka.server.metrics.table import METRICS
from txnkafka.server.tcp import Server
from txnkafka.testing.memory_files import MemoryFiles

SECONDS = 20
NAMES = {metric.name for metric in METRICS}
DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"
Values = dict[tuple[str, ...], float]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Serving]:
    settings = {
        "group.initial.rebalance.delay.ms": 0,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
    }
    options = [option for item in settings.items() for option in ("--config", f"{item[0]}={item[1]}")]
    with Serving(tmp_path / "data", "--create-topic", "t:1", "--metrics", "127.0.0.1:0", *options) as serving:
        yield serving
        if serving.is_running:
            assert serving.stop() == 0


def url(served: Serving) -> str:
    found = re.search(r"http://\S+", served.log())
    assert found is not None
    return found.group()


def scraped(served: Serving) -> Values:
    """The values, by name and labels in the order of the table."""
    text = urllib.request.urlopen(url(served), timeout=SECONDS).read().decode()
    labels = {metric.name: metric.labels for metric in METRICS}
    found: Values = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            names = labels.get(sample.name, tuple(sorted(sample.labels)))
            found[sample.name, *(sample.labels[name] for name in names)] = sample.value
    return found


def until(served: Serving, key: tuple[str, ...], value: float) -> None:
    deadline = time.monotonic() + SECONDS
    while (found := scraped(served).get(key)) != value:
        assert time.monotonic() < deadline, (key, found)
        time.sleep(0.05)


def when_answered(served: Serving) -> None:
    """Wait until the threads of clients that have gone have noticed it: more than they may be are refused."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            scraped(served)
        except ConnectionError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            return


def producer(served: Serving, **options: object) -> Producer:
    names = {name.replace("_", "."): value for name, value in options.items()}
    return Producer({"bootstrap.servers": served.address, "log_level": 0, **names})


def test_what_clients_do_shows(served: Serving) -> None:
    before = scraped(served)
    assert {key[0] for key in before} >= {
        metric.name for metric in METRICS if metric.kind == "gauge" and not metric.labels
    }
    client = producer(served)
    for _ in range(5):
        client.produce("t", b"x" * 100)
    assert client.flush(SECONDS) == 0
    after = scraped(served)
    assert after["kafka_server_brokertopicmetrics_messagesin_total", "t"] == 5
    assert after["kafka_server_brokertopicmetrics_bytesin_total", "t"] >= 561
    assert after[("txnkafka_flush_seconds_count",)] >= 1
    assert after["txnkafka_request_seconds_count", "Produce"] >= 1
    assert sum(value for key, value in after.items() if key[:2] == REQUESTS_PRODUCE) >= 1
    assert after[("kafka_server_socket_server_metrics_connection_count",)] >= 1

    consumer = Consumer(
        {"bootstrap.servers": served.address, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["t"])
    assert consumer.poll(SECONDS) is not None
    until(served, ("kafka_coordinator_group_groupmetadatamanager_numgroupsstable",), 1)
    until(served, ("txnkafka_group_members", "g"), 1)
    until(served, ("kafka_server_delayedoperationpurgatory_purgatorysize", "Fetch"), 1)
    found = scraped(served)
    assert found["kafka_server_brokertopicmetrics_bytesout_total", "t"] >= 561
    assert found[("kafka_server_fetchsessioncache_numincrementalfetchsessions",)] >= 0
    consumer.close()  # which commits its position
    until(served, ("txnkafka_group_lag", "g", "t", "0"), 4)
    assert found["txnkafka_build_info", txnkafka.__version__, platform.python_version()] == 1


REQUESTS_PRODUCE = ("kafka_network_requestmetrics_requests_total", "Produce")


def status_of(served: Serving, path: str) -> tuple[int, str]:
    """The answer to a request for a path."""
    try:
        with urllib.request.urlopen(url(served).removesuffix("/metrics") + path, timeout=SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_paths(served: Serving) -> None:
    assert status_of(served, "/health") == status_of(served, "/ready") == (200, "ok\n")
    assert status_of(served, "/ready?verbose=1")[0] == 200
    for path in ("/", "/metric", "/metrics/", "/ready/"):
        status, text = status_of(served, path)
        assert (status, "/metrics, /health and /ready" in text) == (404, True), path


def test_a_broker_that_stops_is_not_ready() -> None:
    """It is healthy as long as its loop answers: a kill would take away the time that a clean stop needs."""
    loop = asyncio.new_event_loop()
    clock = SystemClock()
    broker = open_broker(MemoryFiles(), "/data", now_ms=clock.now_ms())
    server = Server(broker, clock, loop)
    metrics = MetricsServer(server, "127.0.0.1", 0)
    base = f"http://{metrics.address[0]}:{metrics.address[1]}"
    try:

        async def ask(path: str) -> int:
            return await loop.run_in_executor(None, code_of, base + path)

        async def ask_all() -> list[int]:
            found = [await ask("/ready"), await ask("/health")]
            server.is_listening = True
            found.append(await ask("/ready"))
            server.stop()
            return [*found, await ask("/ready"), await ask("/health")]

        assert loop.run_until_complete(ask_all()) == [503, 200, 200, 503, 200]
    finally:
        metrics.close()
        server.host.close()
        loop.close()
        broker.data.abandon()


def test_a_broker_that_hangs_is_not_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposition, "COLLECT_SECONDS", 0.05)
    loop = asyncio.new_event_loop()  # which does not run
    clock = SystemClock()
    broker = open_broker(MemoryFiles(), "/data", now_ms=clock.now_ms())
    server = Server(broker, clock, loop)
    metrics = MetricsServer(server, "127.0.0.1", 0)
    base = f"http://{metrics.address[0]}:{metrics.address[1]}"
    try:
        assert [code_of(base + path) for path in ("/health", "/ready")] == [503, 503]
    finally:
        metrics.close()
        server.host.close()
        loop.close()
        broker.data.abandon()


def code_of(address: str) -> int:
    """The status of an answer."""
    try:
        with urllib.request.urlopen(address, timeout=SECONDS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_transactions_show(served: Serving) -> None:
    first = producer(served, transactional_id="x", transaction_timeout_ms=1000)
    first.init_transactions(SECONDS)
    for commit in (True, False):
        first.begin_transaction()
        first.produce("t", b"x")
        assert first.flush(SECONDS) == 0
        until(served, ("txnkafka_transactions_open",), 1)
        first.commit_transaction(SECONDS) if commit else first.abort_transaction(SECONDS)
    until(served, ("txnkafka_transactions_committed_total",), 1)
    until(served, ("txnkafka_transactions_aborted_total",), 1)
    first.begin_transaction()
    first.produce("t", b"x")
    assert first.flush(SECONDS) == 0
    until(served, ("txnkafka_transactions_timed_out_total",), 1)
    until(served, ("txnkafka_transactions_aborted_total",), 2)
    with pytest.raises(KafkaException):
        first.commit_transaction(SECONDS)
    assert scraped(served)[("txnkafka_producers_fenced_total",)] >= 1
    errors = [key for key in scraped(served) if key[0] == "kafka_network_requestmetrics_errors_total"]
    assert {key[2] for key in errors} & {"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"}


def test_slow_and_many_clients_do_not_hold_the_broker(served: Serving) -> None:
    """More connections than are answered say nothing, or half of a request; the broker goes on."""
    host, port = re.search(r"http://(.+):(\d+)/", url(served)).groups()  # type: ignore[union-attr]
    with contextlib.ExitStack() as stack:
        idle = [
            stack.enter_context(socket.create_connection((host, int(port)))) for _ in range(3 * MOST_SCRAPES)
        ]
        for each in idle[::2]:
            each.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Long: ")
        client = producer(served)
        for _ in range(20):
            client.produce("t", b"x")
            assert client.flush(SECONDS) == 0
    when_answered(served)
    until(served, ("kafka_server_brokertopicmetrics_messagesin_total", "t"), 20)


@pytest.mark.parametrize(
    "request_bytes",
    [b"\0" * 1000, b"GET / HTTP/9.9\r\n\r\n", b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
     b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00"],
    ids=["zeros", "version", "post", "long", "tls"],
)  # fmt: skip
def test_what_is_no_scrape(served: Serving, request_bytes: bytes) -> None:
    host, port = re.search(r"http://(.+):(\d+)/", url(served)).groups()  # type: ignore[union-attr]
    with socket.create_connection((host, int(port)), SECONDS) as connection:
        connection.settimeout(SECONDS)
        with contextlib.suppress(OSError):  # it may have been closed by then
            connection.sendall(request_bytes)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
    assert ("txnkafka_transactions_open",) in scraped(served)
    assert "Traceback" not in served.log()


def test_nothing_is_loaded_unless_it_is_asked_for() -> None:
    code = (
        "import sys, txnkafka.cli.serve, txnkafka.server.tcp\n"
        "assert not [name for name in sys.modules if 'prometheus' in name or 'server.metrics' in name]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_extra_is_named_where_it_is_missing(tmp_path: Path) -> None:
    (tmp_path / "prometheus_client.py").write_text("raise ImportError('it is not installed')\n")
    done = subprocess.run(
        [sys.executable, "-m", "txnkafka", "serve", "--data", str(tmp_path / "data"),
         "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"],
        env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "pip install 'txnkafka[metrics]'" in done.stderr
    assert not (tmp_path / "data").exists()


def test_an_address_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run(
            [sys.executable, "-m", "txnkafka", "serve", "--data", str(tmp_path / "data"),
             "--listen", "127.0.0.1:0", "--metrics", address],
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "Address already in use" in done.stderr


def test_the_log_as_json(tmp_path: Path) -> None:
    with Serving(tmp_path / "data", "--log-format", "json", "--config", "num.io.threads=3") as serving:
        with socket.create_connection((serving.host, serving.port)) as connection:
            connection.sendall(b"\0\0\0\4\0\0\0\0")  # a frame that is no request
            assert connection.recv(1) == b""
        assert serving.stop() == 0
        rows = [json.loads(line) for line in serving.log().splitlines()]
    assert {"time", "level", "logger", "message"} <= rows[0].keys()
    by_event = {row["event"]: row for row in rows if "event" in row}
    assert list(by_event) == ["start", "stop"]
    assert by_event["start"]["version"] == txnkafka.__version__
    assert by_event["start"]["directory"] == str(tmp_path / "data")
    assert by_event["stop"]["is_clean"] is True
    assert any(row["level"] == "warning" and "num.io.threads" in row["message"] for row in rows)
    assert any("the connection is closed" in row["message"] for row in rows)


def test_the_alerts_of_the_page_name_metrics_that_a_scrape_has(served: Serving) -> None:
    """With the labels that their texts use."""
    producer(served).flush(SECONDS)
    consumer = Consumer({"bootstrap.servers": served.address, "group.id": "g"})
    consumer.commit(offsets=[Offset("t", 0, 0)], asynchronous=False)
    consumer.close()
    text = DOCS.read_text(encoding="utf-8").split("```yaml\n", 1)[1].split("```", 1)[0]
    rules = text.split("- alert: ")[1:]
    assert len(rules) == 4
    names = {key[0] for key in scraped(served)}
    labels = {metric.name: set(metric.labels) for metric in METRICS}
    for rule in rules:
        used = set(re.findall(r"\b(?:kafka|txnkafka)_\w+", rule))
        assert used
        assert used <= names, rule
        in_text = set(re.findall(r"\$labels\.(\w+)", rule))
        assert all(in_text <= labels[name] for name in used), rule


def test_every_metric_is_documented() -> None:
    lines = DOCS.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if re.match(r"\| `(txn)?kafka_", line)]
    table = {cells[1].strip(" `"): cells for cells in (line.split("|") for line in rows)}
    assert table.keys() == NAMES
    for metric in METRICS:
        _, _, kind, labels, _, kafka, _ = table[metric.name]
        assert kind.strip() == metric.kind, metric.name
        assert labels.replace("`", "").replace(",", " ").split() == list(metric.labels), metric.name
        assert kafka.strip(" `") == metric.kafka, metric.name

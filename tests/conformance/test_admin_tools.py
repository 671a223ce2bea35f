"""Apache Kafka's tools for administrators print the same on `txnkafka serve` and on Apache Kafka."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from tests.conformance.both_brokers import BROKERS, broker
from tests.conformance.clients import Clients, Message, send
from tests.conformance.kafka_tools import Tools

Lines = list[str]
Step = Iterator[tuple[str, Lines]]
OWN: Final = (
    (re.compile(r'"logDir":"[^"]*"'), '"logDir":"…"'),
    (re.compile(r'"log_dirs":\["[^"]*"\]'), '"log_dirs":["…"]'),
    (re.compile(r', "endpoints": \[[^\]]*\]'), ""),  # of controllers, which have no listener here
    (re.compile(r"(ClusterId|LeaderEpoch|HighWatermark): *\S+"), r"\1: …"),
    (re.compile(r"^(\d+ \S{22}) \d+ "), r"\1 … "),  # the end of the metadata log
    (re.compile(r"Epoch: \d+"), "Epoch: …"),
    (re.compile(r"PLAINTEXT://127\.0\.0\.1:\d+"), "PLAINTEXT://…"),
    (re.compile(r"\b\d{13}\b"), "…"),
)
"""What every broker has of its own."""
CONFIGS: Final = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "4"}
"""What the settings of Kafka have, too."""
NOT_SERVED: Final = ("Feature: share.version", "Feature: streams.version")  # DIVERGENCES.md
ALL_OF_BROKER: Final = "configs --describe --entity-type brokers --entity-name 1 --all"
IN_DELETION: Final = '{"partitions": [{"topic": "kept", "partition": 0, "offset": 2}], "version": 1}'
MOVES: Final = {
    "here": '{"version": 1, "partitions": [{"topic": "moved", "partition": 0, "replicas": [1]}]}',
    "elsewhere": '{"version": 1, "partitions": [{"topic": "moved", "partition": 0, "replicas": [2]}]}',
}


def partitions(tools: Tools, clients: Clients, files: Path) -> Step:
    yield tools.show("topics", "--create --topic grown --partitions 2")
    yield tools.show("topics", "--alter --topic grown --partitions 4")
    yield tools.show("topics", "--describe --topic grown")
    yield tools.show("topics", "--alter --topic grown --partitions 4")
    yield tools.show("topics", "--alter --topic grown --partitions 3")
    yield tools.show("topics", "--alter --topic missing --partitions 3")
    yield tools.show("topics", "--alter --topic grown --partitions 5 --replica-assignment 1,1,1,1,1")


def configs(tools: Tools, clients: Clients, files: Path) -> Step:
    """Of a topic and of the broker; at the end everything is as it was."""
    yield tools.show("topics", "--create --topic set")
    topic, node, all_nodes = (
        "--entity-type topics --entity-name set",
        "--entity-type brokers --entity-name 1",
        "--entity-type brokers --entity-default",
    )
    several = "retention.ms=5000,cleanup.policy=[compact,delete]"
    yield tools.show("configs", f"--alter {topic} --add-config {several}")
    yield tools.show("configs", f"--describe {topic}")
    yield tools.show("configs", f"--describe {topic} --all")
    yield tools.show("topics", "--describe --topic set")
    yield tools.show("configs", f"--alter {topic} --add-config no.such=1")
    yield tools.show("configs", f"--alter {topic} --delete-config retention.ms")
    yield tools.show("configs", f"--alter {topic} --delete-config retention.ms")
    yield tools.show("configs", f"--describe {topic}")
    for where in (node, all_nodes):
        several = "log.retention.ms=6000,message.max.bytes=9000"
        yield tools.show("configs", f"--alter {where} --add-config {several}")
        yield tools.show("configs", f"--describe {where}")
        yield tools.show("configs", f"--describe {topic} --all")
    yield tools.show("configs", f"--alter {node} --add-config num.partitions=7")
    yield tools.show("configs", f"--describe {node} --all")
    for where in (node, all_nodes):
        yield tools.show("configs", f"--alter {where} --delete-config log.retention.ms,message.max.bytes")
        yield tools.show("configs", f"--describe {where}")


def other_configs(tools: Tools, clients: Clients, files: Path) -> Step:
    """Of groups, of subscriptions to metrics of clients, and of loggers that there are not."""
    group, metrics = "--entity-type groups --entity-name g", "--entity-type client-metrics --entity-name m"
    several = "consumer.session.timeout.ms=50000,consumer.heartbeat.interval.ms=6000"
    yield tools.show("configs", f"--alter {group} --add-config {several}")
    yield tools.show("configs", f"--describe {group}")
    yield tools.show("configs", f"--describe {group} --all")
    yield tools.show("configs", f"--alter {group} --add-config consumer.session.timeout.ms=1")
    yield tools.show("configs", "--describe --entity-type groups")
    yield tools.show("configs", f"--alter {group} --delete-config consumer.session.timeout.ms")
    yield f"{group} at the end", tools.show("configs", f"--describe {group}")[1]
    yield tools.show("configs", f"--alter {metrics} --add-config interval.ms=1000,metrics=[a,b]")
    yield tools.show("configs", f"--describe {metrics}")
    yield tools.show("configs", "--describe --entity-type client-metrics")
    yield tools.show("configs", f"--alter {metrics} --add-config interval.ms=1")
    yield tools.show("configs", f"--alter {metrics} --delete-config interval.ms,metrics")
    loggers = "--entity-type broker-loggers --entity-name 1"
    yield tools.show("configs", f"--alter {loggers} --add-config no.such=DEBUG")


def cluster(tools: Tools, clients: Clients, files: Path) -> Step:
    yield tools.show("features", "describe")
    yield tools.show("features", "upgrade --feature transaction.version=2 --dry-run")
    yield tools.show("features", "downgrade --feature transaction.version=0")
    yield tools.show("features", "describe")
    yield tools.show("features", "upgrade --feature transaction.version=2")
    yield tools.show("features", "upgrade --feature transaction.version=9")
    yield tools.show("metadata-quorum", "describe --status")
    yield tools.show("metadata-quorum", "describe --replication")


def replicas(tools: Tools, clients: Clients, files: Path) -> Step:
    yield tools.show("topics", "--create --topic moved")
    yield tools.show("reassign-partitions", "--list")
    for name, text in MOVES.items():
        path = files / f"{name}.json"
        path.write_text(text)
        shown = tools.show("reassign-partitions", f"--execute --reassignment-json-file {path}")[1]
        yield f"reassign-partitions {name}", shown
    yield tools.show("leader-election", "--election-type preferred --topic moved --partition 0")
    yield tools.show("leader-election", "--election-type preferred --all-topic-partitions")


def records(tools: Tools, clients: Clients, files: Path) -> Step:
    clients.create("kept")
    send(clients.producer(), "kept", [Message(None, b"%d" % number) for number in range(5)])
    yield tools.show("log-dirs", "--describe --topic-list kept")
    path = files / "offsets.json"
    path.write_text(IN_DELETION)
    yield "delete-records", tools.show("delete-records", f"--offset-json-file {path}")[1]
    yield tools.show("get-offsets", "--topic kept --time -2")


STEPS: tuple[Callable[[Tools, Clients, Path], Step], ...] = (
    partitions, configs, other_configs, cluster, replicas, records
)  # fmt: skip


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[str, Lines]]]:
    """By the brokers' names."""
    directories = [tmp_path_factory.mktemp("admin-tools") for _ in BROKERS]
    with ThreadPoolExecutor(len(BROKERS)) as executor:
        return dict(zip(BROKERS, executor.map(shown_on, BROKERS, directories), strict=True))


def shown_on(name: str, directory: Path) -> list[tuple[str, Lines]]:
    """All steps on one broker."""
    with broker(name, directory, CONFIGS, ()) as running:
        tools, clients = Tools(running.bootstrap_servers), Clients(running)
        with contextlib.closing(clients):
            steps = [each for step in STEPS for each in step(tools, clients, directory)]
    return [(line, [_without_own(row) for row in rows]) for line, rows in steps]


def _without_own(row: str) -> str:
    for pattern, text in OWN:
        row = pattern.sub(text, row)
    return row


def test_the_same_is_shown(shown: dict[str, list[tuple[str, Lines]]]) -> None:
    ours, theirs = (shown[name] for name in BROKERS)
    assert [line for line, _ in ours] == [line for line, _ in theirs]
    for (line, found), (_, expected) in zip(ours, theirs, strict=True):
        if line == ALL_OF_BROKER:  # Kafka has settings that mean nothing on one node
            names = {row.partition("=")[0] for row in found} - {"transaction.state.log.num.partitions"}
            found, expected = (
                [row for row in rows if row.partition("=")[0] in names] for rows in (found, expected)
            )
        expected = [row for row in expected if not row.startswith(NOT_SERVED)]
        assert found == expected, line


@pytest.mark.parametrize("name", BROKERS)
def test_the_story_is_the_one_that_is_meant(shown: dict[str, list[tuple[str, Lines]]], name: str) -> None:
    """So that two empty answers are not the same."""
    text = "\n".join(row for line, rows in shown[name] for row in (line, *rows))
    for part in (
        "PartitionCount: 4", "retention.ms=5000", "DYNAMIC_BROKER_CONFIG:log.retention.ms=6000",
        "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=6000", "Feature: transaction.version",
        "CurrentVoters", "Leader", "GROUP_CONFIG:consumer.session.timeout.ms=50000", "metrics=a,b",
        "low_watermark: 2", "kept:0:2", "moved-0",
    ):  # fmt: skip
        assert part in text, part
    rows = next(rows for line, rows in shown[name] if line == ALL_OF_BROKER)
    assert len(rows) > 60

"""Java copies topics, and Kafka's tools show groups, on `txnkafka serve` and on Apache Kafka."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.conformance.both_brokers import BROKERS, Running, broker
from tests.conformance.broker import java
from tests.conformance.clients import Clients
from tests.conformance.transactional_clients import copy, started, values

RECORDS = 40


class Server(Clients):
    """Clients of a broker that runs."""

    def __init__(self, running: Running) -> None:
        super().__init__(running)
        self.running = running


@pytest.fixture(scope="module", params=BROKERS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("groups")
    with broker(request.param, directory, {"group.initial.rebalance.delay.ms": "0"}, ()) as running:
        yield Server(running)


def tool(server: Server, *arguments: str) -> str:
    """What kafka-consumer-groups prints."""
    command = ["--bootstrap-server", server.bootstrap_servers, *arguments]
    name = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    done = subprocess.run(java("-Xmx256m", name, *command), capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("version", ["4.4", "3.9"])
def test_a_java_program_copies_each_record_once(server: Server, version: str) -> None:
    source, target, group = f"in-{version}", f"out-{version}", f"copier-{version}"
    for topic in (source, target):
        server.create(topic)
    writer: Producer = server.producer()
    for number in range(RECORDS):
        writer.produce(source, str(number), partition=0)
    assert writer.flush(30) == 0
    copy(version, server.bootstrap_servers, source, target, group, RECORDS)
    client = started("confluent-kafka", server.running.data.parent / "client.log")
    copied = values(client, server.bootstrap_servers, target)
    client.close()
    assert copied == [f"copy of {number}" for number in range(RECORDS)]
    described = tool(server, "--describe", "--group", group).split()
    at = described.index(source)
    assert described[at - 1 : at + 5] == [group, source, "0", str(RECORDS), str(RECORDS), "0"]


def test_kafka_consumer_groups(server: Server) -> None:
    server.create("tools")
    writer: Producer = server.producer()
    for number in range(5):
        writer.produce("tools", str(number), partition=0)
    assert writer.flush(30) == 0
    reset = ("--reset-offsets", "--group", "by-tool", "--topic", "tools", "--execute")
    assert "3" in tool(server, *reset, "--to-offset", "3").split()
    assert "by-tool" in tool(server, "--list").split()
    listed = tool(server, "--list", "--state").split()
    assert listed[listed.index("by-tool") + 1 :][:1] == ["Empty"] or "Empty" in listed
    assert "Successful" in tool(server, "--delete-offsets", "--group", "by-tool", "--topic", "tools:0")
    tool(server, *reset, "--to-earliest")
    assert "success" in tool(server, "--delete", "--group", "by-tool")
    assert "by-tool" not in tool(server, "--list").split()

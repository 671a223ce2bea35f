"""Members of consumer groups (KIP-848) by Java and librdkafka, on `txnkafka serve` and on Apache Kafka."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from tests.conformance.both_brokers import BROKERS, Running, broker
from tests.conformance.broker import java
from tests.conformance.clients import Clients
from tests.conformance.transactional_clients import JavaMember

PARTITIONS = 4
SECONDS = 60.0
CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500", "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.min.session.timeout.ms": "6000",
}  # fmt: skip


class Server(Clients):
    """Clients of a broker that runs."""

    def __init__(self, running: Running, directory: Path) -> None:
        super().__init__(running)
        self.directory = directory

    def member(self, name: str, topic: str, *settings: str, protocol: str = "consumer") -> JavaMember:
        """A Java member of the group of the topic."""
        log = self.directory / f"{name}.log"
        group = topic.strip("/.*") + "-group"
        return JavaMember(log, self.bootstrap_servers, group, protocol, topic, *settings)

    def expect_soon(self, group: str) -> None:
        """Let the members of a group be gone after the shortest session; Java needs longer to start on a busy
        machine, which a static member must outlive."""
        entity = ["--entity-type", "groups", "--entity-name", group]
        change = ["--alter", "--add-config", "consumer.session.timeout.ms=6000"]
        name = "org.apache.kafka.tools.ConfigCommand"
        command = java("-Xmx256m", name, "--bootstrap-server", self.bootstrap_servers)
        subprocess.run([*command, *entity, *change], capture_output=True, check=True)

    def tool(self, *arguments: str) -> list[list[str]]:
        """The words of the lines that kafka-consumer-groups prints."""
        name = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
        command = ["--bootstrap-server", self.bootstrap_servers, *arguments]
        done = subprocess.run(java("-Xmx256m", name, *command), capture_output=True, text=True, check=True)
        return [line.split() for line in done.stdout.splitlines() if line.strip()]


@pytest.fixture(scope="module", params=BROKERS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("consumer-groups")
    with broker(request.param, directory, CONFIG, ()) as running:
        yield Server(running, directory)


def until(condition: Callable[[], bool], told: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, told()
        time.sleep(0.05)


def have(*members: JavaMember) -> None:
    """Wait until the members share all partitions evenly."""

    def is_shared() -> bool:
        sizes = [len(member.has) for member in members]
        whole = set().union(*(member.has for member in members))
        return sum(sizes) == len(whole) == PARTITIONS and max(sizes) - min(sizes) <= 1

    until(is_shared, lambda: [member.has for member in members])


def write(server: Server, topic: str, *values: str) -> None:
    writer = server.producer()
    for number, value in enumerate(values):
        writer.produce(topic, value, partition=number % PARTITIONS)
    assert writer.flush(30) == 0


@contextmanager
def ended(*members: JavaMember) -> Iterator[None]:
    try:
        yield
    finally:
        for member in members:
            member.kill()


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_java_members_share_partitions_and_read_each_record_once(server: Server, assignor: str) -> None:
    topic = f"shared-{assignor}"
    server.create(topic, PARTITIONS)
    setting = f"group.remote.assignor={assignor}"
    one, two = (server.member(f"{topic}-{i}", topic, setting) for i in (1, 2))
    with ended(one, two):
        have(one, two)
        write(server, topic, *map(str, range(20)))
        until(lambda: len(one.read + two.read) >= 20, lambda: (one.read, two.read))
        state = server.tool("--describe", "--group", f"{topic}-group", "--state")
        assert state[-1][-4:] == [assignor, "Stable", "2"][-4:] or state[-1][-2:] == ["Stable", "2"]
        members = server.tool("--describe", "--group", f"{topic}-group", "--members", "--verbose")
        assert len(members) == 3
        two.end()
        have(one)
        write(server, topic, *map(str, range(20, 40)))
        until(lambda: len(one.read + two.read) >= 40, lambda: (one.read, two.read))
        one.end()
    assert sorted(one.read + two.read, key=int) == [str(number) for number in range(40)]
    listed = server.tool("--list", "--state", "--type")
    assert [f"{topic}-group", "Consumer", "Empty"] in listed


def test_a_member_that_is_killed_is_replaced(server: Server) -> None:
    server.create("killed", PARTITIONS)
    server.expect_soon("killed-group")
    one, two = (server.member(f"killed-{i}", "killed") for i in (1, 2))
    with ended(one, two):
        have(one, two)
        two.kill()
        have(one)


def test_a_static_member_comes_back_to_its_partitions(server: Server) -> None:
    server.create("static", PARTITIONS)
    one, two = (server.member(f"static-{i}", "static", f"group.instance.id=i{i}") for i in (1, 2))
    with ended(one, two):
        have(one, two)
        had = two.has
        two.end()
        again = server.member("static-3", "static", "group.instance.id=i2")
        with ended(again):
            have(one, again)
            assert again.has == had


def test_a_pattern_finds_topics(server: Server) -> None:
    server.create("pattern-of-members", PARTITIONS)
    one = server.member("pattern", "/pattern-of-.*")
    with ended(one):
        have(one)
        write(server, "pattern-of-members", "value")
        until(lambda: one.read == ["value"], lambda: one.read)
        one.end()


def test_members_of_librdkafka_and_java_in_one_group(server: Server) -> None:
    server.create("mixed", PARTITIONS)
    client = librdkafka(server, "mixed")
    one = server.member("mixed", "mixed")
    with ended(one):

        def is_shared() -> bool:
            client.poll(0.05)
            has = {each.partition for each in client.assignment()}
            return len(has) == len(one.has) == PARTITIONS // 2 and not has & one.has

        until(is_shared, lambda: (client.assignment(), one.has))
        client.close()
        have(one)
        one.end()


def librdkafka(server: Server, topic: str) -> Consumer:
    client = Consumer(
        {
            "bootstrap.servers": server.bootstrap_servers, "group.id": f"{topic}-group", "log_level": 0,
            "group.protocol": "consumer", "auto.offset.reset": "earliest", "enable.auto.commit": False,
        }
    )  # fmt: skip
    client.subscribe([topic])
    return client


def test_a_classic_group_is_upgraded_and_downgraded(server: Server) -> None:
    server.create("upgraded", PARTITIONS)
    protocols = "partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    old = server.member("upgraded-1", "upgraded", protocols, "heartbeat.interval.ms=200", protocol="classic")
    with ended(old):
        have(old)
        new = server.member("upgraded-2", "upgraded")
        with ended(new):
            have(old, new)
            assert "Consumer" in str(server.tool("--list", "--state", "--type"))
            write(server, "upgraded", *"abcdefgh")
            until(lambda: len(old.read + new.read) >= 8, lambda: (old.read, new.read))
            new.end()
        have(old)
        listed = server.tool("--list", "--type")
        assert ["upgraded-group", "Classic"] in listed
        write(server, "upgraded", *"ijkl")
        until(lambda: len(old.read + new.read) >= 12, lambda: (old.read, new.read))
        old.end()
    assert sorted(old.read + new.read) == list("abcdefghijkl")

"""Several listeners, one of them advertised with the port of a forwarder: real clients get the address of the
listener that they came in by, from ``txnkafka serve`` as from Apache Kafka."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from tests.conformance.both_brokers import BROKERS, prepare
from tests.conformance.broker import KafkaBroker
from tests.conformance.forwarder import Forwarder
from tests.conformance.transactional_clients import CLIENTS, see, started
from tests.conformance.transactional_clients import values as read
from tests.server.client_commands import Transactional
from tests.server.serving import Serving, free_ports

SECONDS = 60


class Addresses(NamedTuple):
    """The two ways to a broker: its own port, and the forwarder's, which its second listener advertises."""

    direct: str
    mapped: str
    forwarder: Forwarder


@pytest.fixture(scope="module", params=BROKERS)
def addresses(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Addresses]:
    directory = tmp_path_factory.mktemp("broker")
    with Forwarder() as forwarder, running(request.param, directory, forwarder) as direct:
        admin = AdminClient({"bootstrap.servers": direct, "log_level": 0})
        topics = [NewTopic(f"t-{name}", 1, 1) for name in (*CLIENTS, "kafka-python")]
        for each in admin.create_topics(topics).values():
            each.result(SECONDS)
        yield Addresses(direct, forwarder.address, forwarder)


@contextlib.contextmanager
def running(name: str, directory: Path, forwarder: Forwarder) -> Iterator[str]:
    """A broker with two listeners; yields the address of the first one. Both read the same file."""
    direct, forwarder.target, controller = free_ports(3)
    settings = {
        "listeners": f"DIRECT://127.0.0.1:{direct},MAPPED://127.0.0.1:{forwarder.target},"
        f"CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"DIRECT://127.0.0.1:{direct},MAPPED://{forwarder.address}",
        "listener.security.protocol.map": "DIRECT:PLAINTEXT,MAPPED:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "DIRECT",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
    }
    prepare(directory / "data", [])
    kafka = KafkaBroker(directory, settings, is_static=True)
    if name != BROKERS[0]:
        kafka.start()
        try:
            yield f"127.0.0.1:{direct}"
        finally:
            kafka.stop()
        return
    with Serving(directory / "data", config_file=directory / "server.properties") as serving:
        assert serving.address == f"127.0.0.1:{direct}"
        yield serving.address
        assert serving.stop() == 0
        assert "error" not in serving.log()


def test_librdkafka_is_told_the_address_of_its_listener(addresses: Addresses) -> None:
    for address in (addresses.direct, addresses.mapped):
        config = {"bootstrap.servers": address, "log_level": 0}
        admin = AdminClient(config)
        cluster = admin.describe_cluster(request_timeout=SECONDS).result()
        assert [f"{each.host}:{each.port}" for each in cluster.nodes] == [address]
        listed = admin.list_topics(timeout=SECONDS)
        assert [f"{each.host}:{each.port}" for each in listed.brokers.values()] == [address]
        consumer = Consumer({**config, "group.id": "g"})
        consumer.subscribe(["t-confluent-kafka"])
        consumer.poll(5)
        (group,) = admin.describe_consumer_groups(["g"], request_timeout=SECONDS).values()
        coordinator = group.result(SECONDS).coordinator
        assert f"{coordinator.host}:{coordinator.port}" == address
        consumer.close()


@pytest.mark.parametrize("client", CLIENTS)
def test_transactions_through_the_forwarder(addresses: Addresses, client: str, tmp_path: Path) -> None:
    """The client's connection to the broker also goes there, not only its first one."""
    before, topic = addresses.forwarder.connections, f"t-{client}"
    with contextlib.closing(started(client, tmp_path / "client.log")) as of:
        producer = Transactional(of, addresses.mapped, f"x-{client}").init()
        producer.begin().send(topic, "a", "b").commit()
        producer.begin().send(topic, "lost").abort()
        producer.close()
        see(of, addresses.mapped, topic, "a", "b")
        assert addresses.forwarder.connections >= before + 2
        seen = addresses.forwarder.connections
        assert read(of, addresses.direct, topic) == ["a", "b"]
        assert addresses.forwarder.connections == seen


def test_kafka_python(addresses: Addresses) -> None:
    before = addresses.forwarder.connections
    producer = KafkaProducer(bootstrap_servers=addresses.mapped, transactional_id="python")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t-kafka-python", b"a").get(SECONDS)
    producer.commit_transaction()
    producer.close()
    consumer = KafkaConsumer(
        "t-kafka-python", bootstrap_servers=addresses.mapped, group_id="python", auto_offset_reset="earliest",
        consumer_timeout_ms=SECONDS * 1000, isolation_level="read_committed", metadata_max_age_ms=1000,
    )  # fmt: skip
    assert next(consumer).value == b"a"
    consumer.close()
    assert addresses.forwarder.connections >= before + 2
    for address in (addresses.direct, addresses.mapped):
        admin = KafkaAdminClient(bootstrap_servers=address)
        (node,) = admin.describe_cluster()["brokers"]
        assert f"{node['host']}:{node['port']}" == address
        admin.close()

"""Real clients, on `txnkafka serve` and on Apache Kafka: what they are promised, and which error they name."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.both_brokers import BROKERS, broker
from tests.conformance.transactional_clients import CLIENTS, Client, Transactional, started, values

SECONDS = 30
CONFIGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}
UNCOMMITTED = "read_uncommitted"


@pytest.fixture(scope="module")
def broker_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Addresses of brokers by their names; each is started by its first use."""
    ids = [f"{name}-epochs" for name in CLIENTS]
    with contextlib.ExitStack() as stack:

        @functools.cache
        def start(name: str) -> str:
            return stack.enter_context(broker(name, tmp_path_factory.mktemp("broker"), CONFIGS, ids))

        yield start


@pytest.fixture(scope="module")
def client_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Client]]:
    """Clients by their names; each is started by its first use."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def start(name: str) -> Client:
            found = started(name, tmp_path_factory.mktemp("client") / "log")
            stack.callback(found.close)
            return found

        yield start


@pytest.fixture(params=BROKERS)
def server(request: pytest.FixtureRequest, broker_of: Callable[[str], str]) -> str:
    return broker_of(request.param)


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, client_of: Callable[[str], Client]) -> Client:
    return client_of(request.param)


@pytest.fixture
def topic(request: pytest.FixtureRequest, server: str) -> str:
    """A new topic, named after the test and the client; transactional ids have the same name."""
    name = request.node.name.replace("[", "-").rstrip("]").replace(" ", "-")
    admin = AdminClient({"bootstrap.servers": server, "log_level": 0})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(SECONDS)
    return name


def test_commit_and_abort(client: Client, server: str, topic: str) -> None:
    producer = Transactional(client, server, topic).init()
    producer.begin().send(topic, "one", "two").commit()
    producer.begin().send(topic, "never").abort()
    producer.begin().commit()
    producer.begin().send(topic, "three").commit()
    assert values(client, server, topic) == ["one", "two", "three"]
    assert values(client, server, topic, UNCOMMITTED) == ["one", "two", "never", "three"]
    producer.close()

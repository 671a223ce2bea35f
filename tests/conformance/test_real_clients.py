"""Real clients on `txnkafka serve` and on Apache Kafka, beyond the jobs of the compatibility card: zombies,
epochs that run out, codecs of the log, large batches, and the errors that the clients name."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient

from tests.conformance.both_brokers import BROKERS, EXHAUSTED_SOON, Running, broker
from tests.conformance.transactional_clients import CLIENTS, see, started, values
from tests.server.client_commands import Client, ClientError, Transactional
from txnkafka.cli.main import cli

SECONDS = 30
UNCOMMITTED = "read_uncommitted"
Refused = Callable[[str, Callable[[], object]], None]
# the word of each client for what it is refused; the same on both brokers
ERRORS: dict[str, dict[str, str]] = {
    "confluent-kafka": {
        "send of a zombie": "_FENCED or _PURGE_QUEUE",
        "abort of a zombie": "_FENCED",
        "send after a new producer id": "_FENCED or _PURGE_QUEUE",
    },
    "java-4.4": {
        "send of a zombie": "INVALID_PRODUCER_EPOCH",
        "abort of a zombie": "PRODUCER_FENCED",
        "send after a new producer id": "INVALID_PRODUCER_ID_MAPPING",
    },
    "java-3.9": {
        "send of a zombie": "PRODUCER_FENCED",
        "abort of a zombie": "PRODUCER_FENCED",
        "send after a new producer id": "INVALID_PRODUCER_ID_MAPPING",
    },
    "franz-go": {
        "send of a zombie": "INVALID_PRODUCER_EPOCH",
        "abort of a zombie": "PRODUCER_FENCED",
        "send after a new producer id": "INVALID_PRODUCER_ID_MAPPING",
    },
}


@pytest.fixture(scope="module")
def broker_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Running]]:
    """Addresses of brokers by their names; each is started by its first use."""
    ids = [f"{name}-epochs" for name in CLIENTS]
    with contextlib.ExitStack() as stack:

        @functools.cache
        def start(name: str) -> Running:
            return stack.enter_context(broker(name, tmp_path_factory.mktemp("broker"), {}, ids))

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
def running(request: pytest.FixtureRequest, broker_of: Callable[[str], Running]) -> Running:
    return broker_of(request.param)


@pytest.fixture
def server(running: Running) -> str:
    return running.bootstrap_servers


@pytest.fixture(params=CLIENTS)
def name(request: pytest.FixtureRequest) -> str:
    """Of the client."""
    found: str = request.param
    return found


@pytest.fixture
def client(name: str, client_of: Callable[[str], Client]) -> Client:
    return client_of(name)


@pytest.fixture
def refused(name: str) -> Refused:
    """``refused(situation, command)``: the command fails, with what ERRORS says."""

    def check(situation: str, command: Callable[[], object]) -> None:
        with pytest.raises(ClientError) as caught:
            command()
        assert caught.value.name in ERRORS[name][situation].split(" or "), caught.value

    return check


@pytest.fixture
def topic(request: pytest.FixtureRequest, server: str) -> str:
    """A new topic, named after the test and the client; transactional ids have the same name."""
    name = request.node.name.replace("[", "-").rstrip("]").replace(" ", "-")
    admin = AdminClient({"bootstrap.servers": server, "log_level": 0})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(SECONDS)
    return name


def test_a_zombie_writes_nothing(client: Client, server: str, topic: str, refused: Refused) -> None:
    zombie = Transactional(client, server, topic, "zombie").init()
    zombie.begin().send(topic, "before").commit()
    second = Transactional(client, server, topic, "second").init()
    second.begin().send(topic, "after")
    refused("send of a zombie", lambda: zombie.begin().send(topic, "zombie"))
    refused("abort of a zombie", zombie.abort)
    second.commit()
    assert values(client, server, topic, UNCOMMITTED) == ["before", "after"]
    zombie.close()
    second.close()


def test_epochs_run_out(client: Client, name: str, server: str, topic: str, refused: Refused) -> None:
    """The transactional id has two epochs left; each instance takes one, and each transaction of TV2."""
    transactional_id, sent = f"{name}-epochs", list[str]()
    before = described(server, transactional_id)
    assert before.producer_epoch == EXHAUSTED_SOON + 1
    zombie = Transactional(client, server, transactional_id, "zombie").init()
    for instance in range(4):
        producer = Transactional(client, server, transactional_id, f"epochs-{instance}").init()
        for number in range(3):
            sent.append(f"{instance}-{number}")
            producer.begin().send(topic, sent[-1]).commit()
        producer.begin().send(topic, "aborted").abort()
        producer.close()
    after = described(server, transactional_id)
    assert after.producer_id > before.producer_id
    assert after.producer_epoch < 32
    refused("send after a new producer id", lambda: zombie.begin().send(topic, "zombie"))
    see(client, server, topic, *sent)
    zombie.close()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codecs(client: Client, running: Running, topic: str, codec: str) -> None:
    producer = Transactional(client, running.bootstrap_servers, topic, compression_type=codec).init()
    sent = [f"{number}" for number in range(100)]
    producer.begin().send(topic, *sent, size=200).commit()
    see(client, running.bootstrap_servers, topic, *(value.ljust(200, ".") for value in sent))
    assert codecs(running, topic) == {codec}
    producer.close()


def test_large_batches(client: Client, server: str, topic: str) -> None:
    producer = Transactional(client, server, topic, batch_size=1_000_000, linger_ms=20).init()
    many = [f"{number}" for number in range(6000)]
    producer.begin().send(topic, *many, size=500).send(topic, "one", size=900_000).commit()
    producer.begin().send(topic, "aborted", size=900_000).abort()
    expected = [*(value.ljust(500, ".") for value in many), "one".ljust(900_000, ".")]
    see(client, server, topic, *expected)
    producer.close()


def described(server: str, transactional_id: str) -> Any:
    """What kafka-python's admin client says of the id."""
    admin = KafkaAdminClient(bootstrap_servers=server)
    try:
        return admin.describe_transactions([transactional_id])[transactional_id]
    finally:
        admin.close()


def codecs(running: Running, topic: str) -> set[str]:
    """Of the batches in the log."""
    arguments = ["stats", str(running.data), "--topic", topic, "--format", "json"]
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert result.exception is None, result.exception
    (row,) = json.loads(result.stdout)
    return set(row["codecs"])

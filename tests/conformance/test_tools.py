"""Apache Kafka's command line tools print the same on `txnkafka serve` and on Apache Kafka."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from tests.conformance.both_brokers import BROKERS, broker
from tests.conformance.clients import Clients, Message, send
from tests.conformance.kafka_tools import Tools
from txnkafka import TopicPartition

CONFIGS = {"transaction.partition.verification.enable": "false"}  # or nothing could hang
HELD_BACK = [Message(None, b"held back")]
FIND_HANGING = "--broker-id 1 --max-transaction-timeout 0"
COMMITTED = "--partition 0 --offset earliest --isolation-level read_committed --timeout-ms 60000"
Lines = list[str]
Shown = dict[str, Lines]  # output by command line
Step = Iterator[tuple[str, Lines]]


def topics(tools: Tools, clients: Clients) -> Step:
    yield tools.show("topics", "--create --topic tools --partitions 2 --config retention.ms=-1")
    yield tools.show("topics", "--create --topic deleted")
    yield "again", tools.show("topics", "--create --topic deleted")[1]
    yield tools.show("topics", "--delete --topic deleted")
    yield tools.show("topics", "--list")
    yield tools.show("topics", "--describe --topic tools")
    yield tools.show("topics", "--describe --topic deleted")


def console(tools: Tools, clients: Clients) -> Step:
    clients.create("console")
    yield tools.show("console-producer", "--topic console", said="one\ntwo\nthree\n")
    yield tools.show("console-consumer", f"--topic console --max-messages 3 {COMMITTED}")
    for time in ("-1", "-2", "-4"):  # end, start, start of what is local
        yield tools.show("get-offsets", f"--topic console --time {time}")


def transactions(tools: Tools, clients: Clients) -> Step:
    """One committed, one open, one hanging, which is ended by the tool; then the open one is."""
    clients.create("held")
    committed, opened = clients.transactional("committed"), clients.transactional("open")
    for producer in (committed, opened):
        producer.begin_transaction()
        send(producer, "held", HELD_BACK)
    committed.commit_transaction(30)
    clients.create("stray", 2)
    clients.leave_hanging(TopicPartition("stray", 0), TopicPartition("stray", 1), "stray")
    yield tools.show("transactions", "list")
    yield tools.show("transactions", "list --transactional-id-pattern c.*")
    for name in ("committed", "open", "nobody"):
        yield tools.show("transactions", f"describe --transactional-id {name}")
    yield tools.show("transactions", "describe-producers --topic held --partition 0")
    yield tools.show("transactions", f"find-hanging {FIND_HANGING}")
    yield tools.show("transactions", "abort --topic stray --partition 0 --start-offset 0")
    yield "found after the abort", tools.show("transactions", f"find-hanging {FIND_HANGING}")[1]
    yield tools.show("transactions", "describe-producers --topic stray --partition 0")
    yield tools.show("transactions", "forceTerminateTransaction --transactionalId open")
    with pytest.raises(KafkaException) as caught:
        opened.commit_transaction(30)
    yield "commit of the terminated", [str(caught.value.args[0].name())]
    yield tools.show("console-consumer", f"--topic held --max-messages 1 {COMMITTED}")


def producers(tools: Tools, clients: Clients) -> Step:
    """Kafka's own transactional producer, and its verifiable one."""
    clients.create("performance")
    clients.produce_with_java("performance", 500, "performance", 20)
    _, lines = tools.show("console-consumer", f"--topic performance --max-messages 500 {COMMITTED}")
    yield "performance", [f"{len(line)} characters" for line in lines]
    clients.create("verifiable")
    _, lines = tools.show("verifiable-producer", "--topic verifiable --max-messages 20 --acks -1")
    yield "verifiable-producer", [line for line in lines if "timestamp" not in line]
    yield tools.show("console-consumer", f"--topic verifiable --max-messages 20 {COMMITTED}")


STEPS: tuple[Callable[[Tools, Clients], Step], ...] = (topics, console, transactions, producers)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Shown]:
    """By the brokers' names."""
    directories = [tmp_path_factory.mktemp("tools") for _ in BROKERS]
    with ThreadPoolExecutor(len(BROKERS)) as executor:
        return dict(zip(BROKERS, executor.map(shown_on, BROKERS, directories), strict=True))


def shown_on(name: str, directory: Path) -> Shown:
    """All steps on one broker."""
    with broker(name, directory, CONFIGS, ()) as running:
        tools, clients = Tools(running.bootstrap_servers), Clients(running)
        with contextlib.closing(clients):
            return {line: output for step in STEPS for line, output in step(tools, clients)}


def test_the_same_is_shown(shown: dict[str, Shown]) -> None:
    ours, theirs = (shown[name] for name in BROKERS)
    assert list(ours) == list(theirs)
    for line, output in ours.items():
        assert output == theirs[line], line


@pytest.mark.parametrize("name", BROKERS)
def test_the_story_is_the_one_that_is_meant(shown: dict[str, Shown], name: str) -> None:
    """So that two empty answers are not the same."""
    found = {line: "\n".join(output) for line, output in shown[name].items()}
    assert "one\nthree\ntwo" in found[f"console-consumer --topic console --max-messages 3 {COMMITTED}"]
    assert "open 1 producer" in found["transactions list"]
    assert "stray 0 producer" in found[f"transactions find-hanging {FIND_HANGING}"]
    assert "stray" not in found["found after the abort"]
    assert found["commit of the terminated"] == "_FENCED"
    assert shown[name]["performance"] == ["6 characters", *["200 characters"] * 500]

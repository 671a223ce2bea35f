"""The pytest plugin, in the tests of a program of a user."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

HELPERS: Final = """
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

def send(servers, topic, value, **settings):
    producer = Producer({"bootstrap.servers": servers, "log_level": 0, **settings})
    errors = []
    producer.produce(topic, value, callback=lambda error, _: errors.append(error))
    assert producer.flush(10) == 0
    return errors

def read(servers, topic, count=1):
    settings = {"bootstrap.servers": servers, "group.id": "g", "enable.auto.commit": False}
    consumer = Consumer({**settings, "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = [message.value() for message in consumer.consume(count, 10)]
    consumer.close()
    return found

def topics(servers):
    listed = AdminClient({"bootstrap.servers": servers}).list_topics().topics
    return {name for name in listed if name[0] != "_"}
"""


def run(directory: Path, tests: str, *options: str) -> str:
    """Run pytest on the tests of a user, with the installed plugin; return its output."""
    (directory / "test_user.py").write_text(HELPERS + tests)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(directory)]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr


def test_each_test_gets_a_broker_with_clean_topics_in_one_process(tmp_path: Path) -> None:
    output = run(
        tmp_path,
        """
PROCESSES = set()

@pytest.mark.parametrize("number", range(3))
def test_clean(kafka_broker, number):
    assert topics(kafka_broker.bootstrap_servers) == set()
    assert send(kafka_broker.bootstrap_servers, "orders", b"%d" % number) == [None]
    assert read(kafka_broker.bootstrap_servers, "orders") == [b"%d" % number]
    PROCESSES.add(kafka_broker.bootstrap_servers)
    assert len(PROCESSES) == 1
""",
    )
    assert "3 passed" in output, output


def test_the_clock_aborts_a_transaction_and_the_next_test_gets_a_new_broker(tmp_path: Path) -> None:
    output = run(
        tmp_path,
        """
SERVERS = []

def test_timeout(kafka_broker, kafka_clock):
    servers = kafka_broker.bootstrap_servers
    SERVERS.append(servers)
    settings = {"transactional.id": "shop", "transaction.timeout.ms": 60_000, "log_level": 0}
    producer = Producer({"bootstrap.servers": servers, **settings})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", b"too late")
    producer.flush()
    kafka_clock.advance(seconds=120)
    with pytest.raises(Exception, match="fenced|newer producer|Broker: Producer"):
        producer.commit_transaction()
    send(servers, "orders", b"after")
    assert read(servers, "orders") == [b"after"]

def test_next(kafka_broker):
    assert kafka_broker.bootstrap_servers not in SERVERS
    assert topics(kafka_broker.bootstrap_servers) == set()
""",
    )
    assert "2 passed" in output, output


def test_a_hanging_transaction_holds_back_readers_and_a_killed_broker_keeps_acknowledged_records(
    tmp_path: Path,
) -> None:
    output = run(
        tmp_path,
        """
def test_hanging(kafka_broker, kafka_faults):
    servers = kafka_broker.bootstrap_servers
    assert send(servers, "orders", b"before") == [None]
    assert kafka_faults.hang_transaction("orders") >= 0
    assert send(servers, "orders", b"held back") == [None]
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "log_level": 0})
    consumer.assign([TopicPartition("orders", 0, 0)])
    assert [message.value() for message in consumer.consume(2, 3)] == [b"before"]
    consumer.close()

def test_kill(kafka_broker, kafka_faults):
    servers = kafka_broker.bootstrap_servers
    assert send(servers, "orders", b"kept") == [None]
    kafka_faults.kill()
    kafka_faults.restart()
    assert kafka_broker.bootstrap_servers == servers
    assert read(servers, "orders") == [b"kept"]

def test_flush(kafka_broker, kafka_faults):
    servers = kafka_broker.bootstrap_servers
    assert send(servers, "orders", b"kept") == [None]
    kafka_faults.fail_next_flush()
    producer = Producer({"bootstrap.servers": servers, "message.timeout.ms": 1000, "log_level": 0})
    errors = []
    producer.produce("orders", b"lost", callback=lambda error, _: errors.append(error))
    producer.flush(10)
    assert [error is None for error in errors] == [False]
    kafka_faults.restart()
    assert kafka_faults.drop_connections() == 0
    assert read(servers, "orders", 1)[0] == b"kept"
""",
    )
    assert "3 passed" in output, output


def test_an_embedded_broker_has_the_clock_and_the_faults_of_its_test(tmp_path: Path) -> None:
    output = run(
        tmp_path,
        """
def test_embedded(kafka_embedded, kafka_clock, kafka_faults):
    servers = kafka_embedded.serve("127.0.0.1:0")
    assert send(servers, "orders", b"x") == [None]
    kafka_clock.advance(seconds=3600)
    assert kafka_faults.hang_transaction("orders") >= 0
    with pytest.raises(NotImplementedError, match="use kafka_broker"):
        kafka_faults.kill()
""",
    )
    assert "1 passed" in output, output


@pytest.mark.parametrize("name", ["kafka_broker", "kafka_embedded", "kafka_clock", "kafka_faults"])
def test_pytest_shows_the_fixtures(tmp_path: Path, name: str) -> None:
    assert f"\n{name} " in run(tmp_path, "", "--fixtures")

"""Apache Kafka 4.3.1 and txnkafka start on each other's directories; features of 4.4 are refused there.

All other tests of this package run Apache Kafka 4.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Where

from tests.conformance.broker import KafkaBroker
from tests.conformance.clients import Clients, Message, send
from tests.conformance.hand_over.records import consumed, offset_of, transaction, until
from tests.conformance.hand_over.story import SETTINGS, records_there_and_back
from tests.conformance.maven import kafka_4_3_jars
from tests.server.serving import Serving
from txnkafka.env import LocalDataFiles, SystemClock
from txnkafka.handover.hand_over import hand_over
from txnkafka.handover.report import HandOver, Owner

FILES = LocalDataFiles()
TOPIC, GROUP, SECONDS = "t", "copies", 60


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaBroker]:
    """Apache Kafka 4.3.1, not started, without a directory."""
    broker = KafkaBroker(tmp_path, SETTINGS, is_static=True, jars=kafka_4_3_jars())
    yield broker
    broker.stop()


def handed_over(kafka: KafkaBroker, to: Owner) -> HandOver:
    report = hand_over(FILES, str(kafka.log_dir), to, now_ms=SystemClock().now_ms())
    assert report.is_ready, report.findings
    return report


def commit(server: str, transactional_id: str, value: bytes, offset: int) -> None:
    """Commit a transaction with two records and an offset of the group."""
    producer = transaction(server, transactional_id, value, value)
    member = Consumer({"bootstrap.servers": server, "group.id": GROUP, "log_level": 0})
    offsets = [Where(TOPIC, 0, offset)]
    producer.send_offsets_to_transaction(offsets, member.consumer_group_metadata(), SECONDS)
    member.close()
    producer.commit_transaction(SECONDS)


def sees(server: str, values: list[bytes], offset: int) -> None:
    """A consumer reads each value twice, and the group has the offset."""
    until(lambda: consumed(server), sorted(values * 2))
    until(lambda: offset_of(server, GROUP), offset)


def test_a_directory_of_txnkafka_goes_to_4_3_and_comes_back(kafka: KafkaBroker) -> None:
    records_there_and_back(kafka, rounds=1)


def test_a_directory_of_4_3_is_served_and_goes_back(tmp_path: Path) -> None:
    """Formatted by ``kafka-storage format --standalone``; a transaction stays open at each stop."""
    kafka = KafkaBroker(tmp_path, SETTINGS, jars=kafka_4_3_jars())
    kafka.format()
    kafka.start()
    Clients(kafka).create(TOPIC, 2)
    commit(kafka.bootstrap_servers, "theirs", b"1", 1)
    left = transaction(kafka.bootstrap_servers, "left", b"never", b"never")
    kafka.stop()
    assert handed_over(kafka, Owner.TXNKAFKA).findings == []
    del left
    settings = [option for item in SETTINGS.items() for option in ("--config", "=".join(item))]
    with Serving(kafka.log_dir, *settings) as serving:
        transaction(serving.address, "left").abort_transaction(SECONDS)
        sees(serving.address, [b"1"], 1)
        commit(serving.address, "theirs", b"2", 2)
        left = transaction(serving.address, "left", b"never", b"never")
        assert serving.stop() == 0
    assert handed_over(kafka, Owner.KAFKA).findings == []
    del left
    kafka.start()
    transaction(kafka.bootstrap_servers, "left").abort_transaction(SECONDS)
    sees(kafka.bootstrap_servers, [b"1", b"2"], 2)
    commit(kafka.bootstrap_servers, "theirs", b"3", 3)
    sees(kafka.bootstrap_servers, [b"1", b"2", b"3"], 3)
    kafka.stop()


def test_a_directory_at_the_level_of_4_3_goes_from_4_4_to_4_3(tmp_path: Path) -> None:
    """txnkafka serves it in between, and leaves the levels as they are."""
    kafka = KafkaBroker(tmp_path, SETTINGS, release="4.3")
    kafka.format()
    kafka.start()
    Clients(kafka).create(TOPIC, 2)
    commit(kafka.bootstrap_servers, "x", b"1", 1)
    kafka.stop()
    settings = [option for item in SETTINGS.items() for option in ("--config", "=".join(item))]
    with Serving(kafka.log_dir, *settings) as serving:
        commit(serving.address, "x", b"2", 2)
        assert serving.stop() == 0
    assert handed_over(kafka, Owner.KAFKA).findings == []
    older = KafkaBroker(tmp_path, SETTINGS, jars=kafka_4_3_jars())
    older.start()
    try:
        sees(older.bootstrap_servers, [b"1", b"2"], 2)
    finally:
        older.stop()


@pytest.mark.parametrize(
    ("release", "features", "newer", "says"),
    [
        ("4.3", {"share.version": 2}, 1, r"'share.version', featureLevel=2\), but .* supports versions 0-1"),
        ("4.4-IV0", {"share.version": 1}, 1, r"'metadata.version', featureLevel=31\), but .* versions 7-30"),
        (None, {}, 2, "No MetadataVersion with feature level 33. Valid feature levels are from 7 to 31"),
    ],
    ids=["share.version 2", "metadata.version 31", "defaults of 4.4"],
)
def test_4_3_refuses_features_of_4_4(
    tmp_path: Path, release: str | None, features: dict[str, int], newer: int, says: str
) -> None:
    """``handover`` warns of each feature, and Apache Kafka 4.4 can still start on the directory."""
    kafka = KafkaBroker(tmp_path, SETTINGS, release=release, features=features)
    kafka.format()
    kafka.start()
    clients = Clients(kafka)
    clients.create(TOPIC, 2)
    for partition in range(2):
        send(clients.producer(), TOPIC, [Message(None, b"1")], partition)
    clients.close()
    kafka.stop()
    report = handed_over(kafka, Owner.KAFKA)
    assert [finding.code for finding in report.findings] == ["needs-kafka-4.4"] * newer
    older = KafkaBroker(tmp_path, SETTINGS, jars=kafka_4_3_jars())
    with pytest.raises(RuntimeError, match="did not start"):
        older.start()
    assert any(re.search(says, line) for line in older.said())
    kafka = KafkaBroker(tmp_path, SETTINGS)
    kafka.start()
    try:
        until(lambda: consumed(kafka.bootstrap_servers), [b"1", b"1"])
    finally:
        kafka.stop()

"""What the next owner refuses, or does otherwise: one fact of a registry at a time."""

from __future__ import annotations

from typing import Any

import pytest

from txnkafka.coordinator.registry.cluster_image import ClusterImage
from txnkafka.coordinator.registry.metadata_records import config, feature_level, partition, topic
from txnkafka.handover.partitions import check_partitions, missing_topic_ids
from txnkafka.handover.registry import Registry
from txnkafka.handover.registry_rules import check_registry
from txnkafka.handover.report import Owner
from txnkafka.handover.settings import settings_of
from txnkafka.model import TopicPartition
from txnkafka.storage.formats.meta_properties import MetaProperties
from txnkafka.wire.records import LogRecord

KAFKA, OURS = Owner.KAFKA, Owner.TXNKAFKA
ID, OTHER_ID, DIRECTORY = "AAAAAAAAAAAAAAAAAAAABQ", "AAAAAAAAAAAAAAAAAAAABg", "AAAAAAAAAAAAAAAAAAAABw"
IDENTITY = MetaProperties(1, "cluster", 1, DIRECTORY)
VOTER = {
    "voter_id": 1, "voter_directory_id": DIRECTORY,
    "endpoints": [{"name": "INTERN", "host": "10.0.0.1", "port": 19093}],
}  # fmt: skip
SCRAM = LogRecord(
    "user_scram_credential_record", 11, None, 0, {"name": "alice", "mechanism": 1, "iterations": 4096}
)


def image(*records: LogRecord) -> ClusterImage:
    found = ClusterImage()
    for record in (
        feature_level("metadata.version", 30),
        topic("t", ID),
        partition(ID, 0, 1, DIRECTORY),
        *records,
    ):
        found.replay(record)
    return found


def changed(**fields: Any) -> LogRecord:
    """The partition with other fields."""
    record = partition(ID, 0, 1, DIRECTORY)
    assert record.value is not None
    record.value.update(fields)
    return record


def codes(registry: Registry, to: Owner) -> list[str]:
    return [finding.code for finding in check_registry(registry, IDENTITY, to, "/data")]


@pytest.mark.parametrize("to", Owner)
def test_a_registry_of_our_own_has_no_findings(to: Owner) -> None:
    assert codes(Registry(image()), to) == []
    assert codes(Registry(image(), 1, [VOTER]), to) == []


@pytest.mark.parametrize(
    ("level", "last_known", "expected"),
    [(1, [1], []), (1, [1, 2], ["no-leader"]), (0, [1], ["no-leader"])],
)
def test_the_last_known_leader_is_elected_by_its_feature(
    level: int, last_known: list[int], expected: list[str]
) -> None:
    feature = feature_level("eligible.leader.replicas.version", level)
    record = changed(leader=-1, isr=[], last_known_elr=last_known)
    assert codes(Registry(image(feature, record)), KAFKA) == expected


@pytest.mark.parametrize(
    ("record", "to", "code"),
    [
        (feature_level("metadata.version", 34), KAFKA, "unknown-feature"),
        (feature_level("metadata.version", 6), OURS, "unknown-feature"),
        (feature_level("metadata.version", 31), KAFKA, "needs-kafka-4.4"),
        (feature_level("share.version", 2), KAFKA, "needs-kafka-4.4"),
        (feature_level("share.version", 3), OURS, "unknown-feature"),
        (feature_level("made.up.version", 1), KAFKA, "unknown-feature"),
        (feature_level("transaction.version", 3), KAFKA, "unknown-feature"),
        (feature_level("metadata.version", 0), KAFKA, "unknown-feature"),
        (changed(replicas=[1, 2]), KAFKA, "several-nodes"),
        (changed(replicas=[2]), OURS, "several-nodes"),
        (changed(leader=-1, isr=[]), KAFKA, "no-leader"),
        (config(2, "t", "segment.bytes", "1048575"), KAFKA, "setting-refused"),
        (config(2, "t", "retention.ms", "a while"), OURS, "setting-refused"),
        (config(2, "t", "segment.bytes", "-5"), KAFKA, "setting-refused"),
        (config(2, "t", "segment.bytes", "1_048_576"), KAFKA, "setting-refused"),
        (config(2, "t", "retention.ms", "-2"), KAFKA, "setting-refused"),
        (config(2, "t", "retention.ms", "a while"), KAFKA, "setting-refused"),
        (config(2, "t", "cleanup.policy", "delete,"), KAFKA, "setting-refused"),
        (config(2, "t", "min.insync.replicas", "99999999999"), KAFKA, "setting-refused"),
        (config(2, "t", "local.retention.bytes", "9223372036854775808"), KAFKA, "setting-refused"),
        (config(2, "t", "preallocate", "yes"), KAFKA, "setting-refused"),
        (config(2, "t", "leader.replication.throttled.replicas", "x"), KAFKA, "setting-refused"),
        (config(2, "t", "remote.storage.enable", "true"), OURS, "tiered-storage"),
        (config(4, "", "log.cleaner.threads", "2"), OURS, "setting-without-effect"),
        (config(32, "g", "share.isolation.level", "read_committed"), OURS, "setting-without-effect"),
        (SCRAM, OURS, "not-enforced"),
    ],
)
def test_each_fact(record: LogRecord, to: Owner, code: str) -> None:
    levels = [feature_level("share.version", 1)]  # so that the features are never empty
    found = list(check_registry(Registry(image(*levels, record)), IDENTITY, to, "/data"))
    assert [finding.code for finding in found] == [code]
    assert all(finding.remedy for finding in found)


@pytest.mark.parametrize(
    ("record", "to"),
    [
        (feature_level("metadata.version", 33), OURS),
        (feature_level("share.version", 2), OURS),
        (config(2, "t", "max.decompressed.message.bytes", "1000"), OURS),
        (config(2, "t", "remote.copy.lag.ms", "-1"), OURS),
        (config(2, "t", "remote.copy.lag.bytes", "7"), KAFKA),
        (changed(leader=-1, isr=[1]), KAFKA),
        (changed(leader=-1, isr=[], eligible_leader_replicas=[1]), KAFKA),
        (changed(leader=-1, isr=[]), OURS),
        (config(2, "t", "segment.bytes", "1048576"), KAFKA),
        (config(2, "t", "message.format.version", "3.0"), KAFKA),
        (config(2, "t", "segment.bytes", " +1048576 "), KAFKA),
        (config(2, "t", "retention.bytes", "-5"), KAFKA),
        (config(2, "t", "cleanup.policy", ""), KAFKA),
        (config(2, "t", "leader.replication.throttled.replicas", "0:1, 1:2,"), KAFKA),
        (config(2, "t", "remote.storage.enable", "true"), KAFKA),
        (config(2, "t", "retention.bytes", "-5"), OURS),
        (config(2, "t", "message.timestamp.difference.max.ms", "1"), KAFKA),
        (config(2, "t", "message.timestamp.difference.max.ms", "1"), OURS),
        (config(2, "t", "no.such.config", "1"), KAFKA),
        (config(2, "t", "no.such.config", "1"), OURS),
        (config(2, "t", "internal.retention.ms", "x"), KAFKA),
        (config(2, "t", "internal.segment.bytes", "100"), KAFKA),
        (config(4, "", "min.insync.replicas", "1"), OURS),
        (config(4, "1", "log.retention.ms", "1"), OURS),
        (config(32, "g", "consumer.session.timeout.ms", "50000"), OURS),
        (SCRAM, KAFKA),
    ],
)
def test_what_is_in_order(record: LogRecord, to: Owner) -> None:
    assert codes(Registry(image(record)), to) == []


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_internal_topics_are_compacted(name: str) -> None:
    made = topic(name, OTHER_ID), partition(OTHER_ID, 0, 1, DIRECTORY)
    compacted = config(2, name, "cleanup.policy", "compact")
    for to in Owner:
        assert codes(Registry(image(*made)), to) == ["internal-topic-not-compacted"]
        assert codes(Registry(image(*made, compacted)), to) == []


def test_voters() -> None:
    other = {**VOTER, "voter_directory_id": OTHER_ID}
    assert codes(Registry(image(), 1, [other]), KAFKA) == ["voter-of-another-directory"]
    assert codes(Registry(image(), 1, [VOTER, {**VOTER, "voter_id": 2}]), OURS) == ["several-nodes"]


def test_several_directories() -> None:
    value = {"broker_id": 1, "broker_epoch": 5, "fenced": True, "log_dirs": [DIRECTORY, OTHER_ID]}
    record = LogRecord("register_broker_record", 0, None, 4, value)
    assert codes(Registry(image(record)), KAFKA) == ["several-directories"]


@pytest.mark.parametrize(
    ("found", "of_kafka", "of_ours"),
    [
        ({"t-0": ID}, [], []),
        ({"t-0": None}, [], []),
        ({"t-0": OTHER_ID}, ["another-topic"], ["another-topic"]),
        ({}, ["partition-without-directory"], ["partition-without-directory"]),
        ({"t-0": ID, "u-0": OTHER_ID}, ["stray-partition"], ["stray-partition"]),
        ({"t-0": ID, "t-1": ID}, ["stray-partition"], ["stray-partition"]),
    ],
)
def test_directories(found: dict[str, str | None], of_kafka: list[str], of_ours: list[str]) -> None:
    there = {TopicPartition(name[0], int(name[2])): topic_id for name, topic_id in found.items()}
    severities = []
    for to, expected in ((KAFKA, of_kafka), (OURS, of_ours)):
        findings = list(check_partitions(image(), there, to, "/data"))
        assert [finding.code for finding in findings] == expected
        severities += [finding.severity for finding in findings if finding.code == "stray-partition"]
    assert severities in ([], ["error", "warning"])


@pytest.mark.parametrize("to", Owner)
def test_an_empty_metadata_log_beside_partitions(to: Owner) -> None:
    there = {TopicPartition("t", 0): ID, TopicPartition("u", 0): OTHER_ID}
    (finding,) = check_partitions(ClusterImage(), there, to, "/data")
    assert (finding.code, finding.severity) == ("bad-metadata-log", "error")
    assert list(check_partitions(ClusterImage(), {}, to, "/data")) == []


def test_the_directory_of_a_deleted_topic_is_no_stray() -> None:
    known = image()
    known.replay(LogRecord("remove_topic_record", 9, None, 0, {"topic_id": ID}))
    assert list(check_partitions(known, {TopicPartition("t", 0): ID}, KAFKA, "/data")) == []


def test_missing_topic_ids() -> None:
    there = {TopicPartition("t", 0): None, TopicPartition("u", 0): None}
    assert missing_topic_ids(image(), there) == {TopicPartition("t", 0): ID}


def test_settings_of_a_static_and_a_dynamic_quorum() -> None:
    static = settings_of(Registry(image()), IDENTITY, KAFKA, "/data")
    assert "controller.quorum.voters=1@127.0.0.1:9093" in static
    assert "controller.listener.names=CONTROLLER" in static
    dynamic = settings_of(Registry(image(), 1, [VOTER]), IDENTITY, KAFKA, "/data")
    assert "controller.quorum.bootstrap.servers=10.0.0.1:19093" in dynamic
    assert "listeners=PLAINTEXT://127.0.0.1:9092,INTERN://10.0.0.1:19093" in dynamic
    assert "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,INTERN:PLAINTEXT" in dynamic
    internal = image(topic("__consumer_offsets", OTHER_ID), partition(OTHER_ID, 0, 1, DIRECTORY))
    assert "offsets.topic.num.partitions=1" in settings_of(Registry(internal), IDENTITY, KAFKA, "/data")
    (command,) = settings_of(Registry(internal), IDENTITY, OURS, "/my data")
    assert command == (
        "txnkafka serve --data '/my data' --listen 127.0.0.1:9092 --config offsets.topic.num.partitions=1"
    )

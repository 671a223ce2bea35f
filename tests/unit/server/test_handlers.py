"""Topics and their logs: each API in each of its versions on a broker in memory, through bytes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.broker.node import NOW, batch_of
from tests.unit.server.wire_node import WireNode, node, topic_id, transactional, versions
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.server.handlers import SERVED
from txnkafka.wire.messages import (
    APIS,
    create_topics,
    delete_records,
    delete_topics,
    describe_configs,
    list_offsets,
    metadata,
)
from txnkafka.wire.messages import offset_for_leader_epoch as leader_epoch
from txnkafka.wire.schema import ZERO_UUID

# ApiVersions


@versions("ApiVersions")
def test_api_versions(version: int) -> None:
    software = {"client_software_name": "test", "client_software_version": "1.0"} if version >= 3 else {}
    of = node()
    answer = of.ask("ApiVersions", version, **software)
    ranges = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert ranges == {key: APIS[key].announced for key in SERVED}
    assert (ranges[0], ranges[22]) == ((0, 13), (0, 5))
    finalized = {each.name: each.max_version_level for each in answer.finalized_features}
    supported = {each.name: (each.min_version, each.max_version) for each in answer.supported_features}
    assert finalized.get("transaction.version") == (2 if version >= 3 else None)
    assert supported.get("metadata.version") == ((7, 33) if version >= 3 else None)
    assert supported.get("transaction.version") == ((0, 2) if version >= 4 else None)
    assert (answer.finalized_features_epoch > 0) == (version >= 3)
    not_served = {"share.version", "streams.version"}
    assert not not_served & (finalized.keys() | supported.keys())
    assert of.broker.image.features.keys() >= not_served  # for an Apache Kafka that opens the directory


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "error"),
    [
        (None, -1, ErrorCode.NONE),
        ("own", 1, ErrorCode.NONE),
        ("own", 2, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("another", 1, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("own", -1, ErrorCode.INVALID_REQUEST),
        (None, 1, ErrorCode.INVALID_REQUEST),
    ],
)
def test_api_versions_of_a_client_that_means_a_node(
    cluster_id: str | None, node_id: int, error: ErrorCode
) -> None:
    """KIP-1242: an address may belong to another broker by now."""
    of = node()
    named = of.broker.cluster_id if cluster_id == "own" else cluster_id
    software = {"client_software_name": "test", "client_software_version": "1.0"}
    answer = of.ask("ApiVersions", 5, **software, cluster_id=named, node_id=node_id)
    assert answer.error_code == error
    assert bool(answer.api_keys) == (error == ErrorCode.NONE)


def test_api_versions_of_an_illegal_client() -> None:
    software = {"client_software_name": "-", "client_software_version": "1"}
    answer = node().ask("ApiVersions", 3, **software)
    assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, ())


# Metadata


@versions("Metadata")
def test_metadata(version: int) -> None:
    of = node(2)
    wanted = tuple(metadata.MetadataRequestTopic(name=name) for name in ("t", "a b"))
    answer = of.ask("Metadata", version, topics=wanted)
    (broker,) = answer.brokers
    assert (broker.node_id, broker.host, broker.port) == (of.broker.node_id, "localhost", 9092)
    found, illegal = answer.topics
    assert [(each.partition_index, each.leader_id) for each in found.partitions] == [(0, 1), (1, 1)]
    assert found.topic_id == (topic_id(of) if version >= 10 else ZERO_UUID)
    assert illegal.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert answer.cluster_id == (of.broker.cluster_id if version >= 2 else None)


@versions("Metadata")
def test_metadata_of_all_topics(version: int) -> None:
    answer = node().ask("Metadata", version, topics=None if version else ())
    assert [topic.name for topic in answer.topics] == ["t"]
    if version:
        assert node().ask("Metadata", version, topics=()).topics == ()


@versions("Metadata")
def test_metadata_creates_topics(version: int) -> None:
    of = node(num_partitions=3)
    wanted = (metadata.MetadataRequestTopic(name="new"),)
    if version >= 4:
        (refused,) = of.ask("Metadata", version, topics=wanted, allow_auto_topic_creation=False).topics
        assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (created,) = of.ask("Metadata", version, topics=wanted).topics
    assert (created.error_code, len(created.partitions)) == (ErrorCode.NONE, 3)


def test_metadata_creates_nothing_where_the_broker_must_not() -> None:
    wanted = (metadata.MetadataRequestTopic(name="new"),)
    (refused,) = node(auto_create_topics_enable=False).ask("Metadata", 12, topics=wanted).topics
    assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [10, 11, 12, 13])
def test_metadata_by_id(version: int) -> None:
    of = node()
    ids = (topic_id(of), "0" * 21 + "A")
    wanted = tuple(
        metadata.MetadataRequestTopic(topic_id=each, name=None if version >= 12 else "t") for each in ids
    )
    fields = {"topics": wanted, "include_topic_authorized_operations": True}
    topics = of.ask("Metadata", version, **fields).topics
    errors = [topic.error_code for topic in topics]
    if version < 12:
        assert errors == [ErrorCode.INVALID_REQUEST] * 2
    else:
        assert errors == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID]
        assert [topic.name for topic in topics] == ["t", None]
        # whose topic that is is not known, and so neither is who may do what with it
        assert [topic.topic_authorized_operations for topic in topics] == [3576, -(1 << 31)]


# Offsets


@versions("ListOffsets")
def test_list_offsets(version: int) -> None:
    of = node()
    of.append(batch_of(b"a", b"b"))

    def offset(timestamp: int, index: int = 0) -> tuple[int, int]:
        partition = list_offsets.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        topics = (list_offsets.ListOffsetsTopic(name="t", partitions=(partition,)),)
        answer = of.ask("ListOffsets", version, replica_id=-1, topics=topics)
        ((found,),) = (topic.partitions for topic in answer.topics)
        return found.error_code, found.offset

    unknown = ErrorCode.UNSUPPORTED_VERSION, -1
    assert offset(-1) == (ErrorCode.NONE, 2)
    assert offset(-2) == (ErrorCode.NONE, 0)
    assert offset(NOW) == (ErrorCode.NONE, 0)
    assert offset(NOW + 1) == (ErrorCode.NONE, -1)
    assert offset(-3) == ((ErrorCode.NONE, 0) if version >= 7 else unknown)
    assert offset(-4) == ((ErrorCode.NONE, 0) if version >= 8 else unknown)
    assert offset(-5) == ((ErrorCode.NONE, -1) if version >= 9 else unknown)
    assert offset(-6) == ((ErrorCode.NONE, -1) if version >= 11 else unknown)
    assert offset(-1, 5) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


@pytest.mark.parametrize(("version", "level", "expected"), [(1, 0, 1), (2, 0, 1), (2, 1, 0), (11, 1, 0)])
def test_the_latest_offset_depends_on_the_isolation_level(version: int, level: int, expected: int) -> None:
    of, client = transactional()
    client.send(b"open")
    partition = list_offsets.ListOffsetsPartition(timestamp=-1)
    topics = (list_offsets.ListOffsetsTopic(name="t", partitions=(partition,)),)
    answer = of.ask("ListOffsets", version, isolation_level=level, topics=topics)
    assert answer.topics[0].partitions[0].offset == expected


@versions("OffsetForLeaderEpoch")
def test_offset_for_leader_epoch(version: int) -> None:
    of = node()
    of.append(batch_of(b"a"))
    partitions = tuple(
        leader_epoch.OffsetForLeaderPartition(partition=number, current_leader_epoch=current)
        for number, current in ((0, -1), (0, 9), (5, -1))
    )
    topics = (leader_epoch.OffsetForLeaderTopic(topic="t", partitions=partitions),)
    (answer,) = of.ask("OffsetForLeaderEpoch", version, topics=topics).topics
    assert [(each.error_code, each.leader_epoch, each.end_offset) for each in answer.partitions] == [
        (ErrorCode.NONE, 0, 1),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1),
    ]


@versions("Metadata")
def test_the_leader_epoch_of_the_last_start(version: int) -> None:
    of = node()
    of.restart()
    of.restart()
    wanted = (metadata.MetadataRequestTopic(name="t"),)
    ((partition,),) = (topic.partitions for topic in of.ask("Metadata", version, topics=wanted).topics)
    assert partition.leader_epoch == (2 if version >= 7 else -1)


@versions("OffsetForLeaderEpoch")
def test_where_the_leader_epoch_of_an_earlier_start_ends(version: int) -> None:
    of = node()
    of.append(batch_of(b"a"))
    of.restart()
    of.append(batch_of(b"b"))
    asked = [(0, -1), (0, 1), (0, 0), (1, 1)]
    partitions = tuple(
        leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
        for epoch, current in asked
    )
    topics = (leader_epoch.OffsetForLeaderTopic(topic="t", partitions=partitions),)
    (answer,) = of.ask("OffsetForLeaderEpoch", version, topics=topics).topics
    assert [(each.error_code, each.leader_epoch, each.end_offset) for each in answer.partitions] == [
        (ErrorCode.NONE, 0, 1),
        (ErrorCode.NONE, 0, 1),
        (ErrorCode.FENCED_LEADER_EPOCH, -1, -1),
        (ErrorCode.NONE, 1, 2),
    ]


# Topics


@versions("CreateTopics")
def test_create_topics(version: int) -> None:
    of = node()
    configs = (create_topics.CreatableTopicConfig(name="retention.ms", value="5000"),)
    topics = tuple(
        create_topics.CreatableTopic(name=name, num_partitions=2, replication_factor=1, configs=configs)
        for name in ("u", "t", "twice", "twice", "__cluster_metadata")
    )
    answer = of.ask("CreateTopics", version, topics=topics)
    assert {topic.name: topic.error_code for topic in answer.topics} == {
        "u": ErrorCode.NONE,
        "t": ErrorCode.TOPIC_ALREADY_EXISTS,
        "twice": ErrorCode.INVALID_REQUEST,
        "__cluster_metadata": ErrorCode.INVALID_REQUEST,
    }
    created = answer.topics[0]
    assert created.num_partitions == (2 if version >= 5 else -1)
    assert (created.topic_id != ZERO_UUID) == (version >= 7)
    found = {each.name: (each.value, each.config_source) for each in created.configs}
    assert found.get("retention.ms") == (("5000", 1) if version >= 5 else None)
    assert found.get("cleanup.policy") == (("delete", 5) if version >= 5 else None)
    assert len(of.broker.image.topics["u"].partitions) == 2


def test_create_topics_only_to_validate() -> None:
    of = node()
    topics = (create_topics.CreatableTopic(name="u", num_partitions=1, replication_factor=3),)
    (answer,) = of.ask("CreateTopics", 7, topics=topics, validate_only=True).topics
    assert answer.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    topics = (create_topics.CreatableTopic(name="u", num_partitions=-1, replication_factor=-1),)
    (answer,) = of.ask("CreateTopics", 7, topics=topics, validate_only=True).topics
    assert (answer.error_code, "u" in of.broker.image.topics) == (ErrorCode.NONE, False)


@versions("DeleteTopics")
def test_delete_topics(version: int) -> None:
    of = node()
    if version >= 6:
        states = (
            delete_topics.DeleteTopicState(topic_id=topic_id(of)),
            delete_topics.DeleteTopicState(name="u"),
            delete_topics.DeleteTopicState(topic_id="0" * 21 + "A"),
            delete_topics.DeleteTopicState(name="v", topic_id=topic_id(of)),
            delete_topics.DeleteTopicState(),
        )
        answer = of.ask("DeleteTopics", version, topics=states)
    else:
        answer = of.ask("DeleteTopics", version, topic_names=("t", "u", "w", "w"))
    errors = [ErrorCode(each.error_code).name for each in answer.responses]
    by_id = ["NONE", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "INVALID_REQUEST", "INVALID_REQUEST"]
    by_name = ["NONE", "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_REQUEST"]
    assert sorted(errors) == sorted(by_id if version >= 6 else by_name)
    assert list(of.broker.image.topics) == []


def test_a_topic_given_by_name_and_by_id_is_not_deleted() -> None:
    of = node()
    states = (
        delete_topics.DeleteTopicState(name="t"),
        delete_topics.DeleteTopicState(topic_id=topic_id(of)),
    )
    (answer,) = of.ask("DeleteTopics", 6, topics=states).responses
    assert (answer.error_code, answer.name, answer.topic_id) == (
        ErrorCode.INVALID_REQUEST, "t", topic_id(of)
    )  # fmt: skip
    assert "t" in of.broker.image.topics


@versions("DeleteTopics")
def test_delete_topics_where_that_is_disabled(version: int) -> None:
    of = node(delete_topic_enable=False)
    states = (delete_topics.DeleteTopicState(name="t"),)
    wanted: dict[str, Any] = {"topics": states} if version >= 6 else {"topic_names": ("t",)}
    (answer,) = of.ask("DeleteTopics", version, **wanted).responses
    new, old = ErrorCode.TOPIC_DELETION_DISABLED, ErrorCode.INVALID_REQUEST
    assert answer.error_code == (new if version >= 3 else old)


@versions("DescribeConfigs")
def test_describe_configs(version: int) -> None:
    of = WireNode(num_partitions=3, topic_defaults={"segment.bytes": "1000000"})
    of.create("t", 1, cleanup_policy="compact")
    wanted = ((2, "t"), (4, "1"), (4, ""), (2, "u"), (4, "9"), (8, "1"), (8, "9"))
    resources = tuple(
        describe_configs.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=None
        )
        for kind, name in wanted
    )
    answer = of.ask("DescribeConfigs", version, resources=resources, include_synonyms=True)
    assert [ErrorCode(each.error_code).name for each in answer.results] == [
        "NONE", "NONE", "NONE", "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_REQUEST", "NONE",
        "INVALID_REQUEST",
    ]  # fmt: skip
    topic, broker = ({each.name: each for each in result.configs} for result in answer.results[:2])
    assert [(each.name, each.value, each.source) for each in topic["cleanup.policy"].synonyms] == [
        ("cleanup.policy", "compact", 1),
        ("log.cleanup.policy", "delete", 5),
    ]
    assert (topic["segment.bytes"].value, topic["segment.bytes"].config_source) == ("1000000", 4)
    assert (broker["num.partitions"].value, broker["num.partitions"].config_source) == ("3", 4)
    assert broker["num.partitions"].read_only
    assert topic["retention.ms"].config_type == (5 if version >= 3 else 0)


def test_describe_some_configs() -> None:
    resource = describe_configs.DescribeConfigsResource(
        resource_type=2, resource_name="t", configuration_keys=("retention.ms", "no.such")
    )
    (answer,) = node().ask("DescribeConfigs", 4, resources=(resource,)).results
    ((name, value),) = ((each.name, each.value) for each in answer.configs)
    assert (name, value) == ("retention.ms", "604800000")


@versions("DeleteRecords")
def test_delete_records(version: int) -> None:
    of = node()
    of.append(batch_of(b"a", b"b", b"c"))

    def deleted(name: str, number: int, offset: int) -> tuple[int, int]:
        wanted = delete_records.DeleteRecordsPartition(partition_index=number, offset=offset)
        topics = (delete_records.DeleteRecordsTopic(name=name, partitions=(wanted,)),)
        (topic,) = of.ask("DeleteRecords", version, topics=topics, timeout_ms=1000).topics
        ((low_watermark, error),) = ((each.low_watermark, each.error_code) for each in topic.partitions)
        return low_watermark, error

    assert deleted("t", 0, 2) == (2, ErrorCode.NONE)
    of.restart()
    assert of.broker.logs[TopicPartition("t", 0)].log_start_offset == 2
    assert deleted("t", 7, 2) == (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert deleted("t", 0, 9) == (-1, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert deleted("__transaction_state", 0, 0) == (-1, ErrorCode.INVALID_TOPIC_EXCEPTION)
    assert deleted("t", 0, -1) == (3, ErrorCode.NONE)
    assert of.ask("DeleteRecords", version).topics == ()


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        ("", ErrorCode.NONE), ("delete", ErrorCode.NONE), ("compact,delete", ErrorCode.NONE),
        ("compact", ErrorCode.POLICY_VIOLATION),
    ],
)  # fmt: skip
def test_records_of_compacted_topics_are_not_deleted(policy: str, error: ErrorCode) -> None:
    of = node()
    of.create("u", cleanup_policy=policy)
    wanted = delete_records.DeleteRecordsPartition(partition_index=0, offset=-1)
    topic = delete_records.DeleteRecordsTopic(name="u", partitions=(wanted,))
    (answer,) = of.ask("DeleteRecords", 2, topics=(topic,)).topics
    assert [each.error_code for each in answer.partitions] == [error]


def test_records_of_a_topic_that_is_deleted_meanwhile() -> None:
    of = node()
    of.append(batch_of(b"a"))
    wanted = delete_records.DeleteRecordsPartition(partition_index=0, offset=1)
    topic = delete_records.DeleteRecordsTopic(name="t", partitions=(wanted,))
    topics, answer = of.ask_all(
        ("DeleteTopics", 5, {"topic_names": ("t",)}), ("DeleteRecords", 2, {"topics": (topic,)})
    )
    assert topics.responses[0].error_code == ErrorCode.NONE
    (result,) = answer.topics[0].partitions
    assert result.error_code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_every_api_that_is_served_is_tested_in_all_versions() -> None:
    texts = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*handlers.py")]
    tested = {name for text in texts for name in re.findall(r'^@versions\("(\w+)"\)$', text, re.MULTILINE)}
    assert tested == {APIS[key].name for key in SERVED}

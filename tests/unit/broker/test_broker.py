"""A broker without sockets: topics, produce, restarts."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.broker.node import NOW, UNCOMMITTED, Node, Producer, batch_of
from txnkafka import LogDir
from txnkafka.broker.requests import NewTopic, ProduceRequest
from txnkafka.config import LogConfig
from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC
from txnkafka.coordinator.registry import metadata_records
from txnkafka.env import LocalDataFiles, remove_tree
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import FlushUnderWayError, KafkaError
from txnkafka.logdir.verify.report import verify
from txnkafka.model import TopicPartition
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.formats.checkpoint import format_partition_metadata
from txnkafka.storage.identity import random_uuid
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NONE = ErrorCode.NONE


# Topics


def test_a_topic_is_there_until_it_is_deleted() -> None:
    node = Node()
    assert node.create("t", 2, retention_ms="1000") == NONE
    assert set(node.broker.logs) == {T0, T1}
    assert node.broker.logs[T0].config.retention_ms == 1000
    topic_id = node.broker.image.topics["t"].topic_id
    node.restart()
    assert node.broker.image.topics["t"].topic_id == topic_id
    assert node.broker.logs[T1].config.retention_ms == 1000
    (deleted,) = node.call(node.broker.topics.delete, [], [topic_id])
    assert (deleted.name, deleted.error) == ("t", NONE)
    assert not node.broker.logs
    assert not [entry for entry in node.files.list("/data") if entry.name.startswith("t-")]
    assert node.append(batch_of(b"a")).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node.restart()
    assert not node.broker.image.topics


def test_the_node_may_have_the_id_0() -> None:
    files = MemoryFiles()
    DataDirectory(files, "/data", lambda topic: LogConfig(), now_ms=NOW, node_id=0).close()
    node = Node(files)
    node.create("t")
    assert node.broker.node_id == 0
    assert node.broker.image.topics["t"].partitions[0].replicas == [0]
    assert json.loads(files.read("/data/__cluster_metadata-0/quorum-state", 1000))["leaderId"] == 0


def test_what_a_broker_leaves_is_sound(tmp_path: Path) -> None:
    """After a clean stop, by every check of ``verify``."""
    node = Node(LocalDataFiles(), str(tmp_path))
    node.create("t")
    producer = Producer(node)
    producer.send(b"a")
    producer.end()
    producer.send(b"b")
    producer.end(commit=False)
    node.close()
    assert [finding.code for finding in verify(LogDir(tmp_path)).findings] == []


@pytest.mark.parametrize("is_created_again", [False, True])
def test_a_deletion_that_a_crash_interrupted_is_finished(is_created_again: bool) -> None:
    """The registry has forgotten the topic, its directory is still there."""
    node = Node()
    node.create("t")
    node.append(batch_of(b"a"))
    image = node.broker.image
    records = [metadata_records.remove_topic(image.topics["t"].topic_id)]
    if is_created_again:
        new_id = random_uuid()
        records += [metadata_records.topic("t", new_id), metadata_records.partition(new_id, 0, 1, new_id)]
    node.broker.metadata.append(records, NOW)
    node.restart()
    there = [entry.name for entry in node.files.list("/data") if entry.name.startswith("t-")]
    assert there == (["t-0"] if is_created_again else [])
    assert node.create("t") == (ErrorCode.TOPIC_ALREADY_EXISTS if is_created_again else NONE)
    assert node.values() == []
    assert node.append(batch_of(b"b")).base_offset == 0


def test_nothing_is_kept_of_topics_that_were_deleted() -> None:
    """Neither while the broker runs nor after the next start, which looks for what was left of them."""
    node = Node()
    for _ in range(20):
        assert node.create() == NONE
        (deleted,) = node.call(node.broker.topics.delete, ["t"], [])
        assert deleted.error == NONE
    assert node.broker.image.removed_topic_ids == {}
    node.restart()
    assert node.broker.image.removed_topic_ids == {}


def test_a_partition_of_another_topic_is_not_served_as_this_one() -> None:
    node = Node()
    node.create("t")
    path = "/data/t-0/partition.metadata"
    node.close()
    node.files.remove(path)
    file = node.files.create(path)
    file.write(0, [format_partition_metadata(random_uuid())])
    file.close()
    with pytest.raises(KafkaError, match=r"t-0 has the topic id .*, but the metadata log has"):
        Node(node.files)


def test_a_partition_without_a_topic_id_gets_that_of_the_registry() -> None:
    """As after a crash while it was created; Apache Kafka would begin with an empty partition."""
    node = Node()
    node.create("t")
    node.append(batch_of(b"a"))
    node.close()
    content = node.files.read("/data/t-0/partition.metadata", 100)
    node.files.remove("/data/t-0/partition.metadata")
    node = Node(node.files)
    assert node.files.read("/data/t-0/partition.metadata", 100) == content
    assert node.values() == [b"a"]


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NewTopic("t"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic("__cluster_metadata"), ErrorCode.INVALID_REQUEST),
        (NewTopic("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("with_dash"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("u", 0), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("u", 10_001), ErrorCode.POLICY_VIOLATION),
        (NewTopic("u", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("u", 1, 1, {"retention.ms": "x"}), ErrorCode.INVALID_CONFIG),
        (NewTopic("u", 1, 1, {"no.such": "1"}), ErrorCode.INVALID_CONFIG),
        (NewTopic("u", 1, 1, {"internal.retention.ms": "1"}), ErrorCode.INVALID_CONFIG),
        (NewTopic("u", 1, 1, {"retention.ms": "1_000"}), ErrorCode.INVALID_CONFIG),
        (NewTopic("u", 1, 1, {"retention.ms": None}), ErrorCode.INVALID_CONFIG),
        (NewTopic("u", assignments={0: [2]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("u", 1, assignments={0: [1]}), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_topic_that_cannot_be_created(topic: NewTopic, error: ErrorCode) -> None:
    node = Node()
    node.create("t")
    node.create("with.dash")
    end = node.broker.metadata.log.log_end_offset
    (result,) = node.call(node.broker.topics.create, [topic])
    assert (result.error, node.broker.metadata.log.log_end_offset) == (error, end)
    assert len(node.broker.image.topics) == 2


@pytest.mark.parametrize("name", ["__transaction_state", "__consumer_offsets"])
def test_topics_of_the_coordinators_cannot_be_deleted(name: str) -> None:
    node = Node()
    assert node.call(node.broker.topics.auto_create, [name]) == {name: NONE}
    topic_id = node.broker.image.topics[name].topic_id
    for asked in ([name], []), ([], [topic_id]):
        (deleted,) = node.call(node.broker.topics.delete, *asked)
        assert deleted.error == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert "cannot be deleted" in deleted.message
    assert name in node.broker.image.topics


def test_a_topic_that_is_asked_for_twice_is_created_once() -> None:
    node = Node()
    answers: list[Any] = []
    for _ in range(2):
        node.broker.call(node.broker.topics.create, [NewTopic("t")], answers.append, now_ms=NOW)
    node.settle()
    assert [result.error for (result,) in answers] == [NONE, ErrorCode.TOPIC_ALREADY_EXISTS]
    assert node.call(node.broker.topics.auto_create, ["t", "u", "bad/name"]) == {
        "t": NONE, "u": NONE, "bad/name": ErrorCode.INVALID_TOPIC_EXCEPTION
    }  # fmt: skip
    (result,) = node.call(node.broker.topics.create, [NewTopic("v", 3)], validate_only=True)
    assert (result.error, result.partition_count) == (NONE, 3)
    assert sorted(node.broker.image.topics) == ["t", "u"]


def test_partitions_that_were_written_without_a_broker_become_topics() -> None:
    from tests.unit.storage.test_directory import FIRST, created, opened

    node = Node()
    node.close()
    files = node.files
    for name in ("__cluster_metadata-0",):
        for entry in files.list(f"/data/{name}"):
            files.remove(f"/data/{name}/{entry.name}")
        files.remove(f"/data/{name}")
    directory = opened(files)
    created(directory, FIRST).plain()
    directory.close()
    node = Node(files)
    assert list(node.broker.image.topics) == ["t"]
    assert len(node.values(isolation_level=UNCOMMITTED)) == 2


def test_the_coordinators_topics_of_a_directory_without_a_metadata_log_are_compacted() -> None:
    """With the policy of other topics, retention would delete offsets and transactional ids."""
    node = Node()
    node.request(node.broker.groups.find, "g")
    node.settle()
    node.close()
    remove_tree(node.files, "/data/__cluster_metadata-0")
    again = Node(node.files)
    assert again.broker.image.topic_configs(CONSUMER_OFFSETS_TOPIC)["cleanup.policy"] == "compact"
    assert again.broker.logs[TopicPartition(CONSUMER_OFFSETS_TOPIC, 0)].config.compact


# Produce


def test_an_append_is_acknowledged_when_it_is_durable() -> None:
    node = Node()
    node.create()
    answers: list[Any] = []
    node.broker.call(
        node.broker.produce, ProduceRequest({T0: batch_of(b"a", b"b")}), answers.append, now_ms=NOW
    )
    assert not answers
    assert node.fetch().high_watermark == 0
    node.settle()
    assert answers[0][T0][:4] == (NONE, 0, -1, 0)
    assert node.values() == [b"a", b"b"]


def test_the_page_cache_acknowledges_at_once_but_not_what_a_dead_process_would_lose() -> None:
    node = Node(durability="page_cache")
    node.create(segment_bytes="200")
    answers: list[Any] = []
    for value in (b"a" * 100, b"b" * 100):
        node.broker.call(
            node.broker.produce, ProduceRequest({T0: batch_of(value)}), answers.append, now_ms=NOW
        )
    assert len(answers) == 1  # the second one is in a segment that has no name yet
    node.settle()
    assert [answer[T0].base_offset for answer in answers] == [0, 1]


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (ProduceRequest({T0: batch_of(b"a")}, acks=2), ErrorCode.INVALID_REQUIRED_ACKS),
        (ProduceRequest({TopicPartition("t", 9): batch_of(b"a")}), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ProduceRequest({T0: None}), ErrorCode.INVALID_RECORD),
        (ProduceRequest({T0: memoryview(b"")}), ErrorCode.INVALID_RECORD),
        (ProduceRequest({T0: memoryview(bytes(61))}), ErrorCode.CORRUPT_MESSAGE),
        (
            ProduceRequest({TopicPartition("__transaction_state", 0): batch_of(b"a")}),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
        ),
        (
            ProduceRequest(
                {T0: batch_of(b"a", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)}
            ),
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
    ],
)  # fmt: skip
def test_a_batch_that_is_refused(request_: ProduceRequest, error: ErrorCode) -> None:
    node = Node()
    node.create()
    node.request(node.broker.transactions.find, "x")
    node.settle()
    results = node.call(node.broker.produce, request_)
    assert [result.error for result in results.values()] == [error]
    assert node.broker.logs[T0].log_end_offset == 0


def test_producers_of_two_identities_in_one_request() -> None:
    node = Node()
    node.create("t", 2)
    first, second = Producer(node, "x"), Producer(node, "y")
    batches = {T0: first.batch(0, b"a"), T1: second.batch(1, b"b")}
    results = node.produce(batches, transactional_id="x")
    assert {result.error for result in results.values()} == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_producers_of_two_epochs_in_one_request() -> None:
    node = Node()
    node.create("t", 2)
    producer = Producer(node, "x")
    first = producer.batch(0, b"a")
    producer.identity = producer.identity._replace(producer_epoch=producer.identity.producer_epoch + 1)
    results = node.produce({T0: first, T1: producer.batch(1, b"b")}, transactional_id="x")
    assert {result.error for result in results.values()} == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_an_answer_after_a_storage_error_has_no_log_start_offset() -> None:
    node = Node()
    node.create()
    node.broker.logs[T0].fence(OSError(5, "planned"))
    result = node.append(batch_of(b"a"))
    assert (result.error, result.log_start_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)


def test_a_retry_gets_the_offset_that_the_batch_has() -> None:
    node = Node()
    node.create()
    producer = node.call(lambda reply: node.broker.transactions.init_producer_id(None, 0, -1, -1, reply))
    records = batch_of(b"a", producer_id=producer.producer_id, producer_epoch=0, base_sequence=0)
    answers: list[Any] = []
    for _ in range(2):
        node.broker.call(node.broker.produce, ProduceRequest({T0: records}), answers.append, now_ms=NOW)
    assert not answers  # the first one is not durable, so the second one cannot be acknowledged either
    node.settle()
    assert [answer[T0].base_offset for answer in answers] == [0, 0]
    assert node.append(records).base_offset == 0
    assert node.values() == [b"a"]


def test_a_broker_with_work_under_way_does_not_close() -> None:
    node = Node()
    node.create()
    node.broker.call(node.broker.produce, ProduceRequest({T0: batch_of(b"a")}), lambda _: None, now_ms=NOW)
    flush = node.broker.begin_flush()
    assert flush is not None
    with pytest.raises(FlushUnderWayError):
        node.broker.close()
    node.broker.finish_flush(flush, flush.run(), now_ms=NOW)
    node.close()


def test_upkeep_goes_on_when_the_clock_is_put_back() -> None:
    node = Node(log_retention_check_interval_ms=1000)
    node.create("t", segment_bytes="100", retention_bytes="0", file_delete_delay_ms="0")
    for value in (b"a", b"b", b"c"):
        assert node.append(batch_of(value)).error == NONE
    node.set_clock(-24 * 3600 * 1000)
    node.wait(2_000)
    assert node.broker.logs[T0].log_start_offset > 0
    assert node.broker.advance(node.now_ms) <= node.broker.ticks.now + 1000


def test_retention_makes_room_on_a_full_disk() -> None:
    """All segments are due, and no file can be created, so that the active one stays."""
    plan = FaultPlan(error=errno.ENOSPC, call="create", for_ever=True)
    node = Node(FaultyFiles(MemoryFiles(), plan), log_retention_check_interval_ms=1000)
    node.create("t", segment_bytes="100", retention_ms="1000", file_delete_delay_ms="5000")
    for value in (b"a", b"b", b"c"):
        assert node.append(batch_of(value)).error == NONE
    plan.fails = plan.counted + 1
    node.wait(2_000)
    assert [segment.base_offset for segment in node.broker.logs[T0].segments] == [2]
    node.wait(6_000)
    logs = [entry.name for entry in node.files.list("/data/t-0") if ".log" in entry.name]
    assert logs == ["00000000000000000002.log"], "also while the roll goes on failing"
    plan.fails = 0
    for _ in range(2):
        node.wait(2_000)
    assert node.broker.logs[T0].log_start_offset == 3
    assert node.append(batch_of(b"d")).base_offset == 3

"""Topics, their partitions and records."""

from __future__ import annotations

import pytest

from tests.unit.client.admin.conftest import Cluster
from txnkafka.client.admin import Admin, ListedOffset, NewTopic, OffsetSpec, PartitionDescription
from txnkafka.errors import (
    InvalidTopicError,
    KafkaError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from txnkafka.model import TopicPartition
from txnkafka.record.builder import build_batch
from txnkafka.wire.messages.produce import PartitionProduceData, TopicProduceData

ORDERS = TopicPartition("orders", 0)


def write(cluster: Cluster, *timestamps: int) -> None:
    """Append a record to orders-0 for each timestamp."""
    (topic,) = cluster.send("Metadata", topics=None).topics
    batch = build_batch([(b"key", b"value", timestamp) for timestamp in timestamps])
    rows = (PartitionProduceData(index=0, records=batch),)
    data = TopicProduceData(topic_id=topic.topic_id, partition_data=rows)
    response = cluster.send("Produce", acks=-1, timeout_ms=1000, topic_data=(data,))
    assert response.responses[0].partition_responses[0].error_code == 0


def test_a_topic_is_created_listed_described_and_deleted(admin: Admin) -> None:
    created = admin.create_topic("orders", partitions=2, config={"retention.ms": 1000, "preallocate": True})
    assert (created.name, created.partitions, created.replication_factor) == ("orders", 2, 1)
    assert (created.config["retention.ms"], created.config["preallocate"]) == ("1000", "true")
    (listed,) = admin.list_topics()
    assert (listed.name, listed.topic_id, listed.is_internal) == ("orders", created.topic_id, False)
    described = admin.describe_topics()["orders"]
    assert described == admin.describe_topics("orders")["orders"]
    assert described.topic_id == created.topic_id
    assert described.partitions == tuple(
        PartitionDescription(number, 1, 0, (1,), (1,), ()) for number in range(2)
    )
    admin.delete_topics("orders")
    assert admin.list_topics() == []


def test_defaults_are_those_of_the_broker(admin: Admin) -> None:
    assert admin.create_topic("orders").partitions == 1
    assert admin.create_topic("bills", 3, 1).partitions == 3


def test_partitions_by_assignment(admin: Admin) -> None:
    created = admin.create_topics([NewTopic("orders", assignments={0: [1], 1: [1]})])
    assert created["orders"].partitions == 2


def test_a_topic_is_only_validated(admin: Admin) -> None:
    admin.create_topics([NewTopic("orders")], validate_only=True)
    with pytest.raises(KafkaError, match=r"topic bills: .*config\.name.*\(INVALID_CONFIG\)"):
        admin.create_topics([NewTopic("bills", config={"config.name": 1})], validate_only=True)
    assert admin.list_topics() == []


def test_internal_topics_are_listed_on_request(admin: Admin) -> None:
    admin.fence_producers("shop")
    assert admin.list_topics() == []
    (listed,) = admin.list_topics(include_internal=True)
    assert (listed.name, listed.is_internal) == ("__transaction_state", True)


def test_the_first_error_is_raised_with_the_others_as_notes(admin: Admin) -> None:
    admin.create_topic("orders")
    wanted = [NewTopic("bills"), NewTopic("orders"), NewTopic("not a name")]
    message = r"^topic orders: .*\(TOPIC_ALREADY_EXISTS\); describe_topics shows it"
    with pytest.raises(TopicAlreadyExistsError, match=message) as caught:
        admin.create_topics(wanted)
    (note,) = caught.value.__notes__
    assert note.startswith("another part of the call failed: topic not a name: ")
    assert [each.name for each in admin.list_topics()] == ["bills", "orders"]


def test_names_that_are_not_allowed_and_not_there(admin: Admin) -> None:
    with pytest.raises(InvalidTopicError, match="topic a b: "):
        admin.create_topic("a b")
    missing = r"topic gone: UNKNOWN_TOPIC_OR_PARTITION; list_topics has the existing topics"
    with pytest.raises(UnknownTopicOrPartitionError, match=missing):
        admin.describe_topics(["gone"])
    with pytest.raises(UnknownTopicOrPartitionError, match="topic gone: "):
        admin.delete_topics(["gone"])


def test_describing_a_topic_does_not_create_it(admin: Admin) -> None:
    for call in (
        lambda: admin.describe_topics("gone"),
        lambda: admin.describe_producers([("gone", 0)]),
        lambda: admin.list_offsets({("gone", 0): OffsetSpec.LATEST}),
    ):
        with pytest.raises(UnknownTopicOrPartitionError):
            call()
    assert admin.list_topics() == []


def test_partitions_are_added(admin: Admin) -> None:
    admin.create_topic("orders", partitions=1)
    admin.create_partitions({"orders": 2}, validate_only=True)
    assert len(admin.describe_topics("orders")["orders"].partitions) == 1
    admin.create_partitions({"orders": 2})
    assert len(admin.describe_topics("orders")["orders"].partitions) == 2
    assert admin.list_offsets({("orders", 1): OffsetSpec.LATEST}) == {("orders", 1): (0, -1, 0)}
    with pytest.raises(KafkaError, match=r"topic orders: .*\(INVALID_PARTITIONS\)"):
        admin.create_partitions({"orders": 1})


def test_offsets_by_place_and_by_time(admin: Admin, cluster: Cluster) -> None:
    admin.create_topic("orders")
    write(cluster, 1_000, 3_000, 2_000)
    found = {
        spec: admin.list_offsets({ORDERS: spec})[ORDERS]
        for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST, OffsetSpec.MAX_TIMESTAMP, 1_500, 3_001)
    }
    assert found == {
        OffsetSpec.EARLIEST: ListedOffset(0, -1, 0),
        OffsetSpec.LATEST: ListedOffset(3, -1, 0),
        OffsetSpec.MAX_TIMESTAMP: ListedOffset(1, 3_000, 0),
        1_500: ListedOffset(1, 3_000, 0),
        3_001: ListedOffset(-1, -1, -1),
    }


def test_the_latest_offset_is_by_default_the_last_stable_one(admin: Admin, cluster: Cluster) -> None:
    admin.create_topic("orders")
    cluster.hang("orders")
    assert admin.list_offsets({ORDERS: OffsetSpec.LATEST})[ORDERS].offset == 0
    unstable = admin.list_offsets({ORDERS: OffsetSpec.LATEST}, isolation_level="read_uncommitted")
    assert unstable[ORDERS].offset == 1
    with pytest.raises(ValueError, match="isolation level must be"):
        admin.list_offsets({ORDERS: OffsetSpec.LATEST}, isolation_level="serializable")


def test_records_are_deleted(admin: Admin, cluster: Cluster) -> None:
    admin.create_topic("orders")
    write(cluster, 1, 2, 3)
    assert admin.delete_records({ORDERS: 2}) == {ORDERS: 2}
    assert admin.list_offsets({ORDERS: OffsetSpec.EARLIEST})[ORDERS].offset == 2
    with pytest.raises(OffsetOutOfRangeError, match="orders-0: OFFSET_OUT_OF_RANGE"):
        admin.delete_records({ORDERS: 4})
    assert admin.delete_records({ORDERS: -1}) == {ORDERS: 3}


def test_a_partition_after_the_last(admin: Admin) -> None:
    admin.create_topic("orders", partitions=2)
    with pytest.raises(UnknownTopicOrPartitionError, match="orders-2: the topic has partitions 0 to 1"):
        admin.describe_producers([TopicPartition("orders", 2)])

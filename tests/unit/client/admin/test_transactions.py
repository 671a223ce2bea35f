"""Transactions: list, describe, find hanging ones, abort, fence."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.admin.conftest import Cluster
from txnkafka import LogDir
from txnkafka.client.admin import AbortTransactionSpec, Admin, OffsetSpec, TransactionListing
from txnkafka.errors import InvalidProducerEpochError, KafkaError
from txnkafka.model import ProducerIdAndEpoch, TopicPartition
from txnkafka.record.builder import build_batch
from txnkafka.wire.messages.add_partitions_to_txn import AddPartitionsToTxnTopic
from txnkafka.wire.messages.produce import PartitionProduceData, TopicProduceData

ORDERS, BILLS = TopicPartition("orders", 0), TopicPartition("bills", 0)
MINUTES = 60_000


def begin(cluster: Cluster, name: str, *partitions: TopicPartition) -> ProducerIdAndEpoch:
    """Begin a transaction with a record in each partition."""
    cluster.send("FindCoordinator", key_type=1, coordinator_keys=(name,))
    identity = cluster.send("InitProducerId", transactional_id=name, transaction_timeout_ms=900_000)
    topics = {each.name: each.topic_id for each in cluster.send("Metadata", topics=None).topics}
    for topic, number in partitions:
        added = cluster.send(
            "AddPartitionsToTxn", 3, v3_and_below_transactional_id=name,
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.producer_epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=topic, partitions=(number,)),),
        )  # fmt: skip
        assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
        batch = build_batch(
            [(None, b"value", cluster.clock.now_ms())], producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch, base_sequence=0, transactional=True,
        )  # fmt: skip
        rows = (PartitionProduceData(index=number, records=batch),)
        data = (TopicProduceData(topic_id=topics[topic], partition_data=rows),)
        produced = cluster.send("Produce", transactional_id=name, acks=-1, timeout_ms=1000, topic_data=data)
        assert produced.responses[0].partition_responses[0].error_code == 0
    return ProducerIdAndEpoch(identity.producer_id, identity.producer_epoch)


def end(cluster: Cluster, name: str, producer: ProducerIdAndEpoch, *, is_committed: bool) -> Any:
    return cluster.send(
        "EndTxn", 4, transactional_id=name, producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch, committed=is_committed,
    )  # fmt: skip


def test_an_open_transaction_is_listed_and_described(admin: Admin, cluster: Cluster) -> None:
    admin.create_topic("orders")
    admin.create_topic("bills")
    producer = begin(cluster, "shop", ORDERS, BILLS)
    began_ms = cluster.clock.now_ms()
    assert admin.list_transactions() == [TransactionListing("shop", producer.producer_id, "Ongoing", 1)]
    found = admin.describe_transactions("shop")["shop"]
    assert found[:6] == ("shop", 1, "Ongoing", *producer, 900_000)
    assert sorted(found.topic_partitions) == [BILLS, ORDERS]
    start_ms = found.transaction_start_time_ms
    assert start_ms is not None
    assert began_ms - MINUTES < start_ms <= began_ms
    (state,) = admin.describe_producers([ORDERS])[ORDERS]
    assert state[:3] == (*producer, 0)
    assert (state.coordinator_epoch, state.current_transaction_start_offset) == (None, 0)


def test_a_completed_transaction(admin: Admin, cluster: Cluster) -> None:
    admin.create_topic("orders")
    end(cluster, "shop", begin(cluster, "shop", ORDERS), is_committed=True)
    while (found := admin.describe_transactions(["shop"])["shop"]).state == "PrepareCommit":
        cluster.advance(1)
    assert (found.state, found.topic_partitions) == ("CompleteCommit", ())
    assert admin.list_offsets({ORDERS: OffsetSpec.LATEST})[ORDERS].offset == 2
    (state,) = admin.describe_producers([ORDERS])[ORDERS]
    assert (state.coordinator_epoch, state.current_transaction_start_offset) == (0, None)


def test_transactions_are_listed_by_all_filters(admin: Admin, cluster: Cluster) -> None:
    admin.create_topic("orders")
    shop = begin(cluster, "shop", ORDERS)
    admin.fence_producers("idle")
    cluster.advance(5 * MINUTES)

    def listed(**filters: Any) -> list[str]:
        return [each.transactional_id for each in admin.list_transactions(**filters)]

    assert listed() == ["idle", "shop"]
    assert listed(states=["Ongoing"]) == ["shop"]
    assert listed(states=["Unheard"]) == []
    assert listed(producer_ids=[shop.producer_id]) == ["shop"]
    assert listed(pattern="i.*") == ["idle"]
    assert listed(states=["Ongoing"], min_duration_ms=4 * MINUTES) == ["shop"]
    assert listed(states=["Ongoing"], min_duration_ms=6 * MINUTES) == []
    with pytest.raises(KafkaError, match=r"^the transactions of broker 1: INVALID_REGULAR_EXPRESSION"):
        listed(pattern="(")


def test_an_unknown_transactional_id(admin: Admin) -> None:
    message = "^transactional id gone: TRANSACTIONAL_ID_NOT_FOUND; list_transactions has the known ids"
    with pytest.raises(KafkaError, match=message):
        admin.describe_transactions("gone")


def test_hanging_transactions_are_found_and_aborted(admin: Admin, cluster: Cluster) -> None:
    admin.create_topic("orders")
    admin.create_topic("bills")
    begin(cluster, "shop", BILLS)
    hanging = cluster.hang("orders")
    assert admin.find_hanging_transactions() == []
    cluster.advance(14 * MINUTES)
    assert admin.find_hanging_transactions() == []
    assert admin.find_hanging_transactions(topics="bills", max_transaction_timeout_ms=0) == []
    (found,) = admin.find_hanging_transactions(max_transaction_timeout_ms=13 * MINUTES)
    assert found[:5] == (ORDERS, hanging, 0, None, 0)
    assert found.transactional_id is None
    assert admin.find_hanging_transactions(topics="bills") == []
    assert admin.list_offsets({ORDERS: OffsetSpec.LATEST})[ORDERS].offset == 0
    admin.abort_transaction(found.spec)
    assert admin.list_offsets({ORDERS: OffsetSpec.LATEST})[ORDERS].offset == 2
    assert admin.find_hanging_transactions(max_transaction_timeout_ms=0) == []
    view = LogDir(cluster.broker.path).partition(*ORDERS)
    assert list(view.records(isolation_level="read_committed")) == []
    assert [each.value for each in view.records(isolation_level="read_uncommitted")] == [b"hanging"]


@pytest.mark.parametrize(
    ("search", "is_found"),
    [
        ({"topics": "orders"}, True),
        ({"topics": ["bills"]}, False),
        ({"partitions": [ORDERS]}, True),
        ({"partitions": [BILLS]}, False),
        ({"broker_id": 1}, True),
        ({"topics": "orders", "broker_id": 2}, False),
    ],
)
def test_the_search_is_limited(
    admin: Admin, cluster: Cluster, search: dict[str, Any], is_found: bool
) -> None:
    admin.create_topic("orders")
    admin.create_topic("bills")
    cluster.hang("orders")
    cluster.advance(MINUTES)
    assert bool(admin.find_hanging_transactions(**search, max_transaction_timeout_ms=0)) is is_found


def test_an_abort_with_an_old_epoch_is_refused(admin: Admin, cluster: Cluster) -> None:
    admin.create_topic("orders")
    admin.fence_producers("shop")
    producer = begin(cluster, "shop", ORDERS)
    spec = AbortTransactionSpec("orders", 0, producer.producer_id, producer.producer_epoch - 1)
    message = f"^orders-0, producer {producer.producer_id}: INVALID_PRODUCER_EPOCH; describe_producers has"
    with pytest.raises(InvalidProducerEpochError, match=message):
        admin.abort_transaction(spec)
    admin.abort_transaction(spec._replace(producer_epoch=producer.producer_epoch))
    (state,) = admin.describe_producers([ORDERS], broker_id=1)[ORDERS]
    assert state.current_transaction_start_offset is None
    assert admin.describe_transactions("shop")["shop"].state == "Ongoing"


def test_fencing_aborts_the_open_transaction(admin: Admin, cluster: Cluster) -> None:
    admin.create_topic("orders")
    producer = begin(cluster, "shop", ORDERS)
    fenced = admin.fence_producers(["shop", "new"])
    assert fenced["shop"].producer_epoch > producer.producer_epoch
    assert set(fenced) == {"shop", "new"}
    assert end(cluster, "shop", producer, is_committed=True).error_code != 0
    assert admin.list_offsets({ORDERS: OffsetSpec.LATEST})[ORDERS].offset == 2
    assert {each.transactional_id: each.state for each in admin.list_transactions()} == {
        "new": "Empty", "shop": "Empty",
    }  # fmt: skip

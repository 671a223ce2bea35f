"""Hanging transactions: the cross-check with the coordinators, over scripted answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.fakes import FakeTransport, Request
from txnkafka.client.admin import Admin, HangingTransaction
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError
from txnkafka.model import TopicPartition
from txnkafka.wire.messages import describe_producers as producers
from txnkafka.wire.messages import describe_transactions as transactions
from txnkafka.wire.messages.list_transactions import ListTransactionsResponse, TransactionState

NOW_MS = 1_000_000  # of the fake clock
ORDERS = TopicPartition("orders", 0)
IDS = {1: "in it", 2: "in another partition", 3: "idle", 4: "expired meanwhile", 9: "of another producer"}


def described(name: str) -> transactions.TransactionState:
    if name == "expired meanwhile":
        return transactions.TransactionState(error_code=105, transactional_id=name)
    place = {"in it": 0, "in another partition": 1}.get(name)
    topics = () if place is None else (transactions.TopicData(topic="orders", partitions=(place,)),)
    return transactions.TransactionState(
        transactional_id=name, transaction_state="Ongoing", topics=topics,
        transaction_timeout_ms=2**31 - 1 if name == "idle" else 60_000,
    )  # fmt: skip


def transport_with(*open_for_ms: int) -> FakeTransport:
    """A partition with an open transaction of producer 1, 2, … for each time since its last record, and one
    producer without an open transaction."""
    transport = FakeTransport({"orders": 1})

    def describe_producers(request: Request) -> Any:
        states = [
            producers.ProducerState(
                producer_id=number, producer_epoch=3, coordinator_epoch=-1, last_timestamp=NOW_MS - ms,
                current_txn_start_offset=10 * number,
            )
            for number, ms in enumerate(open_for_ms, 1)
        ]  # fmt: skip
        states.append(producers.ProducerState(producer_id=77, last_timestamp=0, current_txn_start_offset=-1))
        rows = (producers.PartitionResponse(partition_index=0, active_producers=tuple(states)),)
        return producers.DescribeProducersResponse(
            topics=(producers.TopicResponse(name="orders", partitions=rows),)
        )

    def list_transactions(request: Request) -> Any:
        asked = request.message.producer_id_filters
        rows = [
            TransactionState(transactional_id=IDS[each], producer_id=each) for each in asked if each in IDS
        ]
        return ListTransactionsResponse(transaction_states=tuple(rows))

    transport.answers |= {
        "DescribeProducers": describe_producers,
        "ListTransactions": list_transactions,
        "DescribeTransactions": lambda request: transactions.DescribeTransactionsResponse(
            transaction_states=tuple(described(name) for name in request.message.transactional_ids)
        ),
    }
    return transport


def find(transport: FakeTransport, **search: Any) -> list[HangingTransaction]:
    with Admin(transport=transport.for_client) as admin:
        return admin.find_hanging_transactions(**search)


def test_a_transaction_hangs_unless_its_coordinator_has_the_partition() -> None:
    found = find(transport_with(*[900_001] * 5))
    assert [(each.producer_id, each.transactional_id) for each in found] == [
        (2, "in another partition"), (3, "idle"), (4, "expired meanwhile"), (5, None),
    ]  # fmt: skip
    assert found[0] == HangingTransaction(ORDERS, 2, 3, None, 20, NOW_MS - 900_001, "in another partition")
    assert found[0].spec == ("orders", 0, 2, 3, None)
    assert [each.is_two_phase for each in found] == [False, True, False, False]


def test_a_transaction_within_the_longest_timeout_is_not_looked_up() -> None:
    transport = transport_with(900_000, 5)
    assert find(transport) == []
    assert "ListTransactions" not in transport.names()
    assert [each.producer_id for each in find(transport_with(900_000, 5), max_transaction_timeout_ms=5)] == []
    assert [each.producer_id for each in find(transport_with(5, 900_000), max_transaction_timeout_ms=5)] == [
        2
    ]


def test_internal_topics_are_searched_and_partitions_are_asked_in_parts() -> None:
    transport = transport_with()
    transport.topics = {"orders": 1, "__consumer_offsets": 1_200}
    sizes: list[int] = []

    def describe_producers(request: Request) -> Any:
        rows = [(each.name, number) for each in request.message.topics for number in each.partition_indexes]
        sizes.append(len(rows))
        return producers.DescribeProducersResponse(
            topics=tuple(
                producers.TopicResponse(
                    name=name, partitions=(producers.PartitionResponse(partition_index=number),)
                )
                for name, number in rows
            )
        )

    transport.answers["DescribeProducers"] = describe_producers
    assert find(transport) == []
    assert sizes == [500, 500, 201]


def test_an_error_of_the_cross_check_is_raised() -> None:
    transport = transport_with(900_001)
    refused = transactions.TransactionState(error_code=53, transactional_id="in it")
    answer = transactions.DescribeTransactionsResponse(transaction_states=(refused,))
    transport.answers["DescribeTransactions"] = lambda request: answer
    with pytest.raises(KafkaError, match=r"^transactional id in it: TRANSACTIONAL_ID_AUTH") as caught:
        find(transport)
    assert caught.value.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

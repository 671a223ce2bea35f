"""Transactions with two-phase commit (KIP-939): listed, completed, aborted, and not called hanging."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from txnkafka import Broker, PreparedTxnState, Producer, TopicPartition, aio
from txnkafka.client.admin import Admin, TransactionDescription
from txnkafka.client.admin.transaction_types import NO_TIMEOUT
from txnkafka.errors import InvalidTxnStateError, KafkaError, ProducerFencedError, UnsupportedVersionError

ON = {"transaction.two.phase.commit.enable": True, "unstable.api.versions.enable": True}
ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.in_memory(**ON) as opened:
        yield opened


@pytest.fixture
def admin(broker: Broker) -> Iterator[Admin]:
    with broker.admin() as opened:
        yield opened


def prepared(broker: Broker, name: str) -> tuple[Producer, PreparedTxnState]:
    producer = broker.producer(transactional_id=name, transaction_two_phase_commit_enable=True)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", name.encode())
    return producer, producer.prepare_transaction()


def state_of(admin: Admin, name: str) -> str:
    return admin.describe_transactions(name)[name].state


def test_open_ones_are_listed_oldest_first(broker: Broker, admin: Admin) -> None:
    limited = broker.producer(transactional_id="limited")
    limited.init_transactions()
    limited.begin_transaction()
    limited.send("orders", b"x").result()
    (_, first), (producer, second) = prepared(broker, "b"), prepared(broker, "a")
    found = admin.list_two_phase_transactions()
    assert [(each.transactional_id, each.producer_id, each.coordinator) for each in found] == [
        ("b", first.producer_id, 1), ("a", second.producer_id, 1),
    ]  # fmt: skip
    assert all(each.is_two_phase and each.topic_partitions == (ORDERS,) for each in found)
    assert found[0].transaction_timeout_ms == NO_TIMEOUT
    assert not admin.describe_transactions("limited")["limited"].is_two_phase
    assert [each.transactional_id for each in admin.list_two_phase_transactions(pattern="a.*")] == ["a"]
    assert admin.list_two_phase_transactions(min_duration_ms=60_000) == []
    producer.commit_transaction()
    assert [each.transactional_id for each in admin.list_two_phase_transactions()] == ["b"]


def test_one_is_completed_by_its_state(broker: Broker, admin: Admin) -> None:
    producer, state = prepared(broker, "shop")
    other = PreparedTxnState(state.producer_id, state.epoch + 1)
    with pytest.raises(InvalidTxnStateError, match=f"is {state}, and not {other}; it stays open"):
        admin.complete_transaction("shop", other)
    with pytest.raises(InvalidTxnStateError, match="and not an empty state"):
        admin.complete_transaction("shop", "")
    assert state_of(admin, "shop") == "Ongoing"
    admin.complete_transaction("shop", str(state))
    assert state_of(admin, "shop") == "CompleteCommit"
    with pytest.raises(InvalidTxnStateError, match="its state is CompleteCommit"):
        admin.complete_transaction("shop", state)
    with pytest.raises(ProducerFencedError):
        producer.abort_transaction()
    with pytest.raises(KafkaError, match="TRANSACTIONAL_ID_NOT_FOUND"):
        admin.complete_transaction("gone", state)


def test_a_refused_completion_fences_nobody(broker: Broker, admin: Admin) -> None:
    producer, state = prepared(broker, "shop")
    with pytest.raises(InvalidTxnStateError):
        admin.complete_transaction("shop", "99:0")
    producer.complete_transaction(state)
    assert state_of(admin, "shop") == "CompleteCommit"


def test_fence_producers_aborts_it(broker: Broker, admin: Admin) -> None:
    _, state = prepared(broker, "shop")
    admin.fence_producers("shop")
    again = broker.producer(transactional_id="shop", transaction_two_phase_commit_enable=True)
    again.init_transactions(keep_prepared=True)
    again.complete_transaction(state)  # nothing is open
    with broker.consumer() as consumer:
        consumer.assign([ORDERS])
        consumer.seek_to_beginning(ORDERS)
        assert list(consumer.poll(0.2)) == []
        assert consumer.end_offsets([ORDERS]) == {ORDERS: 2}  # the record and its marker


def test_it_does_not_hang(broker: Broker, admin: Admin) -> None:
    prepared(broker, "shop")
    assert admin.find_hanging_transactions(max_transaction_timeout_ms=-1) == []


def test_a_broker_without_two_phase_commit() -> None:
    with Broker.in_memory() as broker, broker.admin() as admin:
        producer = broker.producer(transactional_id="shop")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"x").result()
        found: TransactionDescription = admin.describe_transactions("shop")["shop"]
        with pytest.raises(UnsupportedVersionError, match="6 to 6 are needed"):
            admin.complete_transaction("shop", PreparedTxnState(found.producer_id, found.producer_epoch))
        producer.commit_transaction()


def test_for_asyncio(broker: Broker) -> None:
    _, state = prepared(broker, "shop")

    async def run() -> None:
        async with aio.Admin(broker=broker) as admin:
            (found,) = await admin.list_two_phase_transactions()
            await admin.complete_transaction(found.transactional_id, state)
            assert await admin.list_two_phase_transactions() == []

    asyncio.run(run())

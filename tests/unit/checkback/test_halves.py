"""Rules of ``with producer.half(…)``, of settings, and of a producer that is not started or shut down."""

from __future__ import annotations

import contextlib
import gc
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from txnkafka import Broker, ClosedError, IllegalStateError, KafkaStorageError
from txnkafka.checkback import (
    CheckBackAdmin,
    LocalTransactionState,
    Message,
    TransactionDecidedError,
    TransactionListener,
    TransactionMQProducer,
)
from txnkafka.testing.settings import SETTINGS

COMMIT, ROLLBACK = LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.ROLLBACK_MESSAGE


class Commits(TransactionListener):
    def execute_local_transaction(self, msg: Any, arg: Any) -> LocalTransactionState:
        return COMMIT

    def check_local_transaction(self, msg: Any) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker.in_memory(**SETTINGS) as opened:
        opened.admin().create_topic("orders", partitions=1)
        yield opened


@pytest.fixture
def producer(broker: Broker) -> Iterator[TransactionMQProducer]:
    with TransactionMQProducer("shop", broker, transaction_listener=Commits()) as made:
        yield made


def test_a_written_half_takes_no_more_messages(producer: TransactionMQProducer) -> None:
    with (
        producer.half("orders", b"1") as half,
        pytest.raises(IllegalStateError, match="is in the log already"),
    ):
        half.send("orders", b"2")
    assert half.wait_until_done() is COMMIT


def test_messages_within_the_block_need_prepare(producer: TransactionMQProducer) -> None:
    with pytest.raises(IllegalStateError, match="call record or prepare"), producer.half() as half:
        half.send("orders", b"1")
    with pytest.raises(IllegalStateError, match="was not written"):
        half.wait_until_done()
    with producer.half() as half:
        half.send("orders", b"1").prepare()
    assert half.wait_until_done() is COMMIT


def test_a_block_without_messages_does_nothing(producer: TransactionMQProducer) -> None:
    with producer.half():
        pass
    with pytest.raises(IllegalStateError, match="has no message"):
        producer.half().prepare()
    with contextlib.suppress(ValueError), producer.half() as half:
        half.send("orders", b"1")
        raise ValueError("stop")


def test_decisions_within_the_block(producer: TransactionMQProducer) -> None:
    with producer.half("orders", b"1") as half:
        half.rollback()
    assert half.wait_until_done() is ROLLBACK
    with contextlib.suppress(ValueError), producer.half("orders", b"1") as half:
        half.commit()
        raise ValueError("stop")
    assert half.wait_until_done() is COMMIT


def test_a_half_with_an_id_that_is_decided(producer: TransactionMQProducer) -> None:
    with producer.half("orders", b"1", transaction_id="order-9"):
        pass
    with (
        pytest.raises(TransactionDecidedError) as raised,
        producer.half("orders", b"1", transaction_id="order-9"),
    ):
        raise AssertionError("the block does not run")
    assert raised.value.outcome is COMMIT
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (str(copy), copy.outcome) == (str(raised.value), COMMIT)


def test_record_needs_a_table(producer: TransactionMQProducer) -> None:
    with pytest.raises(IllegalStateError, match="no decision table"), producer.half("orders", b"1") as half:
        half.record(None)


def test_immunity_is_not_negative(producer: TransactionMQProducer) -> None:
    with pytest.raises(ValueError, match="must not be negative: -1"):
        producer.half("orders", b"1", check_immunity_time_in_seconds=-1)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"transactional_id": "shop"}, "no transactional.id"),
        ({"check_thread_pool_size": 0}, "at least 1, not 0"),
        ({"transaction_timeout": -1}, "transaction.timeout must be 0"),
        ({"transaction_timeouts": 1}, "unknown setting"),
    ],
)
def test_wrong_settings(broker: Broker, settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        TransactionMQProducer("shop", broker, **settings)


def test_wrong_places_and_groups(broker: Broker) -> None:
    with pytest.raises(ValueError, match="transaction_timeout: a setting of the resolver"):
        TransactionMQProducer("shop", "127.0.0.1:9092", transaction_timeout=1)
    with pytest.raises(TypeError, match="give a Broker, HOST:PORT"):
        TransactionMQProducer("shop", 5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a producer group is a name"):
        TransactionMQProducer("", broker)


def test_a_producer_is_started_first(broker: Broker) -> None:
    producer = TransactionMQProducer("shop", broker, transaction_listener=Commits())
    assert repr(producer) == "<TransactionMQProducer group='shop' not started>"
    for call in (
        lambda: producer.send(Message("orders")),
        lambda: producer.send_message_in_transaction(Message("orders")),
        lambda: producer.half("orders"),
        lambda: producer.commit("order"),
    ):
        with pytest.raises(IllegalStateError, match="call start"):
            call()
    assert producer.start() is producer.start()
    producer.shutdown()
    producer.shutdown()
    assert "closed" in repr(producer)
    with pytest.raises(ClosedError):
        producer.send(Message("orders"))


def test_a_broker_that_is_closed_first() -> None:
    """Its producers and its resolver end without an error."""
    broker = Broker.in_memory(**SETTINGS)
    producer = TransactionMQProducer("shop", broker, transaction_listener=Commits()).start()
    admin = CheckBackAdmin(broker)
    assert admin.list_half_messages() == []
    broker.close()
    producer.shutdown()
    admin.close()
    with pytest.raises((ClosedError, KafkaStorageError)):
        TransactionMQProducer("shop", broker)
    gc.collect()


def test_an_administrator_decides_with_an_outcome(broker: Broker) -> None:
    with CheckBackAdmin(broker) as admin, pytest.raises(ValueError, match="not UNKNOWN"):
        admin.decide("order", LocalTransactionState.UNKNOW)

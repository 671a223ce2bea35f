"""Conformance of check-back messages: decisions, immunity, order, refusals; see ``test_conformance.py``."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from tests.server.checkback.shop import (
    COMMIT,
    ROLLBACK,
    UNKNOWN,
    Answers,
    Shop,
    message,
    opened,
    rules,
    until,
)
from txnkafka import InvalidTopicError, KafkaError, KafkaTimeoutError
from txnkafka.checkback import (
    DelayNotSupportedError,
    HalfTooLargeError,
    ListenerMissingError,
    TransactionDecidedError,
    TransactionMQProducer,
    UnknownTransactionError,
    WrongGroupError,
)

# Decisions


@rules(transaction_timeout=600_000)
def test_26_another_group_cannot_decide(shop: Shop) -> None:
    producer, _ = shop.answering()
    other, _ = shop.answering(group="other")
    sent = producer.send_message_in_transaction(message(), UNKNOWN).transaction_id
    with pytest.raises(WrongGroupError, match="'shop', not 'other'"):
        other.commit(sent)
    producer.rollback(sent)
    assert shop.values() == []


@rules(transaction_timeout=600_000)
@pytest.mark.parametrize("is_done", [False, True])
def test_27_a_second_commit_is_no_error_and_no_second_record(shop: Shop, is_done: bool) -> None:
    producer, _ = shop.answering()
    sent = producer.send_message_in_transaction(message(), UNKNOWN).transaction_id
    producer.commit(sent)
    if is_done:
        producer.wait_until_done(sent)
    producer.commit(sent)
    shop.admin.decide(sent, COMMIT)
    producer.wait_until_done(sent)
    assert shop.values() == [b"a book"]


@rules(transaction_timeout=600_000)
@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("first", [ROLLBACK, COMMIT])
def test_28_and_29_the_contrary_decision_is_refused(shop: Shop, first: Any, is_done: bool) -> None:
    producer, _ = shop.answering()
    sent = producer.send_message_in_transaction(message(), first).transaction_id
    if is_done:
        producer.wait_until_done(sent)
    with pytest.raises(TransactionDecidedError) as raised:
        (producer.commit if first is ROLLBACK else producer.rollback)(sent)
    assert raised.value.outcome is first
    assert producer.wait_until_done(sent) is first
    assert shop.values() == ([b"a book"] if first is COMMIT else [])


@pytest.mark.parametrize("answer", [COMMIT, ROLLBACK])
def test_30_and_31_a_decision_after_that_of_a_check(shop: Shop, answer: Any) -> None:
    producer, _ = shop.answering(answer)
    sent = producer.send_message_in_transaction(message(), UNKNOWN).transaction_id
    assert producer.wait_until_done(sent) is answer
    refused = pytest.raises(TransactionDecidedError) if answer is ROLLBACK else contextlib.nullcontext()
    with refused:
        producer.commit(sent)
    assert shop.values() == ([b"a book"] if answer is COMMIT else [])


@pytest.mark.parametrize("is_done", [False, True])
def test_31_a_block_whose_half_a_check_has_rolled_back_raises(shop: Shop, is_done: bool) -> None:
    producer, listener = shop.answering(ROLLBACK)
    half = producer.half("orders", b"a book")

    def sell() -> None:
        with half:
            until(listener.asked, "a check")
            until(lambda: shop.state_of(half.transaction_id) != "prepared", "its answer is in the log")
            if is_done:
                half.wait_until_done()

    with pytest.raises(TransactionDecidedError) as raised:
        sell()
    assert raised.value.outcome is ROLLBACK
    assert shop.values() == []


@rules(half_partitions=1, decision_retention=0)
def test_32_a_decision_about_a_forgotten_message_has_no_effect(shop: Shop) -> None:
    producer, _ = shop.answering()
    sent = producer.send_message_in_transaction(message(), ROLLBACK).transaction_id

    def is_forgotten() -> bool:
        producer.send_message_in_transaction(message(), ROLLBACK)  # the owner forgets with its next work
        with contextlib.suppress(KafkaError):
            producer.rollback(sent)
            return False
        return True

    until(is_forgotten, "the outcome is forgotten")
    with pytest.raises(UnknownTransactionError, match=sent):
        producer.commit(sent)
    assert shop.values() == []


@rules(transaction_timeout=600_000)
def test_33_the_same_id_twice_is_one_half(shop: Shop) -> None:
    producer, listener = shop.answering()
    first = producer.send_message_in_transaction(message(b"1", transaction_id="order-1"), COMMIT)
    again = producer.send_message_in_transaction(message(b"2", transaction_id="order-1"), ROLLBACK)
    producer.wait_until_done("order-1")
    later = producer.send_message_in_transaction(message(b"3", transaction_id="order-1"), ROLLBACK)
    assert {each.local_transaction_state for each in (first, again, later)} == {COMMIT}
    assert len(listener.executed) == 1
    assert shop.values() == [b"1"]


# Immunity


def test_34_immunity_delays_the_first_check_and_is_not_counted(shop: Shop) -> None:
    producer, listener = shop.answering(COMMIT)
    sent = message(check_immunity_time_in_seconds=1.5)
    result = producer.send_message_in_transaction(sent, UNKNOWN)
    assert producer.wait_until_done(result.transaction_id) is COMMIT
    assert listener.asked() == [1]
    assert listener.checks[0].at_ms >= listener.messages[0].born_timestamp + 1_500


def test_35_immunity_beyond_all_intervals_leaves_all_checks(shop: Shop) -> None:
    producer, listener = shop.answering()
    sent = message(check_immunity_time_in_seconds=2.0)
    result = producer.send_message_in_transaction(sent, UNKNOWN)
    until(lambda: shop.state_of(result.transaction_id) == "parked", "the message is parked")
    assert listener.asked() == [1, 2, 3]


def test_36_a_decision_after_the_immunity_is_accepted(shop: Shop) -> None:
    producer, listener = shop.answering()
    sent = message(check_immunity_time_in_seconds=0.2)
    result = producer.send_message_in_transaction(sent, UNKNOWN)
    until(lambda: listener.asked(), "a check")
    producer.commit(result.transaction_id)
    producer.wait_until_done(result.transaction_id)
    assert shop.values() == [b"a book"]


def test_37_a_half_in_long_immunity_does_not_delay_the_others(shop: Shop) -> None:
    producer, listener = shop.answering(COMMIT)
    long = message(b"long", check_immunity_time_in_seconds=600)
    first = producer.send_message_in_transaction(long, UNKNOWN).transaction_id
    for value in (b"1", b"2"):
        result = producer.send_message_in_transaction(message(value), UNKNOWN)
        assert producer.wait_until_done(result.transaction_id) is COMMIT
    assert (listener.asked(first), shop.state_of(first)) == ([], "prepared")


# Order


@rules(transaction_timeout=600_000)
def test_38_an_undecided_half_holds_nothing_back(shop: Shop) -> None:
    producer, _ = shop.answering()
    producer.send_message_in_transaction(message(b"a"), UNKNOWN)
    second = producer.send_message_in_transaction(message(b"b"), COMMIT)
    producer.wait_until_done(second.transaction_id)
    producer.send(message(b"plain"))
    assert shop.values() == [b"b", b"plain"]
    committed, uncommitted = (
        shop.end_offsets("orders", level) for level in ("read_committed", "read_uncommitted")
    )
    assert committed == uncommitted


@rules(transaction_timeout=600_000)
def test_39_messages_become_visible_in_the_order_of_decisions(shop: Shop) -> None:
    producer, _ = shop.answering()
    sent = [
        producer.send_message_in_transaction(message(value), UNKNOWN).transaction_id for value in (b"a", b"b")
    ]
    for each in reversed(sent):
        producer.commit(each)
        producer.wait_until_done(each)
    assert shop.values() == [b"b", b"a"]


@rules(half_partitions=1, transaction_timeout=600_000)
def test_40_decisions_of_one_partition_are_carried_out_in_their_order(shop: Shop) -> None:
    producer, _ = shop.answering()
    values = [b"k%d" % number for number in range(100)]
    for value in values:
        last = producer.send_message_in_transaction(message(value), COMMIT)
    producer.wait_until_done(last.transaction_id)
    assert shop.values() == values


@rules(transaction_timeout=600_000)
def test_41_a_half_of_several_records_is_visible_as_a_whole(shop: Shop) -> None:
    producer, _ = shop.answering()
    with shop.broker.consumer("orders", "bills") as reader:
        for number in range(10):
            half = producer.half("orders", b"1").send("bills", b"2", b"anna").send("bills", b"3", b"anna")
            with half:
                assert shop.values("orders") == [b"1"] * number
            half.wait_until_done()
        found = []
        while len(found) < 30:
            found += reader.poll(1_000)
    ids = [dict(each.headers)["txn.id"] for each in found]
    assert {ids.count(each) for each in ids} == {3}
    assert sorted(each.value for each in found) == [b"1"] * 10 + [b"2"] * 10 + [b"3"] * 10


# Refusals before the local transaction


@pytest.mark.parametrize("delay", [{"delay_time_level": 3}, {"deliver_time_ms": 1_900_000_000_000}])
def test_42_a_delay_is_refused(shop: Shop, delay: dict[str, int]) -> None:
    producer, listener = shop.answering()
    with pytest.raises(DelayNotSupportedError, match="orders"):
        producer.send_message_in_transaction(message(**delay), COMMIT)
    with pytest.raises(DelayNotSupportedError, match="orders"):
        producer.send(message(**delay))
    assert (listener.executed, shop.admin.list_half_messages()) == ([], [])


def test_43_what_the_topic_does_not_take_is_refused(shop: Shop) -> None:
    producer, listener = shop.answering(max_block_ms=3_000, max_request_size=20_000)
    with shop.broker.admin() as admin:
        admin.create_topic("small", partitions=1, config={"max.message.bytes": 1000})
    with pytest.raises(HalfTooLargeError, match="small"):
        producer.send_message_in_transaction(message(bytes(1000), topic="small"), COMMIT)
    with pytest.raises(HalfTooLargeError, match=r"max\.request\.size"):
        producer.send_message_in_transaction(message(bytes(20_000)), COMMIT)
    with pytest.raises(InvalidTopicError, match="__txn_half"):
        producer.send_message_in_transaction(message(topic="__txn_half"), COMMIT)
    with pytest.raises(KafkaError, match="partition 7"):
        producer.send_message_in_transaction(message(partition=7), COMMIT)
    assert (listener.executed, shop.admin.list_half_messages()) == ([], [])


def test_44_without_a_listener_nothing_is_sent(shop: Shop) -> None:
    producer = shop.producer()
    with pytest.raises(ListenerMissingError):
        producer.send_message_in_transaction(message(), COMMIT)
    with pytest.raises(ListenerMissingError):
        producer.half("orders", b"a book")
    assert set(shop.end_offsets("__txn_half", "read_uncommitted").values()) == {0}


def test_45_a_half_that_was_not_acknowledged_runs_no_local_transaction() -> None:
    listener = Answers()
    with opened("socket") as shop:
        producer = TransactionMQProducer(
            "shop", shop.place, transaction_listener=listener, delivery_timeout_ms=4_000,
            request_timeout_ms=2_000, max_block_ms=4_000,  # the first message needs time on a busy machine
        ).start()  # fmt: skip
        producer.send_message_in_transaction(message(), ROLLBACK)
        shop.close()
        shop.broker.close()
        with pytest.raises(KafkaTimeoutError):
            producer.send_message_in_transaction(message(), COMMIT)
        producer.shutdown()
    assert len(listener.executed) == 1

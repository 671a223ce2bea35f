"""Conformance of check-back messages: each test is a line of the list of situations, by its number.

The list was made with RocketMQ 5.4.0: txnkafka does the same, or better. The times are those of
``shop.RULES``. No test compares times, except that nothing may happen too early. Decisions and databases have
files of their own; kills of processes are in ``test_broker_kills.py``.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.server.checkback.shop import (
    COMMIT,
    ROLLBACK,
    UNKNOWN,
    Answers,
    Shop,
    message,
    rules,
    until,
)
from txnkafka.checkback import (
    CheckBackConfig,
    Message,
    TransactionDecidedError,
    TransactionMQProducer,
    TransactionParkedError,
    UnknownTransactionError,
)
from txnkafka.wire.records.check_records import decode_parked_log, parked_record_of

# Visibility


@rules(transaction_timeout=600_000)
def test_01_an_undecided_half_is_not_in_the_topic(shop: Shop) -> None:
    producer, _ = shop.answering()
    producer.send_message_in_transaction(message(), UNKNOWN)
    assert shop.values() == shop.values(isolation="read_uncommitted") == []


def test_02_a_committed_message_is_visible_once_and_unchanged(shop: Shop) -> None:
    producer, listener = shop.answering()
    sent = message(
        b"\0\xff", keys=b"anna", headers=[("a", b"1"), ("b", None)], timestamp=1_700_000_000_123, tags="A"
    )
    result = producer.send_message_in_transaction(sent, COMMIT)
    assert producer.wait_until_done(result.transaction_id) is COMMIT
    (record,) = shop.records()
    assert (record.key, record.value, record.timestamp) == (b"anna", b"\0\xff", 1_700_000_000_123)
    assert record.headers == (
        ("TAGS", b"A"), ("a", b"1"), ("b", None), ("txn.id", result.transaction_id.encode()),
    )  # fmt: skip
    assert listener.asked() == []


def test_03_a_rolled_back_message_never_reaches_the_topic(shop: Shop) -> None:
    producer, _ = shop.answering()
    result = producer.send_message_in_transaction(message(), ROLLBACK)
    assert producer.wait_until_done(result.transaction_id) is ROLLBACK
    assert set(shop.end_offsets("orders", "read_uncommitted").values()) == {0}


# Answers of the listener


def test_04_an_unknown_message_is_checked(shop: Shop) -> None:
    producer, listener = shop.answering(COMMIT)
    result = producer.send_message_in_transaction(message(keys="anna", tags="A"), UNKNOWN)
    assert result.local_transaction_state is UNKNOWN
    until(lambda: listener.asked(result.transaction_id), "a check")
    (asked,) = listener.messages
    assert (asked.topic, asked.body, asked.keys, asked.tags) == ("orders", b"a book", b"anna", "A")
    assert (asked.producer_group, asked.msg_id) == ("shop", result.msg_id)
    assert listener.checks[0].at_ms >= asked.born_timestamp + 300


def test_05_none_from_the_local_transaction_is_unknown(shop: Shop) -> None:
    producer, listener = shop.answering(COMMIT)
    result = producer.send_message_in_transaction(message(), None)
    assert result.local_transaction_state is UNKNOWN
    assert producer.wait_until_done(result.transaction_id) is COMMIT
    assert listener.asked() == [1]


def test_06_an_exception_of_the_local_transaction_is_in_the_result(shop: Shop) -> None:
    producer, _ = shop.answering(ROLLBACK)
    failure = RuntimeError("the database is down")
    result = producer.send_message_in_transaction(message(), failure)
    assert (result.local_transaction_state, result.local_exception) == (UNKNOWN, failure)
    assert producer.wait_until_done(result.transaction_id) is ROLLBACK


def test_07_a_check_that_raises_is_repeated(shop: Shop) -> None:
    answers = iter([RuntimeError("no connection"), COMMIT])

    def check(_: Message) -> Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    producer, listener = shop.answering(check)
    result = producer.send_message_in_transaction(message(), UNKNOWN)
    assert producer.wait_until_done(result.transaction_id) is COMMIT
    assert listener.asked() == [1, 2]


@pytest.mark.parametrize("answer", [None, "commit", 1])
def test_08_a_check_that_answers_something_else_is_repeated(
    shop: Shop, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    answers = iter([answer, COMMIT])
    producer, listener = shop.answering(lambda _: next(answers))
    result = producer.send_message_in_transaction(message(), UNKNOWN)
    assert producer.wait_until_done(result.transaction_id) is COMMIT
    assert listener.asked() == [1, 2]
    assert f"returned {answer!r} instead of a LocalTransactionState" in caplog.text


def test_09_a_check_commits(shop: Shop) -> None:
    producer, _ = shop.answering(COMMIT)
    result = producer.send_message_in_transaction(message(), UNKNOWN)
    assert producer.wait_until_done(result.transaction_id) is COMMIT
    assert shop.values() == [b"a book"]


def test_10_a_check_rolls_back(shop: Shop) -> None:
    producer, _ = shop.answering(ROLLBACK)
    result = producer.send_message_in_transaction(message(), UNKNOWN)
    assert producer.wait_until_done(result.transaction_id) is ROLLBACK
    assert shop.values() == []


def test_11_an_unknown_answer_is_repeated_with_the_next_number(shop: Shop) -> None:
    answers = iter([UNKNOWN, UNKNOWN, COMMIT])
    producer, listener = shop.answering(lambda _: next(answers))
    result = producer.send_message_in_transaction(message(), UNKNOWN)
    assert producer.wait_until_done(result.transaction_id) is COMMIT
    assert listener.asked() == [1, 2, 3]


def test_12_and_13_defaults_are_those_of_rocketmq() -> None:
    config = CheckBackConfig()
    assert (config.transaction_timeout, config.transaction_check_interval) == (6_000, 30_000)
    assert config.transaction_check_max == 15


# Parked messages


def parked(shop: Shop) -> tuple[TransactionMQProducer, Answers, str]:
    """A message that no check has decided."""
    producer, listener = shop.answering()
    sent = producer.send_message_in_transaction(message(keys="anna"), UNKNOWN).transaction_id
    until(lambda: shop.state_of(sent) == "parked", "the message is parked")
    return producer, listener, sent


def test_14_and_16_after_the_last_check_a_message_is_parked_with_its_reason(shop: Shop) -> None:
    _, listener, sent = parked(shop)
    assert listener.asked(sent) == [1, 2, 3]
    (copy,) = shop.parked()
    record = parked_record_of(decode_parked_log(copy.key, copy.value))
    assert record is not None
    assert (record.transaction_id, record.producer_group, record.asks) == (sent, "shop", 3)
    assert [each.topic for each in record.batches] == ["orders"]
    assert record.reason
    shown = shop.admin.describe_half_message(sent)
    assert (shown.state, shown.reason, shown.asks) == ("parked", record.reason, 3)
    assert [(each.topic, each.body, each.keys) for each in shown.messages] == [("orders", b"a book", b"anna")]
    assert shop.values() == []


def test_15_the_last_check_has_time_to_answer(shop: Shop) -> None:
    producer, listener = shop.answering(lambda msg: COMMIT if msg.check_times == 3 else UNKNOWN)
    sent = producer.send_message_in_transaction(message(), UNKNOWN).transaction_id
    assert producer.wait_until_done(sent) is COMMIT
    assert listener.asked() == [1, 2, 3]
    assert (shop.values(), shop.parked()) == ([b"a book"], [])


def test_17_a_parked_message_cannot_be_committed(shop: Shop) -> None:
    producer, _, sent = parked(shop)
    for decide in (producer.commit, producer.rollback):
        with pytest.raises(TransactionParkedError, match=sent):
            decide(sent)
    with pytest.raises(TransactionParkedError):
        producer.wait_until_done(sent)
    assert shop.values() == []


def test_18_a_resumed_message_is_checked_from_the_beginning(shop: Shop) -> None:
    producer, listener, sent = parked(shop)
    shop.admin.resume_check_half_message(sent)
    until(lambda: listener.asked(sent) == [1, 2, 3, 1], "the first check again")
    producer.commit(sent)
    assert producer.wait_until_done(sent) is COMMIT
    assert (shop.values(), shop.parked()) == ([b"a book"], [])


def test_19_a_visible_message_cannot_be_resumed(shop: Shop) -> None:
    producer, _ = shop.answering()
    sent = producer.send_message_in_transaction(message(), COMMIT).transaction_id
    producer.wait_until_done(sent)
    with pytest.raises(TransactionDecidedError) as raised:
        shop.admin.resume_check_half_message(sent)
    assert raised.value.outcome is COMMIT
    with pytest.raises(UnknownTransactionError):
        shop.admin.resume_check_half_message("other")
    assert shop.values() == [b"a book"]


# Listeners


def test_20_and_21_checks_wait_for_a_listener_and_count_from_then_on(shop: Shop) -> None:
    """Over more time than all checks together take."""
    with shop.producer("shop", Answers()) as first:
        sent = first.send_message_in_transaction(message(), UNKNOWN).transaction_id
    other, _ = shop.answering(COMMIT, group="other")
    for _ in range(5):  # one timeout after another
        result = other.send_message_in_transaction(message(b"other"), UNKNOWN)
        assert other.wait_until_done(result.transaction_id) is COMMIT
    (half,) = shop.admin.list_half_messages("shop")
    assert (half.transaction_id, half.state, half.asks) == (sent, "prepared", 0)
    producer, listener = shop.answering(COMMIT)
    assert producer.wait_until_done(sent) is COMMIT
    assert listener.asked(sent) == [1]


def test_22_a_restarted_producer_is_asked_before_it_has_sent_anything(shop: Shop) -> None:
    with shop.producer("shop", Answers()) as first:
        sent = first.send_message_in_transaction(message(), UNKNOWN).transaction_id
    _, listener = shop.answering(COMMIT)
    until(lambda: listener.asked(sent), "a check")


@rules(transaction_timeout=100, transaction_check_interval=2_000, transaction_check_max=1)
def test_23_two_processes_share_the_checks(shop: Shop) -> None:
    first, one = shop.answering()
    _, other = shop.answering()
    ids: list[str] = []

    def are_both_asked() -> bool:
        """After the group has divided its partitions."""
        time.sleep(0.1)
        ids.append(first.send_message_in_transaction(message(), UNKNOWN).transaction_id)
        return bool(one.asked() and other.asked())

    until(are_both_asked, "both processes are asked")
    until(lambda: {shop.state_of(each) for each in ids} == {"parked"}, "all messages are parked")
    for sent in ids:
        assert one.asked(sent) + other.asked(sent) == [1]


def test_24_checks_of_a_process_that_ends_go_to_another_one(shop: Shop) -> None:
    producer, listener = shop.answering()
    with shop.producer("shop", Answers()) as ending:
        sent = [ending.send_message_in_transaction(message(), UNKNOWN).transaction_id for _ in range(8)]
    listener.check = COMMIT
    for each in sent:
        assert producer.wait_until_done(each) is COMMIT
    assert len(shop.values()) == 8


def test_25_another_group_is_not_asked(shop: Shop) -> None:
    producer, listener = shop.answering()
    _, other = shop.answering(group="other")
    sent = producer.send_message_in_transaction(message(), UNKNOWN).transaction_id
    until(lambda: listener.asked(sent) == [1, 2, 3], "all checks")
    assert other.asked() == []

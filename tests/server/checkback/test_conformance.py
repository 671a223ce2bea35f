"""Conformance of check-back messages: each test is a line of the list of situations, by its number.

The list was made with RocketMQ 5.4.0: it says where txnkafka does the same, and where it does better. The
times are those of the settings in ``shop.RULES``; no test asserts on time, except that nothing happens early.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.checkback.shop import COMMIT, ROLLBACK, UNKNOWN, Answers, Shop, opened, until
from txnkafka import InvalidTopicError, KafkaError, KafkaTimeoutError
from txnkafka.checkback import (
    CheckBackConfig,
    DecisionTable,
    DelayNotSupportedError,
    Half,
    HalfTooLargeError,
    ListenerMissingError,
    Message,
    TransactionDecidedError,
    TransactionMQProducer,
    TransactionParkedError,
    UnknownTransactionError,
    WrongGroupError,
)
from txnkafka.wire.records.check_records import decode_parked_log, parked_record_of


@pytest.fixture(params=["embedded", pytest.param("socket", marks=pytest.mark.slow)])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    with opened(request.param, **getattr(request.function, "rules", {})) as made:
        yield made


def rules(**settings: Any) -> Any:
    """Give a test other settings of the resolver."""

    def with_rules(function: Any) -> Any:
        function.rules = settings
        return function

    return with_rules


def message(value: bytes = b"a book", topic: str = "orders", **options: Any) -> Message:
    return Message(topic, value, **options)


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
    for _ in range(5):  # each of them after a timeout
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
    producer, listener = shop.answering(max_block_ms=1_000, max_request_size=20_000)
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


# Database transactions


class Database:
    """A database of orders in SQLite, with a decision table."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ids: list[str] = []
        self.decisions = DecisionTable(self.connect, lock_timeout_ms=100)
        self.decisions.create()
        with contextlib.closing(self.connect()) as db:
            db.execute("CREATE TABLE orders (name TEXT)")
            db.commit()

    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=10, check_same_thread=False)

    def orders(self) -> list[str]:
        with contextlib.closing(self.connect()) as db:
            return [name for (name,) in db.execute("SELECT name FROM orders")]


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "orders.db")


def buy(producer: TransactionMQProducer, db: sqlite3.Connection, name: str, **failures: Any) -> None:
    """Buy something in a half; ``before`` and ``after`` are called around the commit of the database."""
    with producer.half("orders", name.encode()) as half:
        try:
            half.record(db)
            db.execute("INSERT INTO orders VALUES (?)", [name])
            failures.get("before", str)(half)
            db.commit()
        except BaseException:
            db.rollback()
            raise
        failures.get("after", str)(half)


def failing(_: Any) -> None:
    raise RuntimeError("the connection broke")


def test_53_an_exception_before_the_database_commit_rolls_back(shop: Shop, database: Database) -> None:
    producer = shop.producer(decisions=database.decisions)
    with contextlib.closing(database.connect()) as db:
        with pytest.raises(RuntimeError, match="the connection broke"):
            buy(producer, db, "a book", before=failing)
        buy(producer, db, "a pen")
    until(lambda: shop.values() == [b"a pen"], "the second order is visible")
    until(lambda: shop.admin.list_half_messages() == [], "the first half is done")
    assert (shop.values(), database.orders()) == ([b"a pen"], ["a pen"])


def test_54_an_exception_after_the_database_commit_commits(shop: Shop, database: Database) -> None:
    """As when the answer to the commit gets lost."""
    producer = shop.producer(decisions=database.decisions)

    def lost(half: Half) -> None:
        database.ids.append(half.transaction_id)
        failing(half)

    with contextlib.closing(database.connect()) as db, pytest.raises(RuntimeError):
        buy(producer, db, "a book", after=lost)
    assert producer.wait_until_done(database.ids[0]) is COMMIT
    assert (shop.values(), database.orders()) == ([b"a book"], ["a book"])


def test_55_a_check_in_an_open_database_transaction_answers_unknown(shop: Shop, database: Database) -> None:
    producer, listener = shop.answering(
        lambda msg: database.decisions.check(msg.transaction_id), decisions=database.decisions
    )
    with contextlib.closing(database.connect()) as db:
        buy(producer, db, "a book", before=lambda _: until(lambda: listener.asked() == [1, 2], "two checks"))
    until(lambda: shop.values() == [b"a book"], "the order is visible")
    assert database.orders() == ["a book"]


def test_56_a_check_fences_a_local_transaction_that_comes_later(shop: Shop, database: Database) -> None:
    producer = shop.producer(decisions=database.decisions)
    half = producer.half("orders", b"a book")

    def buy_late(db: sqlite3.Connection) -> None:
        with half:
            until(lambda: shop.state_of(half.transaction_id) is None, "a check has rolled it back")
            half.record(db)

    with contextlib.closing(database.connect()) as db, pytest.raises(sqlite3.IntegrityError):
        buy_late(db)
    assert half.wait_until_done() is ROLLBACK
    assert (shop.values(), database.orders()) == ([], [])


# Load


@rules(transaction_timeout=100, transaction_check_interval=100, transaction_check_max=1000)
def test_49_checks_during_local_transactions_make_no_duplicates(shop: Shop) -> None:
    """Slow local transactions, and an honest listener: it does not know their outcome before they end."""
    ended: set[str] = set()
    pause = threading.Event()

    def slow(msg: Any) -> Any:
        pause.wait(0.3)
        ended.add(msg.transaction_id)
        return COMMIT

    producer, listener = shop.answering(lambda msg: COMMIT if msg.transaction_id in ended else UNKNOWN)
    values = [b"%d" % number for number in range(40)]

    def sell(some: list[bytes]) -> None:
        for value in some:
            producer.send_message_in_transaction(message(value), slow)

    threads = [threading.Thread(target=sell, args=[values[number::8]]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: shop.admin.list_half_messages() == [], "all halves are done")
    assert sorted(shop.values()) == sorted(values)
    assert listener.asked()


def test_45_a_half_that_was_not_acknowledged_runs_no_local_transaction() -> None:
    listener = Answers()
    with opened("socket") as shop:
        producer = TransactionMQProducer(
            "shop", shop.place, transaction_listener=listener, delivery_timeout_ms=1_000,
            request_timeout_ms=500, max_block_ms=1_000,
        ).start()  # fmt: skip
        producer.send_message_in_transaction(message(), ROLLBACK)
        shop.close()
        shop.broker.close()
        with pytest.raises(KafkaTimeoutError):
            producer.send_message_in_transaction(message(), COMMIT)
        producer.shutdown()
    assert len(listener.executed) == 1

"""The listener of checks over a socket, without a resolver: the tests write the checks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from tests.server.checkback.shop import COMMIT, SECONDS, UNKNOWN, Answers, until
from txnkafka import Broker, Producer
from txnkafka.checkback import Message, TransactionMQProducer, check_listener
from txnkafka.checkback.half_topics import CHECK_TOPIC, HALF_TOPIC
from txnkafka.testing.settings import SETTINGS
from txnkafka.wire.records.check_records import AskRecord
from txnkafka.wire.records.half_records import (
    AskedRecord,
    DecideRecord,
    HalfBatch,
    HalfRecord,
    Outcome,
    decode_half_log,
    half_record_of,
)


class Checks:
    """Writes halves and checks, and reads the answers."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.address = broker.serve("127.0.0.1:0")
        self.asks: Producer = broker.producer(linger_ms=0)
        self._producers: list[TransactionMQProducer] = []

    def producer(self, listener: Answers, group: str = "shop", threads: int = 4) -> TransactionMQProducer:
        made = TransactionMQProducer(
            group, self.address, transaction_listener=listener, check_thread_pool_size=threads
        )
        self._producers.append(made)
        return made.start()

    def log(self) -> list[Any]:
        """The records of ``__txn_half``, by partition."""
        with self.broker.consumer(HALF_TOPIC, isolation_level="read_uncommitted") as consumer:
            ends = consumer.end_offsets(consumer.assignment())
            found: list[Any] = []
            while any(consumer.position(place) < end for place, end in ends.items()):
                found += consumer.poll(1_000)
        return [(each, half_record_of(decode_half_log(each.key, each.value))) for each in found]

    def check_of(self, transaction_id: str, number: int = 1, **changes: Any) -> AskRecord:
        """A check of a half that was sent, as the resolver would write it."""
        place, half = next(
            (place, half)
            for place, half in self.log()
            if isinstance(half, HalfRecord) and half.transaction_id == transaction_id
        )
        return AskRecord(
            half.producer_group, transaction_id, number, round(time.time() * 1000), place.partition,
            place.offset, half.born_ms, half.batches,
        )._replace(**changes)  # fmt: skip

    def ask(self, *checks: AskRecord, partition: int = 0) -> None:
        sent = []
        for check in checks:
            key, value = check.encode()
            sent.append(self.asks.send(CHECK_TOPIC, value, key, partition=partition))
        for each in sent:
            each.result(SECONDS)

    def answers(self, kind: type) -> list[Any]:
        return [record for _, record in self.log() if isinstance(record, kind)]

    def close(self) -> None:
        for each in self._producers:
            each.shutdown()


@pytest.fixture
def checks() -> Iterator[Checks]:
    with Broker.in_memory(**SETTINGS) as broker:
        broker.admin().create_topic("orders", partitions=1)
        made = Checks(broker)
        yield made
        made.close()


def undecided(producer: TransactionMQProducer, count: int = 1) -> list[str]:
    return [
        producer.send_message_in_transaction(Message("orders", b"%d" % number), UNKNOWN).transaction_id
        for number in range(count)
    ]


def test_a_check_is_counted_and_answered(checks: Checks) -> None:
    listener = Answers(COMMIT)
    producer = checks.producer(listener)
    (sent,) = undecided(producer)
    checks.ask(checks.check_of(sent, number=2))
    (answer,) = until(lambda: checks.answers(DecideRecord), "the answer")
    assert (answer.transaction_id, answer.producer_group, answer.ask_no) == (sent, "shop", 2)
    assert answer.outcome is Outcome.COMMIT
    (asked,) = checks.answers(AskedRecord)
    assert (asked.transaction_id, asked.asks) == (sent, 2)
    assert asked.listener.startswith("txnkafka-")


def test_an_unknown_answer_is_only_counted(checks: Checks) -> None:
    listener = Answers(UNKNOWN)
    (sent,) = undecided(checks.producer(listener))
    checks.ask(checks.check_of(sent))
    until(lambda: checks.answers(AskedRecord), "the count")
    assert checks.answers(DecideRecord) == []


def test_a_check_that_was_written_twice_is_made_once(checks: Checks) -> None:
    """A resolver repeats a check that is not counted; a call counts those that were written before it."""
    listener = Answers(UNKNOWN)
    (sent,) = undecided(checks.producer(listener))
    check = checks.check_of(sent)
    checks.ask(check)
    until(lambda: listener.asked(), "the first call")
    checks.ask(check, partition=1)
    checks.ask(check, partition=0)
    checks.ask(check._replace(ask_no=2))
    until(lambda: 2 in listener.asked(), "the next check")
    assert listener.asked() == [1, 2]
    checks.ask(check._replace(ask_no=2, asked_ms=round(time.time() * 1000) + 60_000))
    until(lambda: listener.asked() == [1, 2, 2], "a check that was repeated after its call")


def test_a_late_check_of_a_decided_half_is_not_made(checks: Checks) -> None:
    """As for a listener that starts when the checks of an hour wait."""
    listener = Answers(UNKNOWN)
    producer = checks.producer(listener)
    decided, other, prepared = undecided(producer, 3)
    late = round(time.time() * 1000) - 60_000
    producer.commit(decided)
    checks.ask(*(checks.check_of(each, asked_ms=late) for each in (decided, prepared)))
    checks.ask(
        checks.check_of(other, asked_ms=late, half_offset=10**6), checks.check_of(prepared, asked_ms=late)
    )
    until(lambda: listener.asked(prepared), "the check of the undecided half")
    checks.ask(checks.check_of(prepared, number=2))
    until(lambda: listener.asked(prepared) == [1, 2], "the next check")
    assert listener.asked() == [1, 2]


def test_checks_of_other_groups_and_damaged_ones_are_left_out(checks: Checks) -> None:
    listener = Answers(COMMIT)
    one, two = undecided(checks.producer(listener), 2)
    damaged = HalfBatch("orders", 0, b"no batch")
    checks.asks.send(CHECK_TOPIC, b"foreign", b"bytes", partition=0).result(SECONDS)
    checks.ask(
        checks.check_of(one, producer_group="other"),
        checks.check_of(one, batches=(damaged,)),
        checks.check_of(two),
    )
    until(lambda: checks.answers(DecideRecord), "the answer")
    assert {each.transaction_id for each in listener.checks} == {two}


class Slow(Answers):
    """Answers when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_end = Event()
        self.check = self._wait

    def _wait(self, _: Any) -> Any:
        assert self.may_end.wait(SECONDS / 2)
        return COMMIT


def test_more_checks_than_may_wait_are_left_out(
    checks: Checks, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(check_listener, "_MOST_WAITING", 2)
    listener = Slow()
    ids = undecided(checks.producer(listener, threads=1), 5)
    checks.ask(checks.check_of(ids[0]))
    until(lambda: listener.asked(), "the first call")
    checks.ask(*(checks.check_of(each) for each in ids[1:]))
    until(lambda: caplog.text.count("is left out until it is repeated") == 2, "two checks are left out")
    listener.may_end.set()
    until(lambda: len(checks.answers(DecideRecord)) == 3, "three answers")
    assert len(listener.asked()) == 3


def test_checks_that_wait_go_to_the_process_that_gets_their_partition(checks: Checks) -> None:
    slow, quick = Slow(), Answers(COMMIT)
    ids = undecided(checks.producer(slow, threads=1), 8)
    checks.ask(checks.check_of(ids[0]))
    until(lambda: slow.asked(), "the first call")
    for partition, each in enumerate(ids):
        checks.ask(checks.check_of(each), partition=partition)
    checks.producer(quick)
    until(lambda: quick.asked(), "the other process is asked", SECONDS / 4)
    slow.may_end.set()
    until(lambda: len(checks.answers(DecideRecord)) == 8, "all answers")
    for each in ids:
        assert slow.asked(each) + quick.asked(each) == [1]


def test_a_listener_ends_while_checks_wait(checks: Checks) -> None:
    """They are not answered by it, and come again."""
    slow = Slow()
    producer = checks.producer(slow, threads=1)
    ids = undecided(producer, 3)
    checks.ask(checks.check_of(ids[0]))
    until(lambda: slow.asked(), "the first call")
    checks.ask(*(checks.check_of(each) for each in ids[1:]))
    slow.may_end.set()
    producer.shutdown()
    quick = Answers(COMMIT)
    checks.producer(quick)
    until(lambda: len(checks.answers(DecideRecord)) == 3, "all answers")
    for each in ids:
        assert slow.asked(each) + quick.asked(each) == [1]

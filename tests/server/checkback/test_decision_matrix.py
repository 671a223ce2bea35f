"""Failures around the local transaction, by the numbers of the failure matrix: an order is in the database
if, and only if, exactly one record about it is visible.

The rows without a database are in other files.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

from tests.conftest import LONG
from tests.server.answer_eater import AnswerEater
from tests.server.checkback.dying_service import PLACES, OrderListener
from tests.server.checkback.order_database import OrderDatabase
from tests.server.checkback.shop import COMMIT, ROLLBACK, UNKNOWN, Answers, Shop, opened, until
from txnkafka.checkback import Message, MessageExt, TransactionMQProducer
from txnkafka.testing.settings import SETTINGS

KILLS = int(os.environ.get("TXNKAFKA_KILLS", "40" if LONG else "4"))
INTEGRITY_ERRORS = (sqlite3.IntegrityError, psycopg.IntegrityError, pymysql.IntegrityError)


@pytest.fixture(
    params=["sqlite", *(pytest.param(each, marks=pytest.mark.slow) for each in ("postgresql", "mariadb"))]
)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> OrderDatabase:
    if request.param == "sqlite":
        made = OrderDatabase("sqlite", database=str(tmp_path / "service.db"))
    else:
        made = OrderDatabase(request.param, **request.getfixturevalue(request.param).options)
    made.create()
    return made


@pytest.fixture
def shop() -> Iterator[Shop]:
    """A shop whose groups soon remove a member that was killed."""
    names = ("min.session.timeout", "session.timeout", "min.heartbeat.interval", "heartbeat.interval")
    times = zip(names, (3_000, 3_000, 200, 200), strict=True)
    settings = {**SETTINGS, **{f"group.consumer.{name}.ms": ms for name, ms in times}}
    with opened("socket", settings, transaction_check_max=1000) as made:
        yield made


def started(shop: Shop, database: OrderDatabase, run: str, *place: str) -> subprocess.Popen[str]:
    """Start the service, with a place to die or without."""
    program = [sys.executable, "-m", "tests.server.checkback.dying_service", str(shop.place), str(database)]
    return subprocess.Popen([*program, run, *place], stdout=subprocess.PIPE, text=True)


def other_instance(shop: Shop, database: OrderDatabase) -> TransactionMQProducer:
    """A producer of the same group in this process, whose listener answers the checks."""
    return shop.producer(listener=OrderListener(database, None))


def settled(shop: Shop, database: OrderDatabase) -> list[str]:
    """Wait until no half is undecided, compare, and return the orders."""
    until(lambda: not shop.admin.list_half_messages(), "no half is left")
    orders = database.orders()
    assert sorted(value.decode() for value in shop.values()) == orders
    assert len(set(orders)) == len(orders)
    return orders


def test_rows_03_04_06_service_dies(shop: Shop, database: OrderDatabase) -> None:
    """Three processes die: before the database transaction (row 3), in it (row 4), and between its commit and
    the decision (row 6). Another instance of the group settles their halves."""
    services = [started(shop, database, run, place) for run, place in zip("346", PLACES, strict=True)]
    for service in services:
        with service:
            assert service.wait(60) == -signal.SIGKILL
    assert shop.values() == []
    other_instance(shop, database)
    assert settled(shop, database) == ["6-0"]
    states = [database.decisions.check(each) for each in ("3-0", "4-0", "6-0")]
    assert states == [ROLLBACK, ROLLBACK, COMMIT]


def test_row_05_reply_of_the_commit_is_lost(shop: Shop, database: OrderDatabase) -> None:
    """The database has committed, and its driver raises an error: the check finds the row."""

    def execute(message: MessageExt) -> None:
        assert message.transaction_id is not None
        connection = database.connect()
        database.insert(connection, message.transaction_id)
        connection.commit()
        connection.close()
        raise ConnectionResetError("server closed the connection unexpectedly")

    producer, _ = shop.answering(lambda message: database.decisions.check(message.transaction_id))
    result = producer.send_message_in_transaction(Message("orders", "a", transaction_id="a"), execute)
    assert result.local_transaction_state is UNKNOWN
    assert settled(shop, database) == ["a"]


@pytest.mark.parametrize(
    ("committed", "orders"),
    [
        pytest.param(False, [], id="line 53, raised before the commit"),
        pytest.param(True, ["a"], id="line 54, reply of the commit lost"),
    ],
)
def test_with_block_ends_with_an_error(
    shop: Shop, database: OrderDatabase, committed: bool, orders: list[str]
) -> None:
    producer = shop.producer(decisions=database.decisions)
    connection = database.connect()

    def send() -> None:
        with producer.half("orders", "a", transaction_id="a") as half:
            half.record(connection)
            connection.cursor().execute("INSERT INTO orders VALUES ('a')")
            if committed:
                connection.commit()
            else:
                connection.rollback()
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        send()
    connection.close()
    assert settled(shop, database) == orders


def test_row_07_reply_of_the_decision_is_lost(shop: Shop, database: OrderDatabase) -> None:
    with AnswerEater(str(shop.place)) as eater:

        def execute(message: MessageExt) -> Any:
            connection = database.connect()
            database.insert(connection, str(message.transaction_id))
            connection.commit()
            connection.close()
            eater.arm()
            return COMMIT

        listener = Answers(lambda message: database.decisions.check(message.transaction_id))
        with TransactionMQProducer("shop", eater.address, transaction_listener=listener) as producer:
            producer.send_message_in_transaction(Message("orders", "a", transaction_id="a"), execute)
            assert eater.eaten.wait(60)
            eater.let_pass()
            producer.commit("a")  # the retry of the service itself is right, too
            assert settled(shop, database) == ["a"]


def test_row_08_check_during_a_slow_local_transaction(shop: Shop, database: OrderDatabase) -> None:
    """The row is locked, so the answer is UNKNOWN, until the commit wins."""
    answers: list[Any] = []

    def check(message: MessageExt) -> Any:
        answers.append(database.decisions.check(str(message.transaction_id)))
        return answers[-1]

    def execute(message: MessageExt) -> Any:
        connection = database.connect()
        database.insert(connection, str(message.transaction_id))
        until(lambda: len(answers) >= 2, "two checks during the transaction")
        connection.commit()
        connection.close()
        return COMMIT

    producer, _ = shop.answering(check)
    result = producer.send_message_in_transaction(Message("orders", "a", transaction_id="a"), execute)
    assert result.local_transaction_state is COMMIT
    assert set(answers[:2]) == {UNKNOWN}
    assert settled(shop, database) == ["a"]


def test_row_09_fenced_local_transaction_cannot_commit(shop: Shop, database: OrderDatabase) -> None:
    """The check comes first, and the database refuses a later commit."""

    def execute(message: MessageExt) -> Any:
        until(lambda: shop.state_of("a") is None, "a check has rolled the half back")
        connection = database.connect()
        try:
            connection.cursor().execute("INSERT INTO orders VALUES ('a')")
            database.decisions.record(connection, "a")
            connection.commit()
        finally:
            connection.close()
        return COMMIT

    producer, _ = shop.answering(lambda message: database.decisions.check(str(message.transaction_id)))
    result = producer.send_message_in_transaction(Message("orders", "a", transaction_id="a"), execute)
    assert isinstance(result.local_exception, INTEGRITY_ERRORS)
    assert settled(shop, database) == []
    assert producer.wait_until_done("a") is ROLLBACK


def test_row_17_two_instances_send_the_same_id(shop: Shop, database: OrderDatabase) -> None:
    """One half, and the unique key lets one of the database transactions commit."""
    both = threading.Barrier(2)
    errors: list[BaseException | None] = []

    def execute(message: MessageExt) -> Any:
        both.wait(60)
        connection = database.connect()
        try:
            database.insert(connection, str(message.transaction_id))
            connection.commit()
        finally:
            connection.close()
        return COMMIT

    def send(producer: TransactionMQProducer) -> None:
        message = Message("orders", "a", transaction_id="a")
        errors.append(producer.send_message_in_transaction(message, execute).local_exception)

    producers = [
        shop.answering(lambda message: database.decisions.check(str(message.transaction_id)))[0]
        for _ in range(2)
    ]
    threads = [threading.Thread(target=send, args=(producer,)) for producer in producers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(error is None for error in errors) == [False, True]
    assert any(isinstance(error, INTEGRITY_ERRORS) for error in errors)
    assert settled(shop, database) == ["a"]


def test_row_29_purge_keeps_what_a_check_may_need(database: OrderDatabase) -> None:
    """A half that is parked can be resumed, and its row is the only proof of the commit."""
    with opened("socket", transaction_check_max=1) as shop:
        producer, _ = shop.answering(UNKNOWN)

        def execute(message: MessageExt) -> Any:
            connection = database.connect()
            database.insert(connection, str(message.transaction_id))
            connection.commit()
            connection.close()
            return COMMIT if message.transaction_id == "done" else UNKNOWN

        for transaction_id in ("done", "parked"):
            message = Message("orders", transaction_id, transaction_id=transaction_id)
            producer.send_message_in_transaction(message, execute)
        until(lambda: shop.state_of("parked") == "parked", "parked")
        assert producer.wait_until_done("done") is COMMIT

        def undecided() -> list[str]:
            return [half.transaction_id for half in shop.admin.list_half_messages()]

        assert database.decisions.purge(datetime.now(UTC), undecided=undecided) == 1
        producer.shutdown()
        other_instance(shop, database)
        shop.admin.resume_check_half_message("parked")
        assert settled(shop, database) == ["done", "parked"]


def test_service_killed_at_random_places(shop: Shop, database: OrderDatabase) -> None:
    """TXNKAFKA_KILLS times, while another instance settles the halves that are left."""
    seed = random.SystemRandom().randrange(1 << 32) if LONG else 35
    rng = random.Random(seed)
    print("TXNKAFKA_SEED", seed)
    other_instance(shop, database)
    sent = 0
    for run in range(KILLS):
        with started(shop, database, str(run)) as service:
            assert service.stdout is not None
            for _ in range(rng.randrange(1, 8)):
                assert service.stdout.readline(), "the service has ended"
            time.sleep(rng.random() * 0.05)
            service.kill()
            sent += len(service.stdout.read().splitlines())
    orders = settled(shop, database)
    assert orders, "no order was committed"
    states = {each: database.decisions.check(each) for each in orders}
    assert set(states.values()) == {COMMIT}

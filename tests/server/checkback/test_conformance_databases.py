"""Conformance of check-back messages: halves around database transactions; see ``test_conformance.py``."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.server.checkback.shop import (
    COMMIT,
    ROLLBACK,
    UNKNOWN,
    Shop,
    message,
    rules,
    until,
)
from txnkafka.checkback import (
    DecisionTable,
    Half,
    TransactionMQProducer,
)

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

"""The examples of docs/decision-table.md run, and print what the page shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.pages import ROOT, examples
from tests.server.checkback.database_servers import DatabaseServer
from txnkafka import Broker
from txnkafka.checkback.decisions.connections import DRIVERS
from txnkafka.testing.settings import SETTINGS

PAGE = "docs/decision-table.md"
TWO_PHASE = {"transaction.two.phase.commit.enable": True, "unstable.api.versions.enable": True}
FIRST, PREPARED, OFFSETS = examples(PAGE)


@pytest.mark.parametrize("example", [FIRST, OFFSETS], ids=["decision table", "offsets"])
def test_example(example: Any) -> None:
    assert example.run({}) == example.printed != ""


def test_drivers() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert [name for name in DRIVERS if not re.search(rf"\b{name}\b", text)] == []


class Crash(BaseException):
    """The end of the process."""


class CrashingDatabase:
    """A connection that crashes before or after a statement, which ``place`` names."""

    def __init__(self, db: Any, place: str) -> None:
        self.__dict__.update(_db=db, _place=place)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._db, name, value)

    def execute(self, statement: str, *parameters: Any) -> Any:
        when, _, word = self._place.partition(" ")
        if statement.startswith(word) and when == "before":
            raise Crash
        result = self._db.execute(statement, *parameters)
        if statement.startswith(word) and when == "after":
            raise Crash
        return result


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.in_memory(**SETTINGS, **TWO_PHASE) as made:
        made.admin().create_topic("orders", partitions=1)
        yield made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "committed"),
    [
        ("before INSERT", False),
        ("before PREPARE", False),
        ("after PREPARE", True),
        ("before COMMIT", True),
        ("after COMMIT", True),
    ],
)
def test_prepared_transaction(
    broker: Broker, postgresql: DatabaseServer, place: str, committed: bool
) -> None:
    names: dict[str, Any] = {}
    PREPARED.run(names)
    with postgresql.connect(autocommit=True) as db:
        db.execute("CREATE TABLE orders (name TEXT)")

    def process(names_of_orders: list[str], place: str = "never") -> None:
        producer = broker.producer(transactional_id="shop", transaction_two_phase_commit_enable=True)
        db = postgresql.connect()
        try:
            names["recover"](producer, db)
            for name in names_of_orders[:-1]:
                names["order"](producer, db, name)
            names["order"](producer, CrashingDatabase(db, place), names_of_orders[-1])
        finally:
            db.close()
            producer.close()  # which leaves a prepared transaction open

    process(["a book"])
    with pytest.raises(Crash):
        process(["a lamp", "a pen"], place)
    process(["a chair"])
    expected = ["a book", "a lamp", *(["a pen"] if committed else []), "a chair"]
    with broker.consumer("orders", consumer_timeout_ms=500) as consumer:
        assert [record.value.decode() for record in consumer] == expected
    with postgresql.connect() as db:
        assert [name for (name,) in db.execute("SELECT name FROM orders").fetchall()] == expected
        assert db.execute("SELECT gid FROM pg_prepared_xacts").fetchall() == []

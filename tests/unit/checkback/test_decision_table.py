"""The traps of SQLite, and arguments that the decision table refuses."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine

from txnkafka.checkback.decision_table import AsyncDecisionTable, DecisionTable
from txnkafka.checkback.message import LocalTransactionState
from txnkafka.errors import IllegalStateError

COMMIT, ROLLBACK, UNKNOWN = (
    LocalTransactionState.COMMIT_MESSAGE,
    LocalTransactionState.ROLLBACK_MESSAGE,
    LocalTransactionState.UNKNOWN,
)
Connect = Callable[..., sqlite3.Connection]


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Connect]:
    opened: list[sqlite3.Connection] = []

    def new(**options: Any) -> sqlite3.Connection:
        opened.append(sqlite3.connect(tmp_path / "db", check_same_thread=False, **options))
        return opened[-1]

    yield new
    for connection in opened:
        connection.close()


@pytest.fixture
def decisions(connect: Connect) -> DecisionTable:
    table = DecisionTable(connect, lock_timeout_ms=50)
    table.create()
    connect().execute("CREATE TABLE orders (id TEXT)")
    return table


def test_any_writer_makes_a_check_answer_unknown(decisions: DecisionTable, connect: Connect) -> None:
    """SQLite locks the whole file, so an open transaction hides the answers for all ids."""
    decisions.check("fenced")
    other = connect()
    other.execute("INSERT INTO orders VALUES ('of another service')")
    assert decisions.check("a") is UNKNOWN
    assert decisions.check("fenced") is UNKNOWN
    other.commit()
    assert decisions.check("a") is ROLLBACK


def test_check_waits_for_the_lock_timeout(connect: Connect) -> None:
    """A transaction that ends within the timeout gives the final answer."""
    patient = DecisionTable(connect, lock_timeout_ms=60_000)
    patient.create()
    other = connect()
    patient.record(other, "a")
    answers: list[LocalTransactionState] = []
    thread = threading.Thread(target=lambda: answers.append(patient.check("a")))
    thread.start()
    thread.join(0.2)
    assert answers == []
    other.commit()
    thread.join(60)
    assert answers == [COMMIT]


def test_check_restores_the_busy_timeout_of_a_shared_connection(connect: Connect) -> None:
    shared = connect()
    shared.execute("PRAGMA busy_timeout = 1234")
    table = DecisionTable(shared, lock_timeout_ms=50)
    table.create()
    for _ in range(2):
        assert table.check("a") is ROLLBACK
        assert shared.execute("PRAGMA busy_timeout").fetchone() == (1234,)
    with pytest.raises(sqlite3.OperationalError):
        DecisionTable(shared, "missing", lock_timeout_ms=50).check("a")
    assert shared.execute("PRAGMA busy_timeout").fetchone() == (1234,)


def test_stale_read_makes_record_fail_and_roll_back(decisions: DecisionTable, connect: Connect) -> None:
    """A transaction that began with a read cannot write after another has written (write-ahead log)."""
    connect().execute("PRAGMA journal_mode = WAL")
    local = connect(isolation_level=None)
    local.execute("BEGIN")
    local.execute("SELECT * FROM orders").fetchall()
    connect(isolation_level=None).execute("INSERT INTO orders VALUES ('other')")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        decisions.record(local, "a")
    assert not local.in_transaction
    assert decisions.check("a") is ROLLBACK


def test_failed_record_takes_earlier_writes_with_it(decisions: DecisionTable, connect: Connect) -> None:
    assert decisions.check("a") is ROLLBACK
    local = connect()
    local.execute("INSERT INTO orders VALUES ('a')")
    with pytest.raises(sqlite3.IntegrityError):
        decisions.record(local, "a")
    local.execute("INSERT INTO orders VALUES ('a careless caller goes on')")
    local.commit()
    assert connect().execute("SELECT id FROM orders").fetchall() == [("a careless caller goes on",)]


def test_connection_in_a_transaction_is_no_place_for_a_check(connect: Connect) -> None:
    shared = connect()
    table = DecisionTable(shared)
    table.create()
    table.record(shared, "a")
    with pytest.raises(IllegalStateError, match="that nothing else uses"):
        table.check("a")
    shared.rollback()
    assert table.check("a") is ROLLBACK


def test_shared_connection_serves_threads_in_turn(connect: Connect) -> None:
    table = DecisionTable(connect())
    table.create()
    answers: list[LocalTransactionState] = []
    threads = [
        threading.Thread(target=lambda number=number: answers.append(table.check(str(number % 4))))
        for number in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [ROLLBACK] * 16


def test_savepoint_is_refused(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/db")
    table = DecisionTable(engine)
    table.create()
    with engine.begin() as db:
        db.execute(text("CREATE TABLE orders (id TEXT)"))
        with db.begin_nested(), pytest.raises(IllegalStateError, match="SAVEPOINT"):
            table.record(db, "a")
        table.record(db, "a")
    assert table.check("a") is COMMIT
    engine.dispose()


def test_error_in_the_block_of_an_engine_is_the_error_of_record(tmp_path: Path) -> None:
    """The rollback of ``record`` does not replace its error by one of SQLAlchemy."""
    engine = create_engine(f"sqlite:///{tmp_path}/db")
    table = DecisionTable(engine)
    table.create()
    table.check("a")
    with pytest.raises(Exception, match="UNIQUE constraint failed") as raised, engine.begin() as db:
        table.record(db, "a")
    assert "decided before" in raised.value.__notes__[0]
    engine.dispose()


def test_connection_from_a_pool_goes_back_to_it(connect: Connect) -> None:
    """A function may return a context manager, as pools do, and an error leaves no transaction open."""
    only = connect()
    uses: list[str] = []

    class Lease:
        def __enter__(self) -> sqlite3.Connection:
            uses.append("taken")
            return only

        def __exit__(self, *error: object) -> None:
            uses.append("returned")

    table = DecisionTable(Lease)
    table.create()
    assert table.check("a") is ROLLBACK
    with pytest.raises(sqlite3.OperationalError):
        DecisionTable(Lease, "missing").check("a")
    assert uses == ["taken", "returned"] * 3
    assert not only.in_transaction


@pytest.mark.parametrize(
    "name", ["", "a b", 'a"b', "a;DROP TABLE orders", "a.b.c", "1a", "a`b", "a-b", ".a", "a.", "x" * 64, "ä"]
)
def test_unusable_table_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a decision table"):
        DecisionTable(sqlite3.connect, name)


@pytest.mark.parametrize("name", ["order", "Txn_2", "main.select", "x" * 63])
def test_table_names_are_quoted(connect: Connect, name: str) -> None:
    table = DecisionTable(connect, name)
    table.create()
    local = connect()
    table.record(local, "a")
    local.commit()
    assert (table.check("a"), table.check("b")) == (COMMIT, ROLLBACK)


def test_wrong_arguments_are_refused(connect: Connect, tmp_path: Path) -> None:
    async_engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/db")
    with pytest.raises(TypeError, match="use AsyncDecisionTable"):
        DecisionTable(async_engine)
    with pytest.raises(TypeError, match="use AsyncDecisionTable"):
        DecisionTable(connect).record(async_engine.connect(), "a")
    with pytest.raises(TypeError, match="function that opens a connection"):
        AsyncDecisionTable(connect())
    with pytest.raises(TypeError, match="str is not a database"):
        DecisionTable("sqlite:///db")
    with pytest.raises(TypeError, match="is not a connection of a decision table"):
        DecisionTable(connect).record(create_engine("sqlite://"), "a")
    with pytest.raises(TypeError, match=r"builtins.object is not a connection of a decision table"):
        DecisionTable(connect).record(object(), "a")
    with pytest.raises(TypeError, match="asyncio"):
        DecisionTable(_coroutine).check("a")
    with pytest.raises(ValueError, match="lock_timeout_ms"):
        DecisionTable(connect, lock_timeout_ms=0)


async def _coroutine() -> Any:
    import asyncio

    await asyncio.sleep(0)


@pytest.mark.process
def test_no_driver_is_imported_but_the_one_in_use() -> None:
    program = (
        "import sqlite3, sys\n"
        "from txnkafka.checkback import DecisionTable\n"
        "table = DecisionTable(lambda: sqlite3.connect('file::memory:?cache=shared', uri=True))\n"
        "keep = sqlite3.connect('file::memory:?cache=shared', uri=True)\n"
        "table.create(); print(table.check('a').name)\n"
        "drivers = {'sqlalchemy', 'psycopg', 'pymysql', 'aiosqlite', 'asyncmy', 'asyncio'}\n"
        "print(sorted(drivers & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("ROLLBACK_MESSAGE\n[]\n", "")

"""The traps of PostgreSQL and MariaDB that concern a decision table."""

from __future__ import annotations

from functools import partial

import psycopg
import pymysql
import pytest
from sqlalchemy import create_engine, text

from tests.server.checkback.database_servers import DatabaseServer
from txnkafka.checkback import DecisionTable, LocalTransactionState

pytestmark = pytest.mark.slow
COMMIT, ROLLBACK, UNKNOWN = (
    LocalTransactionState.COMMIT_MESSAGE,
    LocalTransactionState.ROLLBACK_MESSAGE,
    LocalTransactionState.UNKNOWN,
)


def made(server: DatabaseServer, **options: object) -> DecisionTable:
    """A decision table, beside a table of orders."""
    decisions = DecisionTable(partial(server.connect, **options), lock_timeout_ms=100)
    DecisionTable(server.connect).create()
    execute(server, "CREATE TABLE orders (id VARCHAR(40) PRIMARY KEY)")
    return decisions


def execute(server: DatabaseServer, statement: str) -> list[object]:
    """Run one statement on a new connection, and return the first column."""
    connection = server.connect(autocommit=True)
    with connection.cursor() as cursor:
        cursor.execute(statement)
        rows = [row[0] for row in cursor.fetchall()] if cursor.description else []
    connection.close()
    return rows


# PostgreSQL


def test_postgresql_lock_timeout_ends_with_the_transaction(postgresql: DatabaseServer) -> None:
    shared = postgresql.connect()
    shared.execute("SET lock_timeout = 4321")
    shared.commit()
    made(postgresql)
    decisions = DecisionTable(shared, lock_timeout_ms=100)
    local = postgresql.connect()
    decisions.record(local, "locked")
    assert [decisions.check(each) for each in ("locked", "a", "a")] == [UNKNOWN, ROLLBACK, ROLLBACK]
    row = shared.execute("SHOW lock_timeout").fetchone()
    assert row == ("4321ms",)
    local.close()
    shared.close()


def test_postgresql_aborted_transaction_records_nothing(postgresql: DatabaseServer) -> None:
    decisions = made(postgresql)
    with postgresql.connect() as local:
        local.execute("INSERT INTO orders VALUES ('a')")
        with pytest.raises(psycopg.errors.UndefinedTable):
            local.execute("SELECT * FROM missing")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            decisions.record(local, "a")
        local.commit()  # which PostgreSQL takes as a rollback
    assert execute(postgresql, "SELECT id FROM orders") == []
    assert decisions.check("a") is ROLLBACK


@pytest.mark.parametrize("level", ["read\\ committed", "repeatable\\ read", "serializable"])
def test_postgresql_answers_at_each_isolation_level(postgresql: DatabaseServer, level: str) -> None:
    decisions = made(postgresql, options=f"-c default_transaction_isolation={level}")
    with postgresql.connect() as local:
        decisions.record(local, "a")
        assert decisions.check("a") is UNKNOWN
    assert [decisions.check(each) for each in ("a", "b", "a", "b")] == [COMMIT, ROLLBACK] * 2


def test_postgresql_statement_timeout_is_unknown(postgresql: DatabaseServer) -> None:
    made(postgresql)
    connect = partial(postgresql.connect, options="-c statement_timeout=50")
    decisions = DecisionTable(connect, lock_timeout_ms=60_000)
    with postgresql.connect() as local:
        decisions.record(local, "a")
        assert decisions.check("a") is UNKNOWN
    assert decisions.check("a") is COMMIT


def test_postgresql_read_only_server_gives_no_answer(postgresql: DatabaseServer) -> None:
    """As a replica, which may lack the newest commits: it refuses the fence, also for a committed id."""
    decisions = made(postgresql, options="-c default_transaction_read_only=on")
    with postgresql.connect() as local:
        decisions.record(local, "a")
    for transaction_id in ("a", "b"):
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            decisions.check(transaction_id)


def test_postgresql_prepared_transaction_is_unknown(postgresql: DatabaseServer) -> None:
    decisions = made(postgresql)
    with postgresql.connect() as local:
        local.execute("INSERT INTO orders VALUES ('a')")
        decisions.record(local, "a")
        local.execute("PREPARE TRANSACTION 'a'")
    assert decisions.check("a") is UNKNOWN
    execute(postgresql, "COMMIT PREPARED 'a'")
    assert decisions.check("a") is COMMIT


def test_postgresql_table_in_a_schema(postgresql: DatabaseServer) -> None:
    execute(postgresql, "CREATE SCHEMA IF NOT EXISTS app")
    decisions = DecisionTable(postgresql.connect, "app.Decision")
    decisions.create()
    with postgresql.connect() as local:
        decisions.record(local, "a")
    assert execute(postgresql, 'SELECT outcome FROM app."Decision"') == ["commit"]
    execute(postgresql, "DROP SCHEMA app CASCADE")


def test_postgresql_engine_in_autocommit_still_fences(postgresql: DatabaseServer) -> None:
    url = f"postgresql+psycopg://postgres@127.0.0.1:{postgresql.options['port']}/postgres"
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    decisions = DecisionTable(engine, lock_timeout_ms=100)
    decisions.create()
    with postgresql.connect() as local:
        decisions.record(local, "a")
        assert decisions.check("a") is UNKNOWN
    with engine.connect() as db:
        assert db.execute(text("SHOW lock_timeout")).scalar() == "0"
    assert decisions.check("a") is COMMIT
    engine.dispose()


# MariaDB


def test_mariadb_lock_timeout_is_restored(mariadb: DatabaseServer) -> None:
    made(mariadb)
    shared = mariadb.connect(init_command="SET SESSION innodb_lock_wait_timeout = 43")
    decisions = DecisionTable(shared, lock_timeout_ms=100)
    local = mariadb.connect()
    decisions.record(local, "locked")
    assert [decisions.check(each) for each in ("locked", "a", "a")] == [UNKNOWN, ROLLBACK, ROLLBACK]
    with shared.cursor() as cursor:
        cursor.execute("SELECT @@SESSION.innodb_lock_wait_timeout")
        assert cursor.fetchone() == (43,)
    local.close()
    shared.close()


def test_mariadb_lock_timeout_in_record_rolls_everything_back(mariadb: DatabaseServer) -> None:
    """InnoDB would undo only the statement, and a caller that goes on would commit the rest."""
    decisions = made(mariadb)
    holder, local = mariadb.connect(), mariadb.connect(init_command="SET innodb_lock_wait_timeout = 1")
    decisions.record(holder, "a")
    with local.cursor() as cursor:
        cursor.execute("INSERT INTO orders VALUES ('a')")
    with pytest.raises(pymysql.err.OperationalError, match="Lock wait timeout"):
        decisions.record(local, "a")
    local.commit()
    holder.close()
    local.close()
    assert execute(mariadb, "SELECT id FROM orders") == []
    assert decisions.check("a") is ROLLBACK


@pytest.mark.parametrize("mode", ["", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES", "STRICT_ALL_TABLES"])
def test_mariadb_sql_modes(mariadb: DatabaseServer, mode: str) -> None:
    decisions = made(mariadb, init_command=f"SET sql_mode = '{mode}'")
    local = mariadb.connect()
    decisions.record(local, "it's")
    assert decisions.check("it's") is UNKNOWN
    local.commit()
    local.close()
    assert [decisions.check(each) for each in ("it's", "\\", "a")] == [COMMIT, ROLLBACK, ROLLBACK]


@pytest.mark.parametrize("level", ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_mariadb_answers_at_each_isolation_level(mariadb: DatabaseServer, level: str) -> None:
    decisions = made(mariadb, init_command=f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
    local = mariadb.connect()
    decisions.record(local, "a")
    assert decisions.check("a") is UNKNOWN
    local.commit()
    local.close()
    assert [decisions.check(each) for each in ("a", "b", "a", "b")] == [COMMIT, ROLLBACK] * 2


def test_mariadb_table_without_transactions_is_refused(mariadb: DatabaseServer) -> None:
    decisions = made(mariadb)
    execute(mariadb, "ALTER TABLE txn_decision ENGINE = MyISAM")
    with pytest.raises(ValueError, match=r"txn_decision has the engine .*MyISAM.*: change it to InnoDB"):
        decisions.create()


def test_mariadb_read_only_server_gives_no_answer(mariadb: DatabaseServer) -> None:
    decisions = made(mariadb, init_command="SET SESSION TRANSACTION READ ONLY")
    local = mariadb.connect()
    decisions.record(local, "a")
    local.commit()
    local.close()
    for transaction_id in ("a", "b"):
        with pytest.raises(pymysql.err.Error, match="READ ONLY"):
            decisions.check(transaction_id)


def test_server_that_ended_gives_no_answer(mariadb: DatabaseServer, postgresql: DatabaseServer) -> None:
    """An error, not ROLLBACK; and a commit is still known after the server was killed."""
    for server in (mariadb, postgresql):
        decisions = made(server)
        local = server.connect()
        decisions.record(local, "a")
        local.commit()
        local.close()
        server.kill()
        with pytest.raises((psycopg.OperationalError, pymysql.err.OperationalError)):
            decisions.check("a")
        server.start()
        assert [decisions.check(each) for each in ("a", "b")] == [COMMIT, ROLLBACK]

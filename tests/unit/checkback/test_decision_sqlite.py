"""The decision table in SQLite files, by each way to connect to them."""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from sqlalchemy import create_engine, event
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tests.unit.checkback.decision_contract import DecisionContract, Service


def driver(path: Path) -> Service:
    return Service(
        lambda: sqlite3.connect(path),
        lambda: sqlite3.connect(path),
        autocommit=lambda: sqlite3.connect(path, isolation_level=None),
    )


def immediate(path: Path) -> Service:
    """Transactions by statements, as the documentation of SQLite has them."""

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(path, isolation_level=None)

    return Service(connect, connect, first="BEGIN IMMEDIATE", autocommit=connect)


def write_ahead_log(path: Path) -> Service:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    return driver(path)


def one_connection(path: Path) -> Service:
    connection = sqlite3.connect(path, check_same_thread=False)
    autocommit = partial(sqlite3.connect, path, isolation_level=None)
    return Service(connection, lambda: sqlite3.connect(path), autocommit=autocommit, close=connection.close)


def engine(path: Path) -> Service:
    made = create_engine(f"sqlite:///{path}", connect_args={"timeout": 5})
    return Service(
        made,
        made.connect,
        autocommit=made.execution_options(isolation_level="AUTOCOMMIT").connect,
        close=made.dispose,
    )


def session(path: Path) -> Service:
    made = create_engine(f"sqlite:///{path}")
    autocommit = made.execution_options(isolation_level="AUTOCOMMIT")
    return Service(made, partial(Session, made), autocommit=partial(Session, autocommit), close=made.dispose)


def engine_with_events(path: Path) -> Service:
    """SQLAlchemy's own advice for SQLite: the driver's transactions are off, an event emits BEGIN."""
    made = create_engine(f"sqlite:///{path}")

    @event.listens_for(made, "connect")
    def without_transactions(connection: Any, _: object) -> None:
        connection.isolation_level = None

    @event.listens_for(made, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN")

    bare = create_engine(f"sqlite:///{path}", isolation_level="AUTOCOMMIT")

    def close() -> None:
        made.dispose()
        bare.dispose()

    return Service(made, made.connect, autocommit=bare.connect, close=close)


def asynchronous(path: Path) -> Service:
    connect = partial(aiosqlite.connect, path)
    return Service(connect, connect, autocommit=partial(connect, isolation_level=None), asynchronous=True)


def async_engine(path: Path) -> Service:
    made = create_async_engine(f"sqlite+aiosqlite:///{path}")
    autocommit = made.execution_options(isolation_level="AUTOCOMMIT")
    return Service(made, made.connect, autocommit=autocommit.connect, close=made.dispose)


def async_session(path: Path) -> Service:
    made = create_async_engine(f"sqlite+aiosqlite:///{path}")
    autocommit = made.execution_options(isolation_level="AUTOCOMMIT")
    return Service(
        made, partial(AsyncSession, made), autocommit=partial(AsyncSession, autocommit), close=made.dispose
    )


WAYS = [
    driver, immediate, write_ahead_log, one_connection, engine, session, engine_with_events,
    asynchronous, async_engine, async_session,
]  # fmt: skip


class TestDecisionTable(DecisionContract):
    @pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
    def service(self, request: pytest.FixtureRequest, tmp_path: Path) -> Service:
        made: Service = request.param(tmp_path / "service.db")
        return made

"""The decision table in a PostgreSQL and a MariaDB server, by each driver."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import asyncmy
import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tests.conftest import LONG
from tests.server.checkback.database_servers import DatabaseServer
from tests.unit.checkback.decision_contract import DecisionContract, Service

pytestmark = pytest.mark.slow


@pytest.fixture
def service(request: pytest.FixtureRequest) -> Service:
    """A service on an empty database, by the way of the parameter."""
    way: Callable[[DatabaseServer], Service] = request.param
    return way(request.getfixturevalue(way.__name__.split("_")[0]))


def postgresql_driver(server: DatabaseServer) -> Service:
    return Service(server.connect, server.connect, autocommit=partial(server.connect, autocommit=True))


def postgresql_by_statements(server: DatabaseServer) -> Service:
    connect = partial(server.connect, autocommit=True)
    return Service(connect, connect, first="BEGIN", autocommit=connect)


def postgresql_dict_rows(server: DatabaseServer) -> Service:
    table = partial(server.connect, row_factory=psycopg.rows.dict_row)
    return Service(table, server.connect, autocommit=partial(server.connect, autocommit=True))


def postgresql_one_connection(server: DatabaseServer) -> Service:
    connection = server.connect()
    autocommit = partial(server.connect, autocommit=True)
    return Service(connection, server.connect, autocommit=autocommit, close=connection.close)


def postgresql_async(server: DatabaseServer) -> Service:
    def connect(**options: Any) -> Any:
        return psycopg.AsyncConnection.connect(**{**server.options, **options})

    return Service(connect, connect, autocommit=partial(connect, autocommit=True), asynchronous=True)


def postgresql_engine(server: DatabaseServer) -> Service:
    return _engine(server, "postgresql+psycopg")


def postgresql_session(server: DatabaseServer) -> Service:
    return _session(server, "postgresql+psycopg")


def postgresql_async_engine(server: DatabaseServer) -> Service:
    return _async_engine(server, "postgresql+psycopg")


def postgresql_async_session(server: DatabaseServer) -> Service:
    return _async_session(server, "postgresql+psycopg")


def mariadb_driver(server: DatabaseServer) -> Service:
    return Service(server.connect, server.connect, autocommit=partial(server.connect, autocommit=True))


def mariadb_by_statements(server: DatabaseServer) -> Service:
    connect = partial(server.connect, autocommit=True)
    return Service(connect, connect, first="START TRANSACTION", autocommit=connect)


def mariadb_one_connection(server: DatabaseServer) -> Service:
    connection = server.connect()
    autocommit = partial(server.connect, autocommit=True)
    return Service(connection, server.connect, autocommit=autocommit, close=connection.close)


def mariadb_async(server: DatabaseServer) -> Service:
    def connect(**options: Any) -> Any:
        return asyncmy.connect(**{**server.options, **options})

    return Service(connect, connect, autocommit=partial(connect, autocommit=True), asynchronous=True)


def mariadb_engine(server: DatabaseServer) -> Service:
    return _engine(server, "mysql+pymysql")


def mariadb_session(server: DatabaseServer) -> Service:
    return _session(server, "mariadb+pymysql")


def mariadb_async_engine(server: DatabaseServer) -> Service:
    return _async_engine(server, "mysql+asyncmy")


def mariadb_async_session(server: DatabaseServer) -> Service:
    return _async_session(server, "mysql+asyncmy")


WAYS = [value for name, value in list(globals().items()) if name.startswith(("postgresql_", "mariadb_"))]
CHOSEN = WAYS if LONG else WAYS[::4]


@pytest.mark.parametrize("service", CHOSEN, ids=lambda way: way.__name__, indirect=True)
class TestDecisionTable(DecisionContract):
    """The contract, by each driver."""


def _url(server: DatabaseServer, dialect: str) -> str:
    options = server.options
    database = options.get("dbname") or options["database"]
    return f"{dialect}://{options['user']}@{options['host']}:{options['port']}/{database}"


def _engine(server: DatabaseServer, dialect: str) -> Service:
    made = create_engine(_url(server, dialect))
    autocommit = made.execution_options(isolation_level="AUTOCOMMIT").connect
    return Service(made, made.connect, autocommit=autocommit, close=made.dispose)


def _session(server: DatabaseServer, dialect: str) -> Service:
    made = create_engine(_url(server, dialect))
    autocommit = made.execution_options(isolation_level="AUTOCOMMIT")
    return Service(made, partial(Session, made), autocommit=partial(Session, autocommit), close=made.dispose)


def _async_engine(server: DatabaseServer, dialect: str) -> Service:
    made = create_async_engine(_url(server, dialect))
    autocommit = made.execution_options(isolation_level="AUTOCOMMIT").connect
    return Service(made, made.connect, autocommit=autocommit, close=made.dispose)


def _async_session(server: DatabaseServer, dialect: str) -> Service:
    made = create_async_engine(_url(server, dialect))
    autocommit = made.execution_options(isolation_level="AUTOCOMMIT")
    return Service(
        made, partial(AsyncSession, made), autocommit=partial(AsyncSession, autocommit), close=made.dispose
    )

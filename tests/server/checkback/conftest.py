"""Database servers that live as long as the tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.checkback import database_servers
from tests.server.checkback.database_servers import DatabaseServer


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[DatabaseServer]:
    with database_servers.postgresql() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[DatabaseServer]:
    with database_servers.mariadb() as server:
        yield server


@pytest.fixture
def postgresql(postgresql_server: DatabaseServer) -> DatabaseServer:
    """A PostgreSQL server without tables."""
    database_servers.empty(postgresql_server)
    return postgresql_server


@pytest.fixture
def mariadb(mariadb_server: DatabaseServer) -> DatabaseServer:
    """A MariaDB server without tables."""
    database_servers.empty(mariadb_server)
    return mariadb_server

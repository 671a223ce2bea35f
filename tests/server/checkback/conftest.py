"""Database servers that live as long as the tests, and a shop for each test.

Tests with a server that cannot be started here are deselected; the reason is printed at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import LONG
from tests.server.checkback import database_servers
from tests.server.checkback.database_servers import DatabaseServer
from tests.server.checkback.shop import Shop, opened

HERE = Path(__file__).parent
MISSING = database_servers.missing()
LEFT_OUT = dict[str, int]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    own = [item for item in items if HERE in item.path.parents]  # pytest calls this for all tests
    left_out = {item: name for item in own for name in _servers(item) & set(MISSING)}
    for name in left_out.values():
        LEFT_OUT[name] = LEFT_OUT.get(name, 0) + 1
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not LONG:
        terminalreporter.write_line(
            "left out without TXNKAFKA_LONG: in test_decision_servers.py three of four ways to connect"
        )
    for name, number in LEFT_OUT.items():
        terminalreporter.write_line(f"left out: {number} tests with {name}: {MISSING[name]}")


def _servers(item: pytest.Item) -> set[str]:
    """Return the fixtures of a test, and the servers that its parameters name."""
    params = getattr(item, "callspec", None)
    values = params.params.values() if params else ()
    named = {str(getattr(value, "__name__", value)).partition("_")[0] for value in values}
    return named | set(getattr(item, "fixturenames", ()))


@pytest.fixture(params=["embedded", pytest.param("socket", marks=pytest.mark.slow)])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    """Producers over a broker in this process; ``rules`` gives a test other settings of the resolver."""
    with opened(request.param, **getattr(request.function, "rules", {})) as made:
        yield made


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

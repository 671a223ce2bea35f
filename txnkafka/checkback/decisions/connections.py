"""Connections of DB-API drivers and of SQLAlchemy under one small interface.

The methods are coroutines. With a driver that blocks they never wait, so ``run`` ends them in one step; this
way the decision table is written once for both kinds. No driver is imported here: it is found by the module
of the connection's class.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from txnkafka.checkback.decisions.databases import MYSQL, POSTGRESQL, SQLITE, Database
from txnkafka.errors import IllegalStateError

T = TypeVar("T")
Parameters = Sequence[object]

DRIVERS: Final = {
    "sqlite3": SQLITE,
    "aiosqlite": SQLITE,
    "psycopg": POSTGRESQL,
    "pymysql": MYSQL,
    "asyncmy": MYSQL,
}
"""The databases of the drivers, by the module of their connections."""
DIALECTS: Final = {"sqlite": SQLITE, "postgresql": POSTGRESQL, "mysql": MYSQL, "mariadb": MYSQL}
"""The databases of SQLAlchemy, by the name of their dialect."""
_IN_TRANSACTION, _AUTOCOMMIT = 1, 2  # flags of MySQL's server status


class Connection(Protocol):
    """A connection with the statements that a decision table needs."""

    @property
    def database(self) -> Database:
        """The kind of database."""

    async def execute(self, statement: str, parameters: Parameters = ()) -> list[Any]:
        """Run a statement with ``?`` for its parameters, and return the first column of its rows."""

    async def begin(self) -> None:
        """Open a transaction that will write, or continue the one that the driver has opened."""

    async def join(self) -> None:
        """Prepare for a statement in the transaction of the caller. Raise IllegalStateError if the statement
        would be committed at once, or could be undone without the rest of the transaction."""

    async def commit(self) -> None:
        """Commit the transaction."""

    async def undo(self) -> None:
        """Roll the transaction back. Errors are dropped: they are of a connection that has ended."""

    def check_idle(self) -> None:
        """Raise IllegalStateError if a transaction is open."""


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise TypeError("this is a connection, engine or function for asyncio: use AsyncDecisionTable")


async def settled(value: Any) -> Any:
    """Return a value, or the result of an awaitable."""
    return await value if inspect.isawaitable(value) else value


def module_of(value: object) -> str:
    """Return the top module of the first class of a value that is of a known driver, or of SQLAlchemy."""
    modules = (kind.__module__.partition(".")[0] for kind in type(value).__mro__)
    return next((module for module in modules if module in DRIVERS or module == "sqlalchemy"), "")


def is_async(value: object) -> bool:
    """Return whether a connection, session or engine is for asyncio."""
    if module_of(value) in ("aiosqlite", "asyncmy") or hasattr(value, "sync_engine"):
        return True
    return inspect.iscoroutinefunction(getattr(value, "commit", None))


async def connection_of(db: Any) -> Connection:
    """Return the connection of a DB-API driver, or of a SQLAlchemy connection or session."""
    module = module_of(db)
    if module == "sqlalchemy" and hasattr(db, "exec_driver_sql"):
        return AlchemyConnection(db, db)
    if module == "sqlalchemy" and callable(getattr(db, "connection", None)):
        return AlchemyConnection(await settled(db.connection()), db)
    if module in DRIVERS and hasattr(db, "cursor"):
        return DriverConnection(db, module)
    raise TypeError(
        f"{type(db).__module__}.{type(db).__name__} is not a connection of a decision table: use one of "
        f"{', '.join(DRIVERS)}, or a connection or session of SQLAlchemy"
    )


class DriverConnection:
    """A connection of a DB-API driver, or of its twin for asyncio."""

    def __init__(self, raw: Any, module: str) -> None:
        self.database = DRIVERS[module]
        self._raw = raw
        self._placeholder = "?" if sys.modules[module].paramstyle == "qmark" else "%s"
        self._begun = False  # by a statement of ours, not by the driver

    async def execute(self, statement: str, parameters: Parameters = ()) -> list[Any]:
        cursor = await settled(self._raw.cursor())
        try:
            sql = statement.replace("?", self._placeholder)
            await settled(cursor.execute(sql, tuple(parameters)) if parameters else cursor.execute(sql))
            return _first_column(await settled(cursor.fetchall())) if cursor.description else []
        finally:
            await settled(cursor.close())

    async def begin(self) -> None:
        if _autocommits(self._raw, self.database) or (
            self.database is SQLITE and not self._raw.in_transaction
        ):
            await self.execute(self.database.begin)
            self._begun = True

    async def join(self) -> None:
        if _autocommits(self._raw, self.database):
            raise _autocommit_error()

    async def commit(self) -> None:
        await (self.execute("COMMIT") if self._begun else settled(self._raw.commit()))
        self._begun = False

    async def undo(self) -> None:
        by_statement = self._begun or _always_autocommits(self._raw)
        with suppress(Exception):
            await (self.execute("ROLLBACK") if by_statement else settled(self._raw.rollback()))
        self._begun = False

    def check_idle(self) -> None:
        if _in_transaction(self._raw, self.database):
            raise IllegalStateError(
                "the connection of the decision table is in a transaction: give the table a connection that "
                "nothing else uses, or a function that opens one"
            )


class AlchemyConnection:
    """A connection of SQLAlchemy. ``owner`` is the connection or the session that ends its transaction."""

    def __init__(self, connection: Any, owner: Any) -> None:
        self._connection = connection
        self._owner = owner
        self._sync = getattr(connection, "sync_connection", None) or connection
        name = self._sync.dialect.name
        if name not in DIALECTS:
            raise TypeError(f"a decision table needs one of the databases {', '.join(DIALECTS)}, not {name}")
        self.database = DIALECTS[name]
        self._text: Callable[[str], Any] = sys.modules["sqlalchemy"].text

    @property
    def _driver(self) -> Any:
        return self._sync.connection.driver_connection

    async def execute(self, statement: str, parameters: Parameters = ()) -> list[Any]:
        first, *others = statement.split("?")
        sql = first + "".join(f":p{number}{part}" for number, part in enumerate(others))
        named = {f"p{number}": value for number, value in enumerate(parameters)}
        result = await settled(self._connection.execute(self._text(sql), named))
        return _first_column(result.fetchall()) if result.returns_rows else []

    async def begin(self) -> None:
        await self._begin()
        if self.database is SQLITE and not self._driver.in_transaction:
            await self.execute(self.database.begin)

    async def join(self) -> None:
        await self._begin()
        if self._connection.in_nested_transaction():
            raise IllegalStateError(
                "the connection is in a SAVEPOINT, which can be rolled back alone: record the decision "
                "before begin_nested()"
            )
        if self.database is SQLITE:
            autocommits = _autocommits(self._driver, SQLITE)
        else:
            adapted = self._sync.connection.dbapi_connection
            read = getattr(adapted, "get_autocommit", lambda: adapted.autocommit)
            autocommits = bool(read())
        if autocommits:
            raise _autocommit_error()

    async def _begin(self) -> None:
        # an engine may have an event for it that emits BEGIN
        if not self._connection.in_transaction():
            await settled(self._connection.begin())

    async def commit(self) -> None:
        await settled(self._owner.commit())

    async def undo(self) -> None:
        with suppress(Exception):
            await settled(self._owner.rollback())

    def check_idle(self) -> None:
        """Do nothing: a new connection of an engine is idle."""


def _first_column(rows: Sequence[Any]) -> list[Any]:
    # a user's connection may return each row as a dict
    return [next(iter(row.values())) if isinstance(row, dict) else row[0] for row in rows]


def _always_autocommits(raw: Any) -> bool:
    """Return whether commit() and rollback() of an sqlite3 connection do nothing (autocommit=True, since
    Python 3.12)."""
    return module_of(raw) == "sqlite3" and getattr(raw, "autocommit", None) is True


def _in_transaction(raw: Any, database: Database) -> bool:
    if database is SQLITE:
        return bool(raw.in_transaction) and getattr(raw, "autocommit", None) is not False
    if database is POSTGRESQL:
        return bool(raw.info.transaction_status)
    return bool(raw.server_status & _IN_TRANSACTION)


def _autocommits(raw: Any, database: Database) -> bool:
    """Return whether the database would commit the next statement by itself."""
    if database is SQLITE:
        return not raw.in_transaction and (raw.isolation_level is None or _always_autocommits(raw))
    if database is POSTGRESQL:
        return bool(raw.autocommit) and not raw.info.transaction_status
    return bool(raw.server_status & (_AUTOCOMMIT | _IN_TRANSACTION) == _AUTOCOMMIT)


def _autocommit_error() -> IllegalStateError:
    return IllegalStateError(
        "the connection commits each statement by itself (autocommit), so the decision would not belong to "
        "your transaction: begin a transaction first, or turn autocommit off"
    )

"""``DecisionTable``: the outcome of each transactional message, in the database of the user.

The local transaction inserts ``(id, commit)`` in its own database transaction, so the row exists exactly if
the database has committed. A check tries to insert ``(id, rollback)``. If that succeeds, the unique key
prevents the local transaction from committing later, and the message can be rolled back; if the row
``commit`` exists, the message is committed; if an open transaction holds the id, the answer is UNKNOWN.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, nullcontext, suppress
from datetime import datetime
from typing import Any, Final

from txnkafka.checkback.decisions import databases
from txnkafka.checkback.decisions.connections import (
    AlchemyConnection,
    Connection,
    connection_of,
    is_async,
    module_of,
    run,
    settled,
)
from txnkafka.checkback.decisions.databases import SQLITE, Failure
from txnkafka.checkback.message import LocalTransactionState
from txnkafka.env.clock import Clock, SystemClock

LOCK_TIMEOUT_MS: Final = 1000


class DecisionTable:
    """The decisions of transactional messages, in a table of SQLite, PostgreSQL, MySQL or MariaDB.

    ``database`` is for the statements of ``create``, ``check`` and ``purge``, each in a transaction of its
    own: an ``Engine`` of SQLAlchemy, a function that opens a connection (sqlite3, psycopg, pymysql) or a
    context manager with one, as pools have, or a connection that nothing else uses. It must be the database
    that the local transactions write to, never a replica. ``table`` may have a schema: ``app.decisions``.
    ``lock_timeout_ms`` is the longest wait of ``check`` for an open transaction, in milliseconds; MySQL and
    MariaDB round it up to seconds.

    Errors of the driver are raised as they are."""

    def __init__(
        self,
        database: Any,
        table: str = "txn_decision",
        *,
        lock_timeout_ms: int = LOCK_TIMEOUT_MS,
        clock: Clock | None = None,
    ) -> None:
        """Raise TypeError or ValueError for an argument that cannot be used; nothing is opened."""
        if is_async(database):
            raise TypeError(f"{type(database).__name__} is for asyncio: use AsyncDecisionTable")
        self._core = _Decisions(database, table, lock_timeout_ms, clock)

    def create(self) -> None:
        """Create the table if it does not exist. Raises ValueError if MySQL stores an existing table in an
        engine without transactions."""
        run(self._core.create())

    def record(self, db: Any, transaction_id: str) -> None:
        """Insert the decision to commit, in the transaction of ``db``: a connection of a driver, or a
        connection or session of SQLAlchemy. Call it first in the transaction, so that a check before
        the commit answers UNKNOWN.

        After an error the transaction cannot commit: PostgreSQL has aborted it, in the other databases it is
        rolled back. The driver's IntegrityError means that the id was decided before: by a check, or by
        another process. Raises IllegalStateError for a connection with autocommit, or in a SAVEPOINT of
        SQLAlchemy; ValueError for an id longer than 255 bytes."""
        if is_async(db):
            raise TypeError(f"{type(db).__name__} is for asyncio: use AsyncDecisionTable")
        run(self._core.record(db, transaction_id))

    def check(self, transaction_id: str) -> LocalTransactionState:
        """Return COMMIT_MESSAGE if the local transaction has committed, or ROLLBACK_MESSAGE if it never will:
        this check or an earlier one has fenced its id. UNKNOWN if it is open, or the database was locked for
        ``lock_timeout_ms``. Errors of the driver mean the same as UNKNOWN."""
        return run(self._core.check(transaction_id))

    def purge(self, before: datetime, *, undecided: Callable[[], Iterable[str]]) -> int:
        """Delete the decisions older than ``before`` (with a time zone), and return their number.

        ``undecided`` returns the ids of all messages that are undecided or parked; their rows stay. A row of
        such a message is the only proof of its outcome: without it, the next check would roll a committed
        message back. Choose a time that no open database transaction is older than."""
        _check_time(before, self._core.clock)
        return run(self._core.purge(before, undecided()))


class AsyncDecisionTable:
    """A ``DecisionTable`` for asyncio. ``database`` is an ``AsyncEngine`` of SQLAlchemy, or a function that
    opens a connection (aiosqlite, ``psycopg.AsyncConnection``, asyncmy), or returns a context manager with
    one, as pools have."""

    def __init__(
        self,
        database: Any,
        table: str = "txn_decision",
        *,
        lock_timeout_ms: int = LOCK_TIMEOUT_MS,
        clock: Clock | None = None,
    ) -> None:
        """Raise TypeError or ValueError for an argument that cannot be used; nothing is opened."""
        if module_of(database) and not hasattr(database, "sync_engine"):
            raise TypeError(
                f"{type(database).__name__} cannot be shared by checks that run at the same time: give an "
                "AsyncEngine, or a function that opens a connection"
            )
        self._core = _Decisions(database, table, lock_timeout_ms, clock)

    async def create(self) -> None:
        """Like ``DecisionTable.create``."""
        await self._core.create()

    async def record(self, db: Any, transaction_id: str) -> None:
        """Like ``DecisionTable.record``, with a connection or session for asyncio."""
        await self._core.record(db, transaction_id)

    async def check(self, transaction_id: str) -> LocalTransactionState:
        """Like ``DecisionTable.check``."""
        return await self._core.check(transaction_id)

    async def purge(
        self, before: datetime, *, undecided: Callable[[], Iterable[str] | Awaitable[Iterable[str]]]
    ) -> int:
        """Like ``DecisionTable.purge``. ``undecided`` may be a coroutine function."""
        _check_time(before, self._core.clock)
        return await self._core.purge(before, await settled(undecided()))


class _Decisions:
    """The statements of both classes, each transaction on a new or idle connection."""

    def __init__(self, source: Any, table: str, lock_timeout_ms: int, clock: Clock | None) -> None:
        if not module_of(source) and not callable(source):
            raise TypeError(
                f"{type(source).__name__} is not a database of a decision table: give an engine of "
                "SQLAlchemy, a connection, or a function that opens one"
            )
        if lock_timeout_ms < 1:
            raise ValueError(f"lock_timeout_ms must be at least 1, not {lock_timeout_ms}")
        SQLITE.quoted(table)
        self._source = source
        self._table = table
        self._lock_timeout_ms = lock_timeout_ms
        self._lock = threading.Lock()  # of a connection that all threads share
        self.clock = clock or SystemClock()

    async def create(self) -> None:
        async with self._connection() as db:
            try:
                await self._create(db)
            except Exception:
                await self._create(db)  # PostgreSQL refuses one of two that create it at the same time
            if db.database.get_engine is None:
                return
            schema, _, name = self._table.rpartition(".")
            engines = await db.execute(db.database.get_engine, (schema or None, name))
            await db.undo()
            if engines != ["InnoDB"]:
                raise ValueError(f"the table {self._table} has the engine {engines}: change it to InnoDB")

    async def _create(self, db: Connection) -> None:
        try:
            await db.begin()
            await db.execute(self._statement(db, db.database.create))
            await db.commit()
        except BaseException:
            await db.undo()
            raise

    async def record(self, db: Any, transaction_id: str) -> None:
        connection = await connection_of(db)
        key = connection.database.key(transaction_id)
        await connection.join()
        try:
            await self._insert(connection, key, LocalTransactionState.COMMIT_MESSAGE)
        except BaseException as error:
            if connection.database.undoes_statement_only:
                await connection.undo()  # a caller that goes on must not commit the rest alone
            if connection.database.failure(error) is Failure.DUPLICATE:
                error.add_note(
                    f"The transaction id {transaction_id} was decided before, by a check or by another "
                    f"process (table {self._table}). Roll this database transaction back."
                )
            raise

    async def check(self, transaction_id: str) -> LocalTransactionState:
        async with self._connection() as db, self._short_wait(db):
            key = db.database.key(transaction_id)
            for step in (self._fence, self._decided):
                try:
                    return await step(db, key)
                except BaseException as error:
                    await db.undo()
                    failure = db.database.failure(error)
                    if failure is Failure.LOCKED:
                        return LocalTransactionState.UNKNOWN
                    if failure is not Failure.DUPLICATE:
                        raise
        return LocalTransactionState.UNKNOWN

    async def purge(self, before: datetime, undecided: Iterable[str]) -> int:
        until_ms, ids = _milliseconds(before), set(undecided)
        async with self._connection() as db:
            kept = {db.database.key(transaction_id) for transaction_id in ids}
            removed = 0
            last = db.database.key("!")[:0]
            while True:
                try:
                    await db.begin()
                    page = await db.execute(self._statement(db, databases.SELECT_PAGE), (until_ms, last))
                    gone = [key for key in page if key not in kept]
                    for key in gone:
                        await db.execute(self._statement(db, databases.DELETE), (key,))
                    await db.commit()
                except BaseException:
                    await db.undo()
                    raise
                removed += len(gone)
                if len(page) < databases.IDS_OF_A_PAGE:
                    return removed
                last = page[-1]

    async def _fence(self, db: Connection, key: str | bytes) -> LocalTransactionState:
        await db.begin()
        if db.database.get_wait is None:
            await db.execute(db.database.wait(self._lock_timeout_ms))
        await self._insert(db, key, LocalTransactionState.ROLLBACK_MESSAGE)
        await db.commit()
        return LocalTransactionState.ROLLBACK_MESSAGE

    async def _decided(self, db: Connection, key: str | bytes) -> LocalTransactionState:
        rows = await db.execute(self._statement(db, databases.SELECT), (key,))
        await db.undo()
        return LocalTransactionState(rows[0]) if rows else LocalTransactionState.UNKNOWN

    async def _insert(self, db: Connection, key: str | bytes, outcome: LocalTransactionState) -> None:
        row = (key, outcome.value, self.clock.now_ms())
        await db.execute(self._statement(db, databases.INSERT), row)

    def _statement(self, db: Connection, statement: str) -> str:
        return statement.format(table=db.database.quoted(self._table))

    @asynccontextmanager
    async def _short_wait(self, db: Connection) -> AsyncIterator[None]:
        """Limit the wait for locks, and restore it: the connection may be one of a pool."""
        if db.database.get_wait is None:
            yield
            return
        [before] = await db.execute(db.database.get_wait)
        await db.execute(db.database.wait(self._lock_timeout_ms))
        try:
            yield
        finally:
            with suppress(Exception):
                await db.execute(db.database.set_wait.format(wait=before))

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        """Give an idle connection, and close it if it was opened here."""
        module = module_of(self._source)
        if module == "sqlalchemy":
            engine_connection = await settled(self._source.connect())
            try:
                db = AlchemyConnection(engine_connection, engine_connection)
                if db.database is not SQLITE:  # in place of AUTOCOMMIT, and of stricter levels
                    await settled(engine_connection.execution_options(isolation_level="READ COMMITTED"))
                yield db
            finally:
                await settled(engine_connection.close())
        elif module:
            with self._lock:
                shared = await connection_of(self._source)
                shared.check_idle()
                yield shared
        else:
            async with _opened(await settled(self._source())) as raw:
                opened = await connection_of(raw)
                opened.check_idle()
                yield opened


@asynccontextmanager
async def _opened(opened: Any) -> AsyncIterator[Any]:
    """Give a new connection and close it, or the connection of a context manager that a pool returned."""
    if module_of(opened):
        try:
            yield opened
        finally:
            await settled(opened.close())
    elif hasattr(opened, "__aenter__"):
        async with opened as raw:
            yield raw
    else:
        with opened if hasattr(opened, "__enter__") else nullcontext(opened) as raw:
            yield raw


def _milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1000)


def _check_time(before: datetime, clock: Clock) -> None:
    if before.tzinfo is None:
        raise ValueError(f"the time {before} needs a time zone, such as datetime.now(UTC)")
    if _milliseconds(before) > clock.now_ms():
        raise ValueError(f"the time {before} is in the future: messages of now would lose their decision")

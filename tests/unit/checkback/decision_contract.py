"""The tests that a decision table passes with each driver and database.

A ``Service`` has a table of orders beside its decision table. ``DecisionContract`` is the base class of a
test class whose fixture ``service`` returns one.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from txnkafka.checkback.decision_table import AsyncDecisionTable, DecisionTable
from txnkafka.checkback.decisions.connections import is_async, module_of, settled
from txnkafka.checkback.message import LocalTransactionState
from txnkafka.errors import IllegalStateError

COMMIT, ROLLBACK, UNKNOWN = (
    LocalTransactionState.COMMIT_MESSAGE,
    LocalTransactionState.ROLLBACK_MESSAGE,
    LocalTransactionState.UNKNOWN,
)
LOCK_TIMEOUT_MS = 100


class Service:
    """``connect`` opens the argument of ``record``; ``database`` is the argument of the decision table.
    ``first`` is the statement that opens a transaction, ``autocommit`` opens a connection without one."""

    def __init__(
        self,
        database: Any,
        connect: Callable[[], Any],
        *,
        first: str | None = None,
        autocommit: Callable[[], Any],
        close: Callable[[], Any] | None = None,
        asynchronous: bool = False,
    ) -> None:
        self.database = database
        self._connect = connect
        self._first = first
        self._autocommit = autocommit
        self._close = close
        self._asynchronous = asynchronous or is_async(database)

    def table(self, name: str = "txn_decision", **options: Any) -> Any:
        """Another decision table of this service."""
        kind = AsyncDecisionTable if self._asynchronous else DecisionTable
        return kind(self.database, name, **{"lock_timeout_ms": LOCK_TIMEOUT_MS, **options})

    async def __aenter__(self) -> Service:
        self.decisions = self.table()
        await settled(self.decisions.create())
        async with await self.begin() as local:
            await local.execute("CREATE TABLE orders (id VARCHAR(40) PRIMARY KEY)")
            await local.commit()
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._close is not None:
            await settled(self._close())

    async def begin(self, *, autocommit: bool = False) -> Local:
        """A local transaction."""
        if autocommit:
            return Local(self, await settled(self._autocommit()))
        local = Local(self, await settled(self._connect()))
        if self._first is not None:
            await local.execute(self._first)
        return local

    async def check(self, transaction_id: str) -> LocalTransactionState:
        """Return the answer of the decision table."""
        state: LocalTransactionState = await settled(self.decisions.check(transaction_id))
        return state

    async def orders(self) -> list[str]:
        """Return all orders of the database."""
        async with await self.begin() as local:
            return [row[0] for row in await local.execute("SELECT id FROM orders ORDER BY id")]


class Local:
    """One database transaction of a service."""

    def __init__(self, service: Service, db: Any) -> None:
        self.db = db
        self._service = service

    async def __aenter__(self) -> Local:
        return self

    async def __aexit__(self, *error: object) -> None:
        await settled(self.db.close())

    async def execute(self, statement: str) -> list[Any]:
        """Run a statement without parameters."""
        if module_of(self.db) == "sqlalchemy":
            result = await settled(self.db.execute(text(statement)))
            return result.fetchall() if result.returns_rows else []
        cursor = await settled(self.db.cursor())
        await settled(cursor.execute(statement))
        rows = await settled(cursor.fetchall()) if cursor.description else []
        await settled(cursor.close())
        return list(rows)

    async def order(self, transaction_id: str) -> None:
        """Insert an order, which the message with this id announces."""
        await self.execute(f"INSERT INTO orders VALUES ('{transaction_id}')")

    async def record(self, transaction_id: str) -> None:
        """Record the decision to commit."""
        await settled(self._service.decisions.record(self.db, transaction_id))

    async def commit(self) -> None:
        """Commit, also after an error."""
        await settled(self.db.commit())

    async def rollback(self) -> None:
        """Roll back."""
        await settled(self.db.rollback())


def in_loop(test: Callable[[Any, Service], Coroutine[Any, Any, None]]) -> Callable[[Any, Service], None]:
    """Run a test in a new event loop, with the tables of the service."""

    @functools.wraps(test)
    def run(self: Any, service: Service) -> None:
        async def with_tables() -> None:
            async with service:
                await test(self, service)

        asyncio.run(with_tables())

    return run


class DecisionContract:
    """The same results with every driver and database."""

    @in_loop
    async def test_committed_order_is_committed_message(self, service: Service) -> None:
        async with await service.begin() as local:
            await local.record("a")
            await local.order("a")
            await local.commit()
        assert [await service.check("a") for _ in range(3)] == [COMMIT] * 3
        assert await service.orders() == ["a"]

    @in_loop
    async def test_rolled_back_order_is_rolled_back_message(self, service: Service) -> None:
        async with await service.begin() as local:
            await local.record("a")
            await local.order("a")
            await local.rollback()
        assert [await service.check("a") for _ in range(3)] == [ROLLBACK] * 3
        assert await service.orders() == []

    @in_loop
    async def test_open_transaction_is_unknown_and_can_commit(self, service: Service) -> None:
        async with await service.begin() as local:
            await local.record("a")
            await local.order("a")
            assert await service.check("a") is UNKNOWN
            assert await service.check("a") is UNKNOWN
            await local.commit()
        assert await service.check("a") is COMMIT

    @in_loop
    async def test_fenced_transaction_cannot_commit(self, service: Service) -> None:
        async with await service.begin() as local:
            # a lock of the whole file would make the check wait
            assert await service.check("a") in (ROLLBACK, UNKNOWN)
            await local.rollback()
        assert await service.check("a") is ROLLBACK
        async with await service.begin() as local:
            await local.order("a")
            with pytest.raises(Exception, match=r"(?i)unique|duplicate") as refused:
                await local.record("a")
            assert "The transaction id a was decided before" in refused.value.__notes__[0]
            assert "Integrity" in str(type(refused.value).__mro__)
            await _commit_after_error(local)
        assert await service.orders() == [], "the order is in the database without its decision"
        assert await service.check("a") is ROLLBACK

    @in_loop
    async def test_second_record_of_an_id_is_refused(self, service: Service) -> None:
        async with await service.begin() as local:
            await local.record("a")
            await local.order("a")
            with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
                await local.record("a")
            await _commit_after_error(local)
        assert await service.orders() == []
        assert await service.check("a") is ROLLBACK

    @in_loop
    async def test_autocommit_is_refused(self, service: Service) -> None:
        async with await service.begin(autocommit=True) as local:
            with pytest.raises(IllegalStateError, match="autocommit"):
                await local.record("a")
        assert await service.check("a") is ROLLBACK

    @in_loop
    async def test_ids_are_compared_exactly(self, service: Service) -> None:
        ids = ["a", "A", "a ", " a", "ä", "a\u0308", "%s", "?", ":p0", "'", "x" * 255]
        async with await service.begin() as local:
            for transaction_id in ids[::2]:
                await local.record(transaction_id)
            await local.commit()
        states = [await service.check(transaction_id) for transaction_id in ids]
        assert states == [COMMIT if number % 2 == 0 else ROLLBACK for number in range(len(ids))]
        for wrong in ("", "x" * 256, "ä" * 128, "a\0b"):
            async with await service.begin() as local:
                with pytest.raises(ValueError, match="1 to 255 bytes"):
                    await local.record(wrong)
            with pytest.raises(ValueError, match="1 to 255 bytes"):
                await service.check(wrong)

    @in_loop
    async def test_purge_keeps_undecided_and_new_decisions(self, service: Service) -> None:
        async with await service.begin() as local:
            for number in range(503):
                await local.record(f"{number:04}")
            await local.commit()
        await service.check("fenced")
        soon = datetime.now(UTC) + timedelta(seconds=5)
        later = service.table(clock=_Later())
        for transaction_id in ("new", "new-fenced"):
            await settled(later.check(transaction_id))
        undecided = {"0000", "0499", "0500", "0502"}
        assert await settled(later.purge(soon, undecided=lambda: undecided)) == 503 - 4 + 1
        assert [await service.check(number) for number in sorted(undecided)] == [COMMIT] * 4
        assert await settled(later.purge(soon, undecided=lambda: undecided)) == 0
        # a removed commit has no proof any more: the next check fences it
        assert await service.check("0001") is ROLLBACK
        assert await service.check("new") is ROLLBACK
        assert await settled(later.purge(soon, undecided=list)) == 4 + 1

    @in_loop
    async def test_purge_without_undecided_ids_deletes_nothing(self, service: Service) -> None:
        await service.check("a")
        later = service.table(clock=_Later())
        before = datetime.now(UTC) + timedelta(seconds=5)
        with pytest.raises(TypeError, match="undecided"):
            await settled(later.purge(before))

        def unreachable() -> list[str]:
            raise ConnectionError("no broker")

        with pytest.raises(ConnectionError):
            await settled(later.purge(before, undecided=unreachable))
        with pytest.raises(ValueError, match="time zone"):
            await settled(later.purge(before.replace(tzinfo=None), undecided=list))
        with pytest.raises(ValueError, match="future"):
            await settled(service.decisions.purge(before, undecided=list))
        assert await settled(later.purge(before, undecided=list)) == 1

    @in_loop
    async def test_missing_table_is_an_error_not_an_answer(self, service: Service) -> None:
        with pytest.raises(Exception, match=r"(?i)missing"):
            await settled(service.table("missing").check("a"))
        assert await service.check("a") is ROLLBACK, "the connection is usable after an error"

    @in_loop
    async def test_create_by_many_at_once(self, service: Service) -> None:
        created = service.table("created")
        if isinstance(created, AsyncDecisionTable):
            await asyncio.gather(*[created.create() for _ in range(4)])
        else:
            await _in_threads([created.create] * 4)
        assert await settled(created.check("a")) is ROLLBACK

    @in_loop
    async def test_races_of_commits_and_checks_agree(self, service: Service) -> None:
        if not isinstance(service.decisions, DecisionTable):
            await _race_of_tasks(service)
        else:
            await _race_of_threads(service)


async def _race_of_threads(service: Service) -> None:
    ids = [f"{number:02}" for number in range(12)]
    answers: dict[str, LocalTransactionState] = {}

    def commit_all() -> None:
        for transaction_id in ids:
            asyncio.run(_try_to_commit(service, transaction_id))

    def check_all() -> None:
        for transaction_id in ids:
            while (state := service.decisions.check(transaction_id)) is UNKNOWN:
                pass
            answers[transaction_id] = state

    await _in_threads([commit_all, check_all])
    await _agree(service, ids, answers)


async def _race_of_tasks(service: Service) -> None:
    ids = [f"{number:02}" for number in range(12)]
    answers: dict[str, LocalTransactionState] = {}

    async def check_all() -> None:
        for transaction_id in ids:
            while (state := await service.check(transaction_id)) is UNKNOWN:
                pass
            answers[transaction_id] = state

    async def commit_all() -> None:
        for transaction_id in ids:
            await _try_to_commit(service, transaction_id)

    await asyncio.gather(commit_all(), check_all())
    await _agree(service, ids, answers)


async def _try_to_commit(service: Service, transaction_id: str) -> None:
    async with await service.begin() as local:
        try:
            await local.order(transaction_id)
            await local.record(transaction_id)
            await local.commit()
        except Exception as error:
            if not any(word in str(error).lower() for word in ("unique", "duplicate", "locked")):
                raise
            await local.rollback()


async def _agree(service: Service, ids: list[str], answers: dict[str, LocalTransactionState]) -> None:
    committed = [transaction_id for transaction_id in ids if answers[transaction_id] is COMMIT]
    assert await service.orders() == committed
    assert [await service.check(transaction_id) for transaction_id in ids] == [answers[i] for i in ids]


async def _commit_after_error(local: Local) -> None:
    """Commit as a careless caller does; a driver may refuse it."""
    try:
        await local.commit()
    except Exception:
        await local.rollback()


async def _in_threads(functions: list[Callable[[], None]]) -> None:
    errors: list[BaseException] = []

    def guarded(function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert not errors, errors


class _Later:
    """A clock ten seconds ahead."""

    def now_ms(self) -> int:
        return int((datetime.now(UTC) + timedelta(seconds=10)).timestamp() * 1000)

    def running_ms(self) -> int:
        raise NotImplementedError

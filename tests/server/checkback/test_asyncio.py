"""The producer of check-back messages for asyncio: listeners and tables with coroutines."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from tests.server.checkback.shop import COMMIT, ROLLBACK, UNKNOWN, Shop, until
from txnkafka.aio.checkback import TransactionMQProducer
from txnkafka.checkback import (
    AsyncDecisionTable,
    DelayNotSupportedError,
    ListenerMissingError,
    Message,
    MessageExt,
    TransactionDecidedError,
)

MESSAGE = Message("orders", b"a book", keys=b"anna")


class Listener:
    """Coroutines, which answer after other tasks had their turn."""

    def __init__(self, check: Any = COMMIT) -> None:
        self.check = check
        self.asked: list[int] = []

    async def execute_local_transaction(self, msg: MessageExt, arg: Any) -> Any:
        await asyncio.sleep(0)
        if isinstance(arg, Exception):
            raise arg
        return arg

    async def check_local_transaction(self, msg: MessageExt) -> Any:
        await asyncio.sleep(0)
        self.asked.append(msg.check_times)
        return self.check


def producing(shop: Shop, listener: Any = None, **options: Any) -> TransactionMQProducer:
    return TransactionMQProducer("shop", shop.place, transaction_listener=listener, **shop.rules, **options)


def test_a_listener_with_coroutines(shop: Shop) -> None:
    async def main() -> None:
        listener = Listener()
        async with producing(shop, listener) as producer:
            failure = RuntimeError("no database")
            for arg, answer, outcome in (
                (COMMIT, COMMIT, COMMIT),
                (ROLLBACK, ROLLBACK, ROLLBACK),
                (None, UNKNOWN, COMMIT),
                (failure, UNKNOWN, COMMIT),
            ):
                result = await producer.send_message_in_transaction(MESSAGE, arg)
                assert result.local_transaction_state is answer
                assert result.local_exception is (failure if arg is failure else None)
                assert await producer.wait_until_done(result.transaction_id) is outcome
        assert listener.asked == [1, 1]

    asyncio.run(main())
    assert shop.values() == [b"a book"] * 3


def test_a_listener_with_functions(shop: Shop) -> None:
    class Functions:
        def execute_local_transaction(self, msg: MessageExt, arg: Any) -> Any:
            return UNKNOWN

        def check_local_transaction(self, msg: MessageExt) -> Any:
            return ROLLBACK

    async def main() -> None:
        async with producing(shop, Functions()) as producer:
            result = await producer.send_message_in_transaction(MESSAGE)
            assert await producer.wait_until_done(result.transaction_id) is ROLLBACK

    asyncio.run(main())
    assert shop.values() == []


def test_halves_with_a_database(shop: Shop, tmp_path: Path) -> None:
    async def connect() -> aiosqlite.Connection:
        return await aiosqlite.connect(tmp_path / "orders.db")

    async def main() -> None:
        decisions = AsyncDecisionTable(connect, lock_timeout_ms=100)
        await decisions.create()
        async with producing(shop, decisions=decisions) as producer:
            for failure in (None, "before", "after"):
                db = await connect()
                with contextlib.suppress(RuntimeError):
                    async with producer.half("orders", f"{failure}") as half:
                        await half.record(db)
                        if failure == "before":
                            raise RuntimeError(failure)
                        await db.commit()
                        if failure:
                            raise RuntimeError(failure)
                await db.close()
                assert await half.wait_until_done() is (ROLLBACK if failure == "before" else COMMIT)

    asyncio.run(main())
    assert shop.values() == [b"None", b"after"]


def test_a_half_without_an_answer_is_checked(shop: Shop) -> None:
    async def main() -> None:
        listener = Listener(ROLLBACK)
        async with producing(shop, listener) as producer:
            half = producer.half("orders", b"a book").send("bills", b"a bill")
            with pytest.raises(RuntimeError, match="stop"):
                async with half:
                    raise RuntimeError("stop")
            assert await half.wait_until_done() is ROLLBACK
        assert listener.asked == [1]

    asyncio.run(main())
    assert shop.values() == shop.values("bills") == []


def test_decisions_by_id(shop: Shop) -> None:
    async def main() -> None:
        async with producing(shop, Listener(UNKNOWN)) as producer:
            sent = (await producer.send_message_in_transaction(MESSAGE, UNKNOWN)).transaction_id
            await producer.commit(sent)
            await producer.commit(sent)
            with pytest.raises(TransactionDecidedError):
                await producer.rollback(sent)
            assert await producer.wait_until_done(sent) is COMMIT
            assert (await producer.send(Message("bills", b"a bill"))).topic == "bills"

    asyncio.run(main())
    assert (shop.values(), shop.values("bills")) == ([b"a book"], [b"a bill"])


def test_refusals(shop: Shop) -> None:
    async def main() -> None:
        async with producing(shop) as producer:
            with pytest.raises(ListenerMissingError):
                await producer.send_message_in_transaction(MESSAGE)
            with pytest.raises(ListenerMissingError):
                producer.half("orders", b"a book")
            with pytest.raises(DelayNotSupportedError):
                await producer.send(Message("orders", b"a book", delay_time_level=1))

    asyncio.run(main())
    until(lambda: shop.values() == [], "nothing was sent")

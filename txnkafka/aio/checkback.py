"""``TransactionMQProducer`` for asyncio.

from txnkafka.aio.checkback import TransactionMQProducer
from txnkafka.checkback import AsyncDecisionTable

decisions = AsyncDecisionTable(engine)
async with TransactionMQProducer("orders", "127.0.0.1:9092", decisions=decisions) as producer:
    async with producer.half("orders", b"a book", key=b"anna") as half:
        async with engine.begin() as db:
            await half.record(db)
            await db.execute(...)
"""

from __future__ import annotations

import asyncio
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Self

from txnkafka.aio.waiting import run
from txnkafka.checkback.check_listener import checked
from txnkafka.checkback.errors import DelayNotSupportedError, ListenerMissingError
from txnkafka.checkback.half import LOG, HalfDraft
from txnkafka.checkback.half_core import OUTCOMES, STATES, Decision, immunity_ms
from txnkafka.checkback.message import LocalTransactionState, Message, MessageExt, SendResult, SendStatus
from txnkafka.checkback.producer import TransactionMQProducer as BlockingProducer
from txnkafka.checkback.producer import transaction_result
from txnkafka.errors import IllegalStateError, KafkaError
from txnkafka.wire.records.half_records import Outcome

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable
    from types import TracebackType

    from typing_extensions import Buffer

    from txnkafka.checkback.connecting import Place
    from txnkafka.checkback.half_core import SentHalf
    from txnkafka.checkback.message import TransactionSendResult


class _Checked(BlockingProducer):
    """Answers checks in a thread of the pool; coroutines run in the event loop."""

    loop: asyncio.AbstractEventLoop

    def _check(self, message: MessageExt) -> Any:
        answer: Any = super()._check(message)
        if isawaitable(answer):
            return asyncio.run_coroutine_threadsafe(_result(answer), self.loop).result()
        return answer


class Half(HalfDraft):
    """A half for an ``async with`` block; for rules and errors see ``txnkafka.checkback.Half``."""

    async def prepare(self) -> Self:
        """Write the half, and wait until it is durable. A second call does nothing."""
        await run(self._core.reactor, self._prepare())
        return self

    async def record(self, db: Any) -> None:
        """Write the half, and record the commit in the decision table, with a connection whose transaction is
        open."""
        table = self._table()
        await self.prepare()
        await table.record(db, self._id)

    async def commit(self) -> None:
        """Commit now."""
        await run(self._core.reactor, self._decide(Outcome.COMMIT))

    async def rollback(self) -> None:
        """Roll back now."""
        await run(self._core.reactor, self._decide(Outcome.ROLLBACK))

    async def wait_until_done(self, timeout: float = 30.0) -> LocalTransactionState:
        """Wait until the resolver has made the messages visible, or rolled them back."""
        if self._sent is None:
            raise IllegalStateError(f"half {self._id} was not written")
        return await run(self._core.reactor, self._core.done(self._sent, round(timeout * 1000)))

    async def __aenter__(self) -> Self:
        return await self.prepare() if self._messages else self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await run(self._core.reactor, self._finish(LocalTransactionState.COMMIT_MESSAGE))
            return
        if not self._asks_table:
            return
        try:
            state = await self._decisions.check(self._id)
        except Exception:
            LOG.exception("half %s: the decision table gave no answer; a check will ask again", self._id)
            return
        try:
            await run(self._core.reactor, self._finish(state))
        except KafkaError as failure:
            error.add_note(f"and half {self._id} was not decided ({state.name}): {failure}")


class TransactionMQProducer:
    """A producer of a producer group, for one event loop; for arguments, settings and errors see
    ``txnkafka.checkback.TransactionMQProducer``.

    The methods of the listener may be coroutine functions. Otherwise ``execute_local_transaction`` is called
    in the event loop, ``check_local_transaction`` in a thread of the pool. ``decisions`` is an
    AsyncDecisionTable."""

    def __init__(
        self,
        group: str,
        broker: Place,
        *,
        transaction_listener: Any = None,
        check_thread_pool_size: int = 4,
        decisions: Any = None,
        **settings: Any,
    ) -> None:
        self._blocking = _Checked(
            group, broker, transaction_listener=transaction_listener, decisions=decisions,
            check_thread_pool_size=check_thread_pool_size, **settings,
        )  # fmt: skip
        self._core = self._blocking._core
        self._reactor = self._blocking._reactor

    def __repr__(self) -> str:
        return f"<aio.{repr(self._blocking)[1:]}"

    async def start(self) -> Self:
        """Create the internal topics if they are missing, and receive checks from now on."""
        self._blocking.loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._blocking.start)
        return self

    async def shutdown(self) -> None:
        """Wait for callbacks of checks that have begun, and for the decisions that were sent, and release the
        connections."""
        await asyncio.to_thread(self._blocking.shutdown)

    async def send(self, message: Message) -> SendResult:
        """Send a plain message, and wait until it is acknowledged."""
        self._blocking._check_started()
        if message.is_delayed:
            raise DelayNotSupportedError(f"the message to {message.topic} has a delay, which Kafka has not")
        place = await run(self._reactor, self._core.send_plain(message))
        return SendResult(SendStatus.SEND_OK, place.topic, place.partition, place.offset)

    async def send_message_in_transaction(self, message: Message, arg: Any = None) -> TransactionSendResult:
        """Send a half, run the listener's local transaction when it is durable, and send its decision without
        waiting for the broker."""
        blocking = self._blocking
        if blocking.transaction_listener is None:
            raise ListenerMissingError("the producer has no transaction_listener: give it one")
        blocking._check_started()
        sent = await run(self._reactor, self._core.send_one(message))
        if sent.outcome is not None:
            return transaction_result(sent, STATES[sent.outcome])
        state, raised = await self._execute(message, arg, sent)
        if state in OUTCOMES:
            await run(self._reactor, self._core.decide_soon(sent, Decision(OUTCOMES[state])))
        return transaction_result(sent, state, raised)

    async def _execute(
        self, message: Message, arg: Any, sent: SentHalf
    ) -> tuple[LocalTransactionState, Exception | None]:
        transaction_id = sent.transaction_id
        group = self._blocking.group
        given = MessageExt.of(
            message, transaction_id=transaction_id, producer_group=group, born_timestamp=sent.born_ms
        )
        listener: Any = self._blocking.transaction_listener
        try:
            answer = await _result(listener.execute_local_transaction(given, arg))
        except Exception as error:
            LOG.warning("half %s: the local transaction raised %r; a check will ask", transaction_id, error)
            return LocalTransactionState.UNKNOWN, error
        return checked(answer, f"half {transaction_id}: execute_local_transaction"), None

    def half(
        self,
        topic: str | None = None,
        value: Buffer | str | None = None,
        key: Buffer | str | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Iterable[tuple[str, Buffer | None]] = (),
        transaction_id: str = "",
        check_immunity_time_in_seconds: float | None = None,
    ) -> Half:
        """Return a half for an ``async with`` block, with one message or none."""
        blocking = self._blocking
        blocking._check_half()
        immunity = immunity_ms(check_immunity_time_in_seconds)
        half = Half(self._core, blocking.decisions, transaction_id, immunity)
        if topic is not None:
            half.send(topic, value, key, partition=partition, timestamp=timestamp, headers=headers)
        return half

    async def commit(self, transaction_id: str) -> None:
        """Commit a half of this group by its id, and wait until the decision is durable and the first one."""
        self._blocking._check_started()
        await run(self._reactor, self._core.decide_by_id(transaction_id, Decision(Outcome.COMMIT)))

    async def rollback(self, transaction_id: str) -> None:
        """Roll back a half of this group by its id."""
        self._blocking._check_started()
        await run(self._reactor, self._core.decide_by_id(transaction_id, Decision(Outcome.ROLLBACK)))

    async def wait_until_done(self, transaction_id: str, timeout: float = 30.0) -> LocalTransactionState:
        """Wait until the resolver has made a half visible, or rolled it back, and return the outcome."""
        self._blocking._check_started()
        return await run(self._reactor, self._core.done(transaction_id, round(timeout * 1000)))

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()


async def _result(answer: Awaitable[Any] | Any) -> Any:
    return await answer if isawaitable(answer) else answer

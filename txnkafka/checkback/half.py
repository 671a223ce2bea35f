"""``Half``: one or more messages around a local transaction, as a ``with`` block."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Self

from txnkafka.checkback.errors import TransactionDecidedError
from txnkafka.checkback.half_core import OUTCOMES, STATES, Decision
from txnkafka.checkback.message import LocalTransactionState, Message
from txnkafka.errors import IllegalStateError, KafkaError
from txnkafka.wire.records.half_records import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from types import TracebackType

    from typing_extensions import Buffer

    from txnkafka.checkback.half_core import HalfCore, SentHalf

LOG = logging.getLogger("txnkafka.checkback")


class HalfDraft:
    """The messages of a half before it is written, and its state after."""

    def __init__(self, core: HalfCore, decisions: Any, transaction_id: str, immunity_ms: int) -> None:
        self._core = core
        self._decisions = decisions
        self._messages: list[Message] = []
        self._sent: SentHalf | None = None
        self._immunity_ms = immunity_ms
        self._is_given = bool(transaction_id)
        self._id = transaction_id or core.new_id()
        self._is_decided = False

    @property
    def transaction_id(self) -> str:
        """The id of the half, which the header ``txn.id`` of its visible records has."""
        return self._id

    def send(
        self,
        topic: str,
        value: Buffer | str | None = None,
        key: Buffer | str | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Iterable[tuple[str, Buffer | None]] = (),
    ) -> Self:
        """Add a message, which becomes visible together with the others. Returns the half itself.

        Raises IllegalStateError once the half is written: at the beginning of the ``with`` block, unless it
        had no message yet, and then by ``prepare`` or ``record``."""
        if self._sent is not None:
            raise IllegalStateError(
                f"half {self._id} is in the log already. For several messages call send before the with "
                "block, or begin the block with producer.half() without a message"
            )
        message = Message(topic, value, keys=key, partition=partition, timestamp=timestamp, headers=headers)
        self._messages.append(message)
        return self

    async def _prepare(self) -> None:
        if self._sent is None:
            if not self._messages:
                raise IllegalStateError(f"half {self._id} has no message: call send first")
            self._sent = await self._core.send(
                self._messages, transaction_id=self._id, is_new=not self._is_given,
                immunity_ms=self._immunity_ms,
            )  # fmt: skip
            if self._sent.outcome is not None:
                self._is_decided = True
                state = STATES[self._sent.outcome]
                raise TransactionDecidedError(f"half {self._id} was decided before: {state.name}", state)

    async def _decide(self, outcome: Outcome) -> None:
        await self._prepare()
        assert self._sent is not None
        self._is_decided = True
        await self._core.decide(self._sent, Decision(outcome))

    async def _finish(self, state: LocalTransactionState | None) -> None:
        """Decide at the end of the block; ``state`` is the answer of the table after an exception."""
        if self._is_decided:
            return
        if self._sent is None:
            if self._messages:
                raise IllegalStateError(
                    f"half {self._id} was not written, and its messages are lost: call record or prepare "
                    "before the commit of the local transaction"
                )
            return
        if state in OUTCOMES:
            await self._decide(OUTCOMES[state])

    def _table(self) -> Any:
        if self._decisions is None:
            raise IllegalStateError(
                "the producer has no decision table: give TransactionMQProducer one (decisions=...), or call "
                "the table's own record"
            )
        return self._decisions

    @property
    def _asks_table(self) -> bool:
        """Return whether the decision table is asked after an exception."""
        return self._sent is not None and not self._is_decided and self._decisions is not None


class Half(HalfDraft):
    """A half that ``TransactionMQProducer.half`` returns. A given id that was decided before raises
    TransactionDecidedError at the beginning of the block, with the outcome.

        with producer.half("orders", b"a book", key=b"anna") as half:
            with engine.begin() as db:
                db.execute(...)
                half.record(db)                # in the same database transaction

    The half is durable when the block begins, if it has a message. A block that ends without an exception
    commits it. After an exception the decision table is asked: a database transaction that was committed
    commits the half, one that was not can never be committed any more, and the half is rolled back. Without
    an answer, and without a table, the half stays undecided, and a check asks the listener."""

    def prepare(self) -> Self:
        """Write the half, and wait until it is durable. A second call does nothing."""
        self._run(self._prepare())
        return self

    def record(self, db: Any) -> None:
        """Write the half, and record the commit in the decision table, with a connection of the database
        whose transaction is open (DB-API or SQLAlchemy).

        Raises IllegalStateError without a table, and the database's error if a check has rolled the
        half back: then the transaction must be rolled back."""
        table = self._table()
        self.prepare()
        table.record(db, self._id)

    def commit(self) -> None:
        """Commit now. Raises TransactionDecidedError if the half was rolled back before,
        TransactionParkedError, and the broker's error: then a check decides."""
        self._run(self._decide(Outcome.COMMIT))

    def rollback(self) -> None:
        """Roll back now; errors are as in ``commit``."""
        self._run(self._decide(Outcome.ROLLBACK))

    def wait_until_done(self, timeout: float = 30.0) -> LocalTransactionState:
        """Wait until the resolver has made the messages visible, or rolled them back; see
        ``TransactionMQProducer.wait_until_done``."""
        if self._sent is None:
            raise IllegalStateError(f"half {self._id} was not written")
        done: LocalTransactionState = self._core.reactor.run(
            self._core.done(self._sent, round(timeout * 1000))
        )
        return done

    def __enter__(self) -> Self:
        return self.prepare() if self._messages else self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._run(self._finish(LocalTransactionState.COMMIT_MESSAGE))
            return
        state = self._checked()
        if state in OUTCOMES:
            try:
                self._run(self._finish(state))
            except KafkaError as failure:
                error.add_note(f"and half {self._id} was not decided ({state.name}): {failure}")

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        run: Callable[[Coroutine[Any, Any, None]], None] = self._core.reactor.run
        run(coroutine)

    def _checked(self) -> LocalTransactionState:
        """Ask the decision table after an exception."""
        if not self._asks_table:
            return LocalTransactionState.UNKNOWN
        try:
            state: LocalTransactionState = self._decisions.check(self._id)
        except Exception:
            LOG.exception("half %s: the decision table gave no answer; a check will ask again", self._id)
            return LocalTransactionState.UNKNOWN
        return state

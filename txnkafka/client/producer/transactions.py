"""``ProducerTransactions``: the transactions of a producer, and the calls that wait for their requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.client.producer.txn_state import State
from txnkafka.errors import ClosedError, IllegalStateError, InvalidTxnStateError, KafkaTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from txnkafka._core.record_list import RecordAppender
    from txnkafka.client.group_metadata import ConsumerGroupMetadata
    from txnkafka.client.offsets import OffsetAndMetadata
    from txnkafka.client.prepared_txn_state import PreparedTxnState
    from txnkafka.client.producer.producer_config import ProducerConfig
    from txnkafka.client.producer.sender import Sender
    from txnkafka.client.producer.txn_manager import TransactionManager
    from txnkafka.client.producer.txn_requests import TxnRequests
    from txnkafka.client.promise import Task
    from txnkafka.client.reactor import Reactor
    from txnkafka.model import TopicPartition

_INIT: Final = "init_transactions"


class ProducerTransactions:
    """A part of ``ProducerCore``. ``appender`` adds records that need not wait."""

    config: ProducerConfig
    reactor: Reactor
    appender: RecordAppender
    sender: Sender
    txn: TransactionManager | None
    is_closed: bool
    _requests: TxnRequests
    _pending: tuple[str, Task[None]] | None

    @property
    def accepts(self) -> bool:
        """Return whether the state of the producer allows to send a record."""
        return self.appender.accepts

    @accepts.setter
    def accepts(self, accepts: bool) -> None:
        self.appender.accepts = accepts

    @property
    def needs_init(self) -> bool:
        """Return whether ``init`` was not called, or has not finished."""
        is_new = self.txn is None or self.txn.state in (State.UNINITIALIZED, State.INITIALIZING)
        return is_new or (self._pending is not None and self._pending[0] == _INIT)

    async def init(self, *, keep_prepared: bool = False) -> None:
        """See ``Producer.init_transactions``."""
        txn = self._transactional()

        def begin() -> Task[None]:
            txn.check()
            txn.transition(State.INITIALIZING)
            return self.reactor.spawn(self._requests.init(keep_prepared=keep_prepared))

        await self._operation(_INIT, begin)

    def begin(self) -> None:
        """See ``Producer.begin_transaction``."""
        txn = self._transactional()
        txn.check()
        self._check_pending("begin_transaction")
        if txn.state is State.UNINITIALIZED:
            raise IllegalStateError(f"{txn.name}: call init_transactions before begin_transaction")
        txn.transition(State.IN_TRANSACTION)

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> None:
        """See ``Producer.send_offsets_to_transaction``."""
        txn = self._transactional()
        txn.check()
        self._check_pending("send_offsets_to_transaction")
        txn.check_in_transaction("send offsets")
        if offsets:
            sending = self.reactor.spawn(self._requests.send_offsets(offsets, group))
            await self._in_time("send_offsets_to_transaction", sending)

    async def prepare(self) -> PreparedTxnState:
        """See ``Producer.prepare_transaction``."""
        txn = self._transactional()
        if not self.config.transaction_two_phase_commit_enable:
            raise InvalidTxnStateError(
                f"{txn.name} cannot prepare: its transactions may time out; set "
                "transaction.two.phase.commit.enable=true"
            )

        def begin() -> Task[None]:
            txn.check_in_transaction("prepare the transaction")
            self.accepts = False
            return self.reactor.spawn(self._requests.prepare())

        await self._operation("prepare_transaction", begin)
        return txn.prepared

    async def complete(self, state: PreparedTxnState) -> None:
        """See ``Producer.complete_transaction``."""
        txn = self._transactional()
        txn.check()
        if txn.prepared.has_transaction:
            await (self.commit() if state == txn.prepared else self.abort())
        elif not (txn.may_complete and txn.state is State.READY):
            raise InvalidTxnStateError(
                f"{txn.name} has no prepared transaction: call prepare_transaction, or "
                "init_transactions(keep_prepared=True) after a restart"
            )

    async def commit(self) -> None:
        """See ``Producer.commit_transaction``."""
        txn = self._transactional()

        def begin() -> Task[None]:
            txn.check_may_end("commit")
            txn.transition(State.COMMITTING_TRANSACTION)
            return self.reactor.spawn(self._requests.end(commit=True))

        await self._operation("commit_transaction", begin)

    async def abort(self) -> None:
        """See ``Producer.abort_transaction``."""
        txn = self._transactional()

        def begin() -> Task[None]:
            if txn.state is not State.ABORTABLE_ERROR:
                txn.check_may_end("abort")
            txn.new_partitions.clear()
            txn.transition(State.ABORTING_TRANSACTION)
            return self.reactor.spawn(self._requests.end(commit=False))

        await self._operation("abort_transaction", begin)

    # Shared parts

    def check_open(self) -> None:
        """Raise ClosedError after ``close``."""
        if self.is_closed:
            raise ClosedError(f"the producer {self.config.client_id!r} is closed")

    def _transactional(self) -> TransactionManager:
        self.check_open()
        if self.txn is None or not self.txn.is_transactional:
            raise IllegalStateError("the producer has no transactional.id, and so no transactions")
        return self.txn

    def _check_pending(self, name: str) -> None:
        if self._pending is not None:
            other = self._pending[0]
            raise IllegalStateError(f"{other} has not finished: call it again, before {name}")

    async def _operation(self, name: str, begin: Callable[[], Task[None]]) -> None:
        """Begin an operation, or continue to wait for it after a timeout."""
        if self._pending is not None and self._pending[0] != name:
            self._check_pending(name)
        if self._pending is None:
            self._pending = name, begin()
        task = self._pending[1]
        try:
            await self._in_time(name, task)
        finally:
            if task.is_done:
                self._pending = None
                self._changed()

    async def _in_time(self, name: str, task: Task[None]) -> None:
        limit = self.config.max_block_ms
        await self.reactor.first(task, limit)
        if not task.is_done:
            raise KafkaTimeoutError(f"{name} did not finish within max.block.ms ({limit}): call it again")
        task.result()

    def _changed(self) -> None:
        txn = self.txn
        state = State.READY if txn is None else txn.state
        allowed = state is State.IN_TRANSACTION if txn is not None and txn.is_transactional else True
        self.accepts = (
            allowed and state is not State.FATAL_ERROR and not self.is_closed and self._pending is None
        )
        self.sender.wake()

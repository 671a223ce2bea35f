"""``TransactionalProgram``: an application that writes in transactions with the package's producer.

It commits, aborts, sleeps past the timeout, and stops without notice; after a fatal error another process
begins with the same transactional id. A process that was replaced continues until a response fences it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.client.producer.txn_state import State
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError, KafkaTimeoutError
from txnkafka.testing.simulation.client import RETRIABLE, WITHOUT_EFFECT
from txnkafka.testing.simulation.history import Outcome
from txnkafka.testing.simulation.sending import Sending
from txnkafka.testing.simulation.simulated_reactor import StoppedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from txnkafka.client.producer.producer_core import ProducerCore
    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import World
    from txnkafka.testing.simulation.history import Topic, Transaction

_NEARLY_EXHAUSTED: Final = 32_700
_CALLS: Final = 20  # of an operation that does not finish within max.block.ms


class TransactionalProgram(Sending):
    """``is_replaced``: another process has the transactional id. ``transactions`` is the number of ended
    ones."""

    def __init__(
        self, world: World, name: str, random: Random, topics: Sequence[Topic], transactional_id: str,
        *, is_version_1: bool,
    ) -> None:  # fmt: skip
        super().__init__(world, name, random, topics)
        self.transactional_id = transactional_id
        self.is_version_1 = is_version_1
        self.is_replaced = False
        self.transactions = 0
        self._transaction: Transaction | None = None  # the present one
        self._undecided = 0  # commits that were sent, and not certainly refused
        self._producer_id = -1

    @property
    def restarts(self) -> bool:
        """Return whether another process follows."""
        return not (self.is_replaced or self.world.is_ending)

    async def process(self) -> None:
        """Run transactions until another process fences this one."""
        self.core = self.transactional_core()
        await self.finish(self.core.init)
        while not self.world.is_ending:
            await self.rest()
            if self.is_version_1 and self._upgrades():
                self.world.counts["producer upgraded"] += 1
                self.world.upgraded.add(self.transactional_id)
                self.is_version_1 = False
                self._transports[0].upgrade()
            await self.transaction()
        await self.core.close(1_000)

    def transactional_core(self) -> ProducerCore:
        """Return the producer of a new process."""
        transport = self.transport(transaction_version=1 if self.is_version_1 else 2)
        settings = {
            "transactional.id": self.transactional_id,
            "transaction.timeout.ms": self.world.swarm.transaction_timeout_ms,
        }
        return self.new_core(transport, **settings)

    def _upgrades(self) -> bool:
        alone: bool = self.world.is_alone(self)
        return self.random.random() < self.world.swarm.upgrade and alone and not self.is_replaced

    async def finish(self, operation: Callable[[], Awaitable[None]]) -> None:
        """Call an operation again after ``max.block.ms``, as its error asks for."""
        for _ in range(_CALLS):
            try:
                return await operation()
            except KafkaTimeoutError:
                self.world.counts["operation not finished in time"] += 1
        raise StoppedError

    # One transaction

    async def transaction(self) -> None:
        """Run one transaction. Raises the error that ends the process."""
        begun = self.begin_transaction()
        try:
            await self.work(begun)
        except KafkaError as error:
            self.world.counts[f"transaction failed: {type(error).__name__}"] += 1
            await self.abort(begun)
            return
        if self.random.random() < 0.75:
            await self.commit(begun)
        else:
            await self.abort(begun)

    def begin_transaction(self) -> Transaction:
        """Begin a transaction."""
        txn = self.core.txn
        assert txn is not None
        self.core.begin()
        self._undecided = 0
        begun = self._transaction = self.world.history.begin(self.name, self.transactional_id, *txn.producer)
        self.world.counts["transaction begun"] += 1
        return begun

    async def work(self, begun: Transaction) -> None:
        """Send records; sometimes stop, or sleep past the timeout."""
        random = self.random
        for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
            await self.send_some(begun.number)
            if random.random() < 0.2:
                await self.rest()
            if random.random() < 0.1:
                await self.core.flush(None)
        if self.happens(0.01):
            self.world.counts["process stopped in a transaction"] += 1
            self.is_replaced = random.random() < 0.5  # no process replaces it for some time
            raise StoppedError
        if self.happens(0.004):
            self.world.counts["overslept in a transaction"] += 1
            sleep = self.random.choice((self.reactor.pause, self.reactor.freeze))
            await sleep(self.world.swarm.transaction_timeout_ms * 1_500)

    async def commit(self, begun: Transaction) -> None:
        """Commit; abort if a record was refused. After the commit all records are acknowledged."""
        history, txn = self.world.history, self.core.txn
        assert txn is not None
        try:
            await self.finish(self.core.commit)
        except KafkaError as error:
            self.world.counts[f"commit failed: {type(error).__name__}"] += 1
            begun.ended_us = self.world.scheduler.now_us
            if txn.state is State.ABORTABLE_ERROR:
                await self.abort(begun)
                return
            raise
        self._decided(begun, Outcome.COMMITTED)
        for number in begun.sends:
            if history.sends[number].acked_us < 0:
                history.sends[number].acked_us = self.world.scheduler.now_us

    async def abort(self, begun: Transaction) -> None:
        """Abort. Raises the error that ends the process."""
        txn = self.core.txn
        assert txn is not None
        txn_error = txn.error if txn.state is State.FATAL_ERROR else None
        if txn_error is not None:
            raise txn_error
        await self.finish(self.core.abort)
        if not self._undecided:
            self._decided(begun, Outcome.ABORTED)

    def _decided(self, begun: Transaction, outcome: Outcome) -> None:
        begun.outcome, begun.ended_us = outcome, self.world.scheduler.now_us
        is_commit = outcome is Outcome.COMMITTED
        self.world.counts["transaction committed" if is_commit else "transaction aborted"] += 1
        self.world.counts["transaction without records"] += not begun.sends
        self.transactions += 1

    # The messages

    def sent(self, name: str, message: Any) -> None:
        """A commit may happen from its first request on."""
        begun = self._transaction
        if name == "EndTxn" and message.committed and begun is not None:
            self._undecided += 1
            if begun.end_us < 0:
                begun.end_us, begun.outcome = self.world.scheduler.now_us, Outcome.UNKNOWN

    def answered(self, name: str, version: int, message: Any, response: Any, sent_us: int) -> None:
        """A commit that was refused each time cannot have happened."""
        super().answered(name, version, message, response, sent_us)
        begun = self._transaction
        if name != "EndTxn" or not message.committed or begun is None or not response.error_code:
            return
        code = ErrorCode.of(response.error_code)
        self.world.counts["producer fenced"] += code is ErrorCode.PRODUCER_FENCED
        if code not in RETRIABLE or code in WITHOUT_EFFECT:
            self._undecided -= 1
            if not self._undecided:
                begun.outcome, begun.end_us = Outcome.ABORTED, -1

    def can_be_late(self, name: str, message: Any) -> bool:
        """Return False for EndTxn and TxnOffsetCommit of version 1: a late one cannot be distinguished from
        one of the next transaction."""
        is_apart = not self.is_version_1 and self.transactional_id not in self.world.upgraded
        return is_apart or name not in ("EndTxn", "TxnOffsetCommit")

    def _identified(self, response: Any, *, is_first: bool) -> None:
        world, last = self.world, self.world.last_epochs.get(self.transactional_id)
        is_new = response.producer_id not in world.known_producers
        if is_new and is_first and last is not None and last < _NEARLY_EXHAUSTED:
            world.counts["transactional id expired"] += 1
        if is_new and not is_first:
            world.counts["producer id rotated"] += 1
        world.known_producers.add(response.producer_id)
        world.last_epochs[self.transactional_id] = response.producer_epoch

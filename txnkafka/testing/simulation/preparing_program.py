"""``PreparingProgram``: an application that commits to Kafka and to a database, or to neither (KIP-939).

The database decides: its transaction stores the state of the prepared Kafka transaction. It is a variable
that no fault reaches. A process first fences earlier ones in the database, and then completes the transaction
that is open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from txnkafka.client.prepared_txn_state import PreparedTxnState
from txnkafka.errors import KafkaError
from txnkafka.testing.simulation.history import Outcome
from txnkafka.testing.simulation.sending import Sending
from txnkafka.testing.simulation.simulated_reactor import StoppedError
from txnkafka.testing.simulation.transactional_program import TransactionalProgram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.client.producer.producer_core import ProducerCore
    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import World
    from txnkafka.testing.simulation.history import Topic, Transaction


@dataclass(slots=True)
class Database:
    """The last prepared transaction that was committed here; ``owner`` is the newest process."""

    state: str = ""
    owner: int = 0

    def fence(self) -> int:
        """Let a process be the owner; return its number."""
        self.owner += 1
        return self.owner

    def commit(self, owner: int, state: PreparedTxnState) -> bool:
        """Commit a transaction with a state; return False for a process that is not the owner any more."""
        if owner == self.owner:
            self.state = str(state)
        return owner == self.owner


class PreparingProgram(TransactionalProgram):
    """A record counts as committed from the commit in the database on, whatever happens later."""

    def __init__(
        self, world: World, name: str, random: Random, topics: Sequence[Topic], transactional_id: str
    ) -> None:
        super().__init__(world, name, random, topics, transactional_id, is_version_1=False)
        self._limits = {}  # two-phase commit needs the last version of InitProducerId
        self._owner = 0
        self._has_left_one = True  # a transaction that a process must complete, perhaps

    @property
    def restarts(self) -> bool:
        """Return whether another process follows: in any case if an open transaction is left, because it
        has no timeout."""
        return not self.is_replaced and (not self.world.is_ending or self._has_left_one)

    async def process(self) -> None:
        """Complete the transaction of the process before, and run others."""
        database = self.database
        self._owner, self._has_left_one = database.fence(), True
        self.core = self.transactional_core()
        await self.finish(lambda: self.core.init(keep_prepared=True))
        await self._recover()
        self._has_left_one = False
        while not self.world.is_ending:
            await self.rest()
            await self.transaction()
        await self.core.close(1_000)

    @property
    def database(self) -> Database:
        """The database of all processes with the transactional id."""
        found: Database = self.world.databases.setdefault(self.transactional_id, Database())
        return found

    def transactional_core(self) -> ProducerCore:
        """Return the producer of a new process."""
        settings = {
            "transactional.id": self.transactional_id,
            "transaction.two.phase.commit.enable": "true",
            # no timeout of the transaction ends a batch that a recreated topic refuses again and again
            "delivery.timeout.ms": 1_000,
        }
        return self.new_core(self.transport(), **settings)

    async def _recover(self) -> None:
        txn = self.core.txn
        assert txn is not None
        if txn.prepared.has_transaction:
            is_decided = str(txn.prepared) == self.database.state
            self.world.counts["kept transaction " + ("committed" if is_decided else "aborted")] += 1
        await self._complete()

    async def _complete(self) -> None:
        state = PreparedTxnState.parse(self.database.state)
        await self.finish(lambda: self.core.complete(state))

    async def transaction(self) -> None:
        """Run one transaction. Raises the error that ends the process."""
        self._has_left_one = True
        begun = self.begin_transaction()
        try:
            await self.work(begun)
            await self.finish(self._prepare)
        except KafkaError as error:
            self.world.counts[f"transaction failed: {type(error).__name__}"] += 1
            await self.abort(begun)
            self._has_left_one = False
            return
        await self._incident("process stopped before its database committed")
        if self.random.random() < 0.75:
            self._decide(begun)
        await self._incident("process stopped after its database committed")
        await self._complete()
        self._decided(begun, begun.outcome if begun.outcome is Outcome.COMMITTED else Outcome.ABORTED)
        self._has_left_one = False

    async def _prepare(self) -> None:
        await self.core.prepare()

    async def work(self, begun: Transaction) -> None:
        """Send records; sometimes stop."""
        for _ in range(self.random.choice((0, 1, 1, 2, 3))):
            await self.send_some(begun.number)
        if self.happens(0.02):
            self.world.counts["process stopped before it prepared"] += 1
            raise StoppedError

    async def _incident(self, name: str) -> None:
        """Sometimes stop, or sleep for longer than any transaction timeout."""
        if self.happens(0.05):
            self.world.counts[name] += 1
            raise StoppedError
        if self.happens(0.02):
            self.world.counts["overslept when prepared"] += 1
            await self.reactor.pause(self.world.swarm.transaction_timeout_ms * 1_500)

    def _decide(self, begun: Transaction) -> None:
        """Commit in the database, unless another process owns it."""
        txn, now_us = self.core.txn, self.world.scheduler.now_us
        assert txn is not None
        if not self.database.commit(self._owner, txn.prepared):
            return
        begun.outcome, begun.end_us = Outcome.COMMITTED, now_us
        missing = [number for number in begun.sends if self.world.history.sends[number].acked_us < 0]
        if missing:
            self.world.complaints.append(f"{self.name} has prepared without the records {missing}")

    # The messages: the database decides, and not the answer to EndTxn

    def sent(self, name: str, message: Any) -> None:
        """A request leaves the client."""

    def answered(self, name: str, version: int, message: Any, response: Any, sent_us: int) -> None:
        """The response to a request has arrived."""
        Sending.answered(self, name, version, message, response, sent_us)

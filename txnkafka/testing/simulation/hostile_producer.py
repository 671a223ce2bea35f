"""``HostileProducer``: a scripted client that sends the requests which the package's producer never sends.

Some are those of other clients: version 1 clients that abort like librdkafka, drop batches that the broker
may have written, and reuse their sequences; clients that commit without the acknowledgement of their batches;
batches of several partitions in any order, at any time. Others are wrong, and must be refused: batches with
an older epoch, and with a sequence after a gap. After a fatal error another process begins with the same
transactional id.

Source: ``TransactionManager``, ``Sender``; KIP-360, KIP-890; ``rd_kafka_toppar_purge_queues``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.broker.requests import FetchPartition, FetchRequest, ProduceRequest
from txnkafka.error_codes import ErrorCode
from txnkafka.model import IsolationLevel
from txnkafka.testing.simulation.client import RETRIABLE, WITHOUT_EFFECT
from txnkafka.testing.simulation.commit_at_once import commit_at_once
from txnkafka.testing.simulation.history import Ack, Fence, Outcome
from txnkafka.testing.simulation.network import Request
from txnkafka.testing.simulation.producer import Producer
from txnkafka.testing.simulation.reader import fetch, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.env import Random
    from txnkafka.model import TopicPartition
    from txnkafka.testing.simulation.client import Steps, World
    from txnkafka.testing.simulation.history import Topic, Transaction
    from txnkafka.testing.simulation.producer import Outgoing

FATAL: Final = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.REQUEST_TIMED_OUT,  # the application's timeout
    }
)
_NEARLY_EXHAUSTED: Final = 32_700
_ATTACKS: Final = 0.1  # per transaction
_GAP: Final = 1_000  # of sequences: no late copy can fit later


class HostileProducer(Producer):
    """``is_replaced``: another process has the transactional id. ``transactions`` is the number of ended
    ones."""

    def __init__(
        self, world: World, name: str, random: Random, topics: Sequence[Topic], transactional_id: str,
        *, is_version_1: bool,
    ) -> None:  # fmt: skip
        super().__init__(world, name, random, topics)
        self.transactional_id: str = transactional_id
        self.is_version_1 = is_version_1
        self.version = 11 if is_version_1 else 13
        self._purge = world.swarm.purge if is_version_1 else 0.0
        self._has_purged = False  # in the present transaction
        self.can_be_late = not self._purge  # a broker cannot tell a late batch from the new one
        self.is_replaced = False
        self.transactions = 0
        self._starts = 0
        self._added: set[TopicPartition] = set()  # only in version 1
        self._is_begun = False  # a request was sent
        self._process = name

    def steps(self) -> Steps:
        """Run transactions until another process fences this one."""
        while not (self.is_replaced or self.world.is_ending):
            self.name = f"{self._process}.{self._starts}"
            self._starts += 1
            self._downgrade()
            error = yield from self._init(-1, -1)
            while error == ErrorCode.NONE and not (self.world.is_ending or self._is_deployed_again()):
                yield self.think()
                if self.random.random() < _ATTACKS:
                    yield from self._attack()
                error = yield from self._transaction()
            self.world.counts[f"process ended: {error.name}"] += 1
            yield self.think()

    def _init(self, producer_id: int, producer_epoch: int) -> Steps:
        """Get a producer id and epoch, or bump the epoch of the given ones (KIP-360)."""
        timeout_ms = self.world.swarm.transaction_timeout_ms

        def find(broker: Any, reply: Any) -> None:
            reply(broker.transactions.find(self.transactional_id))

        def perform(broker: Any, reply: Any) -> None:
            broker.transactions.init_producer_id(
                self.transactional_id, timeout_ms, producer_id, producer_epoch, reply
            )

        answer, _ = yield from self.ask("FindCoordinator", find)
        if answer is not None:
            answer, _ = yield from self.ask("InitProducerId", perform)
        if answer is None:
            return ErrorCode.REQUEST_TIMED_OUT
        if answer.error == ErrorCode.UNKNOWN_SERVER_ERROR and producer_epoch >= _NEARLY_EXHAUSTED:
            return ErrorCode.PRODUCER_FENCED  # a late request used the last epoch; same error as Kafka
        if answer.error == ErrorCode.NONE:
            if producer_id < 0:
                self._note_expiry(answer)
            self._identify(answer)
            self.world.history.fences.append(
                Fence(
                    self.transactional_id, self.producer_id, self.producer_epoch,
                    self.world.scheduler.now_us,
                )
            )  # fmt: skip
        return answer.error

    def _note_expiry(self, answer: Any) -> None:
        """Record the expiry of a transactional id: a new producer id before its epochs are exhausted."""
        last = self.world.last_epochs.get(self.transactional_id)
        is_new = answer.producer_id not in self.world.known_producers
        if is_new and last is not None and last < _NEARLY_EXHAUSTED:
            self.world.counts["transactional id expired"] += 1

    def _identify(self, answer: Any) -> None:
        """Adopt a new identity. Only a version 1 producer that no partition knows may begin with any
        sequence."""
        is_new = answer.producer_id not in self.world.known_producers
        if is_new and self.producer_id >= 0:
            self.world.counts["producer id rotated"] += 1
        self.world.known_producers.add(answer.producer_id)
        self.start_sequence = self.world.swarm.start_sequence if is_new and self.is_version_1 else 0
        self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
        self.is_upgraded = False
        self.world.last_epochs[self.transactional_id] = self.producer_epoch
        self.sequences.clear()

    def _upgrade(self) -> None:
        """Continue with version 2 in the same epoch, as clients do when the broker announces it."""
        if not self.is_replaced:
            self.is_version_1, self.version, self.start_sequence = False, 13, 0
            self.is_upgraded = True
            self.world.upgraded.add(self.transactional_id)
            self.world.counts["producer upgraded"] += 1

    def _is_deployed_again(self) -> bool:
        """Return True if an upgraded process is replaced by a version 1 process, which starts again."""
        has_gone_on = not self.is_version_1 and self.transactional_id in self.world.upgraded
        return has_gone_on and self.random.random() < self.world.swarm.upgrade

    def _downgrade(self) -> None:
        """Start a version 1 process again, once no version 2 process of the id can send requests."""
        if self.transactional_id in self.world.upgraded and self.world.is_alone(self):
            self.is_version_1, self.version = True, 11

    def _attack(self) -> Steps:
        """Send a batch that must be refused: its transaction is never committed."""
        known = sorted(self.sequences)
        epoch, partition = self.producer_epoch, self.random.choice(known or self._partitions)
        transaction = self.world.history.begin(
            self.name, self.transactional_id, self.producer_id, self.producer_epoch
        )
        if self.random.random() < 0.5 and epoch > 0:
            kind, self.producer_epoch = "older epoch", epoch - 1
            batch = self.batch(partition, transaction.number)
        elif known and not self.is_version_1 and not self.world.swarm.forgets_producers:
            kind = "gap of sequences"
            self.sequences[partition] += _GAP
            batch = self.batch(partition, transaction.number)
        else:
            return
        request = self._request([batch])
        request.can_be_late = False
        self.sequences[partition] = batch.sequence - (_GAP if epoch == self.producer_epoch else 0)
        sent_epoch, self.producer_epoch = self.producer_epoch, epoch
        (answer,) = yield [request]
        self.world.counts[f"hostile: {kind}"] += 1
        if answer is not None and answer[partition].error == ErrorCode.NONE:
            self.world.complaints.append(
                f"hostile: the broker takes a batch of {self.name} with an {kind}: {partition}, producer "
                f"{self.producer_id}, epoch {sent_epoch}, sequence {batch.sequence}"
            )

    # One transaction

    def _transaction(self) -> Steps:
        """Run one transaction. Returns NONE if the process can continue."""
        world, random = self.world, self.random
        if self.is_version_1 and not self._purge and random.random() < world.swarm.upgrade:
            self._upgrade()
        transaction = world.history.begin(
            self.name, self.transactional_id, self.producer_id, self.producer_epoch
        )
        world.counts["transaction begun"] += 1
        self._added.clear()
        self._is_begun = self._has_purged = False
        if not self.is_version_1 and random.random() < world.swarm.commit_at_once:
            return (yield from self._send_and_commit(transaction))
        error = ErrorCode.NONE
        for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
            error = yield from self._send(transaction)
            if error != ErrorCode.NONE or self._has_purged:
                break
            if random.random() < 0.1:
                yield from self._read(transaction)
            if random.random() < 0.2:
                yield self.think()
        if random.random() < 0.01 and not world.is_calm:
            world.counts["process stopped in a transaction"] += 1
            self.is_replaced = random.random() < 0.5  # no process replaces it for some time
            return ErrorCode.REQUEST_TIMED_OUT
        if error in FATAL:
            world.counts["producer fenced"] += error == ErrorCode.PRODUCER_FENCED
            return error
        if random.random() < 0.004 and not world.is_calm:
            world.counts["overslept in a transaction"] += 1
            yield world.swarm.transaction_timeout_ms * 1_500
        is_commit = error == ErrorCode.NONE and not self._has_purged and random.random() < 0.75
        return (yield from self._end(transaction, is_commit, had_error=error != ErrorCode.NONE))

    def _send(self, transaction: Transaction) -> Steps:
        """Send some batches to some partitions, all at once."""
        partitions = self.some_partitions()
        self._is_begun = True
        if self.random.random() < 0.05:
            error = yield from self._add_offsets("group")
            if error != ErrorCode.NONE:
                return error
        if self.is_version_1:
            error = yield from self._add(partitions)
            if error != ErrorCode.NONE:
                return error
        outgoing: list[Outgoing] = []
        for partition in partitions:
            for _ in range(self.random.choice((1, 1, 1, 2, 4))):
                outgoing.append(self.batch(partition, transaction.number))
        return (yield from self.produce(outgoing))

    def gives_up(self, left: list[Outgoing], requests: list[Request]) -> bool:
        """Purge batches that wait for a retry, once the broker no longer processes them."""
        if self.random.random() >= self._purge or not all(each.is_answered for each in requests):
            return False
        for batch in reversed(left):
            self.sequences[batch.partition] = batch.sequence
        self.world.counts["sequence given up"] += len(left)
        self._has_purged = True
        return True

    def _add(self, partitions: list[TopicPartition]) -> Steps:
        new = [partition for partition in partitions if partition not in self._added]
        if not new:
            return ErrorCode.NONE
        identity = self.transactional_id, self.producer_id, self.producer_epoch

        def perform(broker: Any, reply: Any) -> None:
            broker.transactions.add_partitions(*identity, new, reply)

        invoked_us = self.world.scheduler.now_us
        answer, _ = yield from self.ask("AddPartitionsToTxn", perform)
        return self._judged("AddPartitionsToTxn", answer, invoked_us, new)

    def _add_offsets(self, group_id: str) -> Steps:
        identity = self.transactional_id, self.producer_id, self.producer_epoch

        def perform(broker: Any, reply: Any) -> None:
            broker.transactions.add_offsets(*identity, group_id, reply)

        invoked_us = self.world.scheduler.now_us
        answer, _ = yield from self.ask("AddOffsetsToTxn", perform)
        return self._judged("AddOffsetsToTxn", answer, invoked_us, [])

    def _judged(self, api: str, answer: Any, invoked_us: int, added: list[TopicPartition]) -> ErrorCode:
        if answer is None:
            return ErrorCode.REQUEST_TIMED_OUT
        errors = list(answer.values()) if isinstance(answer, dict) else [answer.error]
        failed = [error for error in errors if error != ErrorCode.NONE]
        if failed:
            self.world.counts[f"{api}: {failed[0].name}"] += 1
            fenced = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE)
            return ErrorCode.PRODUCER_FENCED if failed[0] in fenced else failed[0]
        self._added.update(added)
        self.world.history.acks.append(Ack(api, self.producer_id, self.producer_epoch, invoked_us))
        return ErrorCode.NONE

    def _read(self, transaction: Transaction) -> Steps:
        """Read committed records of other producers within the transaction."""
        partition = self.some_partitions()[0]
        request = FetchRequest(
            [FetchPartition(partition, max(0, self.random.randrange(-20, 60)), 4_096)],
            IsolationLevel.READ_COMMITTED,
        )

        def perform(broker: Any, reply: Any) -> Any:
            return fetch(broker, request, reply)

        (answer,) = yield [Request("Fetch", perform)]
        if answer is not None and answer[0].error == ErrorCode.NONE:
            self.world.counts["read in a transaction"] += 1
            transaction.polls += [number for _, number in visible(answer[0])[0]]

    def _send_and_commit(self, transaction: Transaction) -> Steps:
        """Send some batches and EndTxn in one call, like a process that contains the broker, possibly after
        other batches. Without a response, the process ends."""
        if self.random.random() < 0.5:
            error = yield from self._send(transaction)
            if error != ErrorCode.NONE:
                return error if error in FATAL else (yield from self._end(transaction, False, had_error=True))
        outgoing = [self.batch(partition, transaction.number) for partition in self.some_partitions()]
        self._is_begun = True
        batches = {batch.partition: batch.content for batch in outgoing}
        produce = ProduceRequest(batches, self.transactional_id, version=self.version)
        identity = self.transactional_id, self.producer_id, self.producer_epoch
        request = Request("Produce and EndTxn", commit_at_once(produce, identity), can_be_late=False)
        self._note_commit(transaction)
        (ended,) = yield [request]
        if ended is None:
            transaction.ended_us = self.world.scheduler.now_us
            return ErrorCode.REQUEST_TIMED_OUT
        left, error = self._judge([outgoing], [ended.results], [request])
        if ended.answer is not None:
            self.world.counts["transaction committed at once"] += ended.error == ErrorCode.NONE
            is_uncertain = ended.answer.error in RETRIABLE - WITHOUT_EFFECT
            told = self._told(
                transaction, ended.answer, request.sent_us, is_commit=True, is_uncertain=is_uncertain
            )
            return error if told == ErrorCode.NONE else told
        transaction.outcome, transaction.end_us = Outcome.OPEN, -1
        if error == ErrorCode.NONE and left:
            error = yield from self.produce(left)
        if error in FATAL:
            return error
        return (yield from self._end(transaction, error == ErrorCode.NONE, had_error=error != ErrorCode.NONE))

    # Its end

    def _note_commit(self, transaction: Transaction) -> None:
        transaction.end_us, transaction.outcome = self.world.scheduler.now_us, Outcome.UNKNOWN

    def _end(self, transaction: Transaction, is_commit: bool, *, had_error: bool) -> Steps:
        """Commit or abort. Returns NONE if the process can continue."""
        world = self.world
        if not self._is_begun and not had_error and (is_commit or self.is_version_1):
            transaction.outcome = Outcome.ABORTED  # nothing was sent, so clients send no EndTxn
            return ErrorCode.NONE
        identity = self.transactional_id, self.producer_id, self.producer_epoch
        version = 0 if self.is_version_1 else 2

        def perform(broker: Any, reply: Any) -> None:
            broker.transactions.end_txn(*identity, is_commit, reply, client_transaction_version=version)

        invoked_us = world.scheduler.now_us
        if is_commit:
            self._note_commit(transaction)
        # In version 1, neither client nor broker can distinguish a late EndTxn from the next
        # transaction's; in version 2, it may count as a retry.
        can_be_late = not self.is_version_1 and self.transactional_id not in world.upgraded
        asked = self.ask("EndTxn", perform, can_be_late=can_be_late)
        answer, is_uncertain = yield from asked
        if answer is None:
            transaction.ended_us = world.scheduler.now_us
            return ErrorCode.REQUEST_TIMED_OUT
        error = self._told(transaction, answer, invoked_us, is_commit=is_commit, is_uncertain=is_uncertain)
        if error == ErrorCode.NONE and self.is_version_1 and had_error:
            return (yield from self._init(self.producer_id, self.producer_epoch))
        return error

    def _told(
        self, transaction: Transaction, answer: Any, invoked_us: int, *, is_commit: bool,
        is_uncertain: bool = False,
    ) -> ErrorCode:  # fmt: skip
        """Record the response to EndTxn, and adopt its identity."""
        world = self.world
        transaction.ended_us = world.scheduler.now_us
        error: ErrorCode = answer.error
        if error != ErrorCode.NONE:
            world.counts[f"EndTxn: {error.name}"] += 1
            world.counts["producer fenced"] += error == ErrorCode.PRODUCER_FENCED
            if is_commit and not is_uncertain:
                transaction.outcome = Outcome.ABORTED
            return error
        transaction.outcome = Outcome.COMMITTED if is_commit else Outcome.ABORTED
        world.counts["transaction committed" if is_commit else "transaction aborted"] += 1
        if not transaction.sends:
            world.counts["transaction without records"] += 1
        self.transactions += 1
        world.history.acks.append(Ack("EndTxn", self.producer_id, self.producer_epoch, invoked_us))
        if not self.is_version_1:
            self._identify(answer)
        return ErrorCode.NONE

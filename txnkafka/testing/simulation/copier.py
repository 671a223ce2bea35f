"""``Copier``: reads a topic as a member of a group, and copies each record in a transaction that also commits
the offsets: each record is copied exactly once, despite failures of members.

Every third transaction is aborted on purpose. After an abort, or after missing a generation of the group, a
copier continues at the committed offsets.

Source: ``KafkaProducer.sendOffsetsToTransaction``; KIP-98, KIP-447.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.error_codes import ErrorCode
from txnkafka.model import IsolationLevel, ProducerIdAndEpoch, TopicPartition
from txnkafka.testing.simulation.batches import MOST_RECORDS
from txnkafka.testing.simulation.client import BACKOFF_US
from txnkafka.testing.simulation.membership import LEFT_OUT, judged, to_commit
from txnkafka.testing.simulation.memberships import new_membership
from txnkafka.testing.simulation.producer import KEYS
from txnkafka.testing.simulation.reader import Reader
from txnkafka.testing.simulation.transactional_producer import FATAL, TransactionalProducer

if TYPE_CHECKING:
    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import Steps, World
    from txnkafka.testing.simulation.history import Topic, Transaction
    from txnkafka.testing.simulation.membership import Membership
    from txnkafka.testing.simulation.producer import Outgoing

COPIERS: Final = "copiers"
"""The group of the copiers."""
_STOPPED: Final = ErrorCode.REQUEST_TIMED_OUT
_ABORTED_OF: Final = 3  # transactions
_FENCED: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE})
Found = dict[TopicPartition, list[tuple[int, int]]]


class Copier(TransactionalProducer):
    """Copies the first of ``topics`` to the second, which has the same number of partitions."""

    def __init__(
        self, world: World, name: str, random: Random, topics: tuple[Topic, Topic], transactional_id: str,
        *, instance_id: str | None, is_version_1: bool,
    ) -> None:  # fmt: skip
        source, target = topics
        super().__init__(world, name, random, [target], transactional_id, is_version_1=is_version_1)
        self._source, self._instance_id = source, instance_id
        self.membership = self._new_membership()
        self.reader = Reader(world, name, random, IsolationLevel.READ_COMMITTED)
        self._target = target.name
        self._attempts = 0
        self._used_us = 0  # last use of the transactional id at the coordinator

    def _new_membership(self) -> Membership:
        protocols = self.world.swarm.copier_protocols
        return new_membership(self, protocols, COPIERS, [self._source], self._instance_id)

    def steps(self) -> Steps:
        """Run generations, in successive processes, until another process takes the transactional id."""
        while not self.is_replaced:
            self.name = self.reader.process = f"{self._process}.{self._starts}"
            self._starts += 1
            error = yield from self._began()
            while error == ErrorCode.NONE:
                error = yield from self.membership.join()
                if error == ErrorCode.NONE:
                    error = yield from self._generation()
            self.world.counts[f"copier ended: {error.name}"] += 1
            self.world.counts["instance fenced"] += error == ErrorCode.FENCED_INSTANCE_ID
            if self.random.random() < 0.3:
                yield from self.membership.leave()
            self.membership = self._new_membership()
            yield self.think()

    def _began(self) -> Steps:
        self._used_us = self.world.scheduler.now_us
        return (yield from self._init(-1, -1))

    def _generation(self) -> Steps:
        """Copy until the next generation begins (NONE), or the process ends."""
        membership, reader = self.membership, self.reader
        reader.forget()
        while True:
            error = yield from membership.keep_alive()
            if error == ErrorCode.NONE and not reader.positions:
                error, positions = yield from membership.committed()
                for partition, position in positions.items():
                    reader.seek(partition, position)
            if error == ErrorCode.NONE:
                error = yield from self._copy()
            if error != ErrorCode.NONE:
                return ErrorCode.NONE if error in LEFT_OUT else error

    def _copy(self) -> Steps:
        """Run one transaction if records are available. Returns NONE if the member can continue."""
        world = self.world
        found = yield from self._next()
        if not found:
            if world.scheduler.now_us - self._used_us > world.swarm.transactional_id_expiration_ms * 500:
                return (yield from self._began())  # otherwise the id would expire
            yield self.random.randrange(BACKOFF_US, 4 * BACKOFF_US)
            return ErrorCode.NONE
        transaction = world.history.begin(
            self.name, self.transactional_id, self.producer_id, self.producer_epoch
        )
        transaction.polls += [number for values in found.values() for _, number in values]
        self._added.clear()
        self._is_begun, self._has_purged = True, False
        error = yield from self._write(transaction, found)
        if error == ErrorCode.NONE:
            error = yield from self._incident()
        if error == ErrorCode.NONE:
            error = yield from self._send_offsets(transaction)
        if error == ErrorCode.NONE:
            error = yield from self._incident()
        if error in FATAL:
            world.counts["producer fenced"] += error == ErrorCode.PRODUCER_FENCED
            return error
        self._attempts += 1
        is_whole = error == ErrorCode.NONE and not self._has_purged
        is_commit = is_whole and self._attempts % _ABORTED_OF != 0
        self._used_us = world.scheduler.now_us
        ended = yield from self._end(transaction, is_commit, had_error=error != ErrorCode.NONE)
        if ended == ErrorCode.NONE:
            world.counts["copies committed" if is_commit else "copies aborted"] += 1
        if not is_commit:
            self.reader.forget()
        return ended or (error if self._ends_membership(error) else ErrorCode.NONE)

    def _ends_membership(self, error: ErrorCode) -> bool:
        return error in LEFT_OUT or error == ErrorCode.FENCED_INSTANCE_ID

    def _next(self) -> Steps:
        """Fetch and return the next records of the assigned partitions."""
        reader = self.reader
        found: Found = {}
        if reader.positions:
            (answer,) = yield [reader.request(list(reader.positions))]
            for each in answer or ():
                if each.error != ErrorCode.NONE:
                    self.world.counts[f"Fetch: {each.error.name}"] += 1
                elif values := reader.take(each)[0]:
                    found[each.partition] = values
        return found

    def _write(self, transaction: Transaction, found: Found) -> Steps:
        """Send the copies to the partitions with the same numbers."""
        outgoing: list[Outgoing] = []
        for partition, values in found.items():
            target = TopicPartition(self._target, partition.partition)
            for first in range(0, len(values), MOST_RECORDS):
                part = values[first : first + MOST_RECORDS]
                outgoing.append(self._copies(transaction, partition, target, part))
        if self.is_version_1:
            error = yield from self._add([batch.partition for batch in outgoing])
            if error == ErrorCode.NONE:
                error = yield from self._add_offsets(COPIERS)
            if error != ErrorCode.NONE:
                return error
        return (yield from self.produce(outgoing))

    def _copies(
        self,
        transaction: Transaction,
        source: TopicPartition,
        target: TopicPartition,
        values: list[tuple[int, int]],
    ) -> Outgoing:
        history, now_us = self.world.history, self.world.scheduler.now_us
        sends = []
        for offset, number in values:
            send = history.send(self.name, target, KEYS[number % len(KEYS)], transaction.number, now_us)
            send.source = source, offset
            sends.append(send)
        self.world.counts["records copied"] += len(sends)
        return self.batch_of(target, sends)

    def _send_offsets(self, transaction: Transaction) -> Steps:
        """Commit the new positions in the transaction."""
        identity = self.membership.identity
        producer = ProducerIdAndEpoch(self.producer_id, self.producer_epoch)
        commit = self.membership.new_commit(self.reader.positions, transaction.number)
        version = 4 if self.is_version_1 else 5

        def perform(broker: Any, reply: Any) -> None:
            offsets = to_commit(commit.offsets, broker)
            broker.commit_in_transaction(
                identity, self.transactional_id, producer, offsets, reply, version=version
            )

        # A late commit of a version 1 client would become part of its next transaction, as in Kafka.
        asked = self.ask("TxnOffsetCommit", perform, can_be_late=not self.is_version_1)
        answer, is_uncertain = yield from asked
        error = judged(self, commit, answer, is_uncertain=is_uncertain)
        if error != ErrorCode.NONE:
            self.world.counts[f"TxnOffsetCommit: {error.name}"] += 1
        if self._ends_membership(error):
            self.world.counts[f"offsets of a {self.membership.kind} refused"] += 1
        if error == ErrorCode.UNKNOWN_MEMBER_ID:
            self.membership.forget()
        return ErrorCode.PRODUCER_FENCED if error in _FENCED else error

    def _incident(self) -> Steps:
        """Draw an incident within a transaction. Returns an error if the process stops."""
        world = self.world
        chance = 1.0 if world.is_calm else self.random.random()
        if chance < 0.01:
            world.counts["copier stopped in a transaction"] += 1
            return _STOPPED
        if chance < 0.04:
            world.counts["copier overslept in a transaction"] += 1
            yield self.random.randrange(500, 3_000) * world.swarm.session_timeout_ms
        return ErrorCode.NONE

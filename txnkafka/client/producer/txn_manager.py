"""``TransactionManager``: the identity, state and sequences of an idempotent or transactional producer.

It decides, and sends nothing: ``Sender`` sends batches, ``TxnRequests`` sends the requests of transactions.
Source: ``TransactionManager`` of Apache Kafka 4.3 (KIP-98, KIP-360, KIP-890, KIP-939).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NoReturn

from txnkafka.client.prepared_txn_state import PreparedTxnState
from txnkafka.client.producer.producer_batch import NO_PRODUCER
from txnkafka.client.producer.sequences import Sequences
from txnkafka.client.producer.txn_state import ADVICE, PRODUCE_FATAL, SOURCES, State
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import (
    IllegalStateError,
    KafkaError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    TransactionAbortableError,
    error_for,
)
from txnkafka.model import NO_OFFSET, NO_SEQUENCE, ProducerIdAndEpoch

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.client.producer.producer_batch import ProducerBatch
    from txnkafka.model import TopicPartition

LOG = logging.getLogger("txnkafka.client")
_LAST_EPOCH: Final = 32_767
_ENDING: Final = (State.COMMITTING_TRANSACTION, State.ABORTING_TRANSACTION)
_FAILED: Final = (State.ABORTABLE_ERROR, State.FATAL_ERROR)
_NOT_PREPARED: Final = PreparedTxnState()


class TransactionManager:
    """``transactional_id`` is None for an idempotent producer without transactions. ``on_change`` is called
    after each change of ``state``.

    ``partitions`` are in the transaction; ``new_partitions`` must be added to it before anything is sent to
    them, with transaction versions 0 and 1. ``is_started``: the coordinator may know the transaction.
    ``prepared`` is the prepared transaction, which an earlier producer may have begun; ``may_complete``: it
    has ended before this producer kept it, so that nothing is left to complete (KIP-939)."""

    def __init__(self, transactional_id: str | None, on_change: Callable[[], None]) -> None:
        self.transactional_id = transactional_id
        self.is_transactional = transactional_id is not None
        self.state = State.UNINITIALIZED
        self.error: KafkaError | None = None
        self.producer: ProducerIdAndEpoch = NO_PRODUCER
        self.is_v2 = False  # transaction.version 2 (KIP-890)
        self.can_bump = False  # InitProducerId takes a producer (KIP-360)
        self.needs_bump = False
        self.is_started = False
        self.prepared = _NOT_PREPARED
        self.may_complete = False
        self.partitions: set[TopicPartition] = set()
        self.new_partitions: set[TopicPartition] = set()
        self._on_change = on_change
        self._entries: dict[TopicPartition, Sequences] = {}
        self._unresolved: set[TopicPartition] = set()
        self._to_renumber: set[TopicPartition] = set()

    # States

    @property
    def has_producer(self) -> bool:
        """Return whether the broker has given a producer id."""
        return self.producer is not NO_PRODUCER

    @property
    def is_ending(self) -> bool:
        """Return whether a commit or abort is under way."""
        return self.state in _ENDING

    @property
    def has_failed(self) -> bool:
        """Return whether the state is an error."""
        return self.state in _FAILED

    @property
    def name(self) -> str:
        """The producer, for messages."""
        producer_id, epoch = self.producer
        shown = f"producer id {producer_id}, epoch {epoch}"
        return f"transactional.id {self.transactional_id!r} ({shown})" if self.is_transactional else shown

    def transition(self, target: State, error: KafkaError | None = None) -> None:
        """Enter a state. Raises IllegalStateError, and changes nothing, if it cannot follow."""
        if self.state not in SOURCES[target]:
            advice = f": {ADVICE[target]}" if target in ADVICE else ""
            raise IllegalStateError(f"{self.name}: {target.name} cannot follow {self.state.name}{advice}")
        if LOG.isEnabledFor(logging.DEBUG):
            LOG.debug("%s: %s to %s", self.name, self.state.name, target.name)
        self.state, self.error = target, error
        self._on_change()

    def check(self) -> None:
        """Raise the error of the state, if it has one."""
        if self.has_failed:
            self.raise_error()

    def raise_error(self) -> NoReturn:
        """Raise the error of the state, with the next step."""
        cause = self.error
        if isinstance(cause, ProducerFencedError):
            raise ProducerFencedError(
                f"{self.name} was fenced by another producer with the same transactional.id: close this one"
            ) from cause
        if self.state is State.FATAL_ERROR:
            code = ErrorCode.UNKNOWN_SERVER_ERROR if cause is None else cause.code
            raise error_for(code, f"{self.name} has failed, close it: {cause}") from cause
        raise TransactionAbortableError(f"{self.name}: abort the transaction: {cause}") from cause

    def check_in_transaction(self, what: str) -> None:
        """Raise IllegalStateError unless a transaction is open; the error of the state, if it has one."""
        self.check()
        if self.state is not State.IN_TRANSACTION:
            step = "begin_transaction" if self.state is State.READY else "init_transactions"
            step = "wait for the end of the commit or abort" if self.is_ending else f"call {step} first"
            if self.state is State.PREPARED_TRANSACTION:
                step = "call complete_transaction, commit_transaction or abort_transaction first"
            raise IllegalStateError(f"{self.name} cannot {what} in the state {self.state.name}: {step}")

    def check_may_end(self, what: str) -> None:
        """Raise the errors of ``check_in_transaction``, unless the transaction is open or prepared."""
        if self.state is not State.PREPARED_TRANSACTION:
            self.check_in_transaction(what)

    def fail(self, error: KafkaError) -> None:
        """Enter FATAL_ERROR. The first fatal error stays."""
        if self.state is not State.FATAL_ERROR:
            LOG.warning("%s failed: %s", self.name, error)
            self.transition(State.FATAL_ERROR, error)

    def fail_transaction(self, error: KafkaError) -> None:
        """Enter ABORTABLE_ERROR, unless no transaction is open or it is being aborted."""
        if self.state in SOURCES[State.ABORTABLE_ERROR]:
            LOG.info("%s: the transaction must be aborted: %s", self.name, error)
            self.transition(State.ABORTABLE_ERROR, error)

    def fail_for_bump(self, error: KafkaError) -> None:
        """Enter ABORTABLE_ERROR, with a new epoch after the abort; FATAL_ERROR if the broker gives none."""
        if not (self.can_bump or self.is_v2):
            self.fail(error)
            return
        self.needs_bump |= not self.is_v2
        self.fail_transaction(error)

    # Transactions

    def add_partition(self, partition: TopicPartition) -> None:
        """A batch for a partition was begun."""
        if not self.is_transactional or partition in self.partitions:
            return
        if self.is_v2:
            self.partitions.add(partition)
            self.is_started = True
        else:
            self.new_partitions.add(partition)

    def partitions_added(self, partitions: set[TopicPartition]) -> None:
        """AddPartitionsToTxn was answered."""
        self.partitions |= partitions
        self.is_started = True
        self._on_change()

    def use_version(self, *, is_v2: bool, at_init: bool) -> None:
        """Take the transaction version of the cluster for the next transaction. The first one of version 2
        needs a new epoch, which separates it from the last one of version 1."""
        self.needs_bump |= is_v2 and not self.is_v2 and not at_init
        self.is_v2 = is_v2

    def initialized(self, producer: ProducerIdAndEpoch, kept: PreparedTxnState | None = None) -> None:
        """InitProducerId was answered. ``kept`` is the open transaction that it has kept, if it was told to
        keep one."""
        self.producer = producer
        self.may_complete = kept is not None and not kept.has_transaction
        if self.is_transactional:
            self._entries.clear()
            self._unresolved.clear()
        else:
            self._renumber()
        if kept is None or not kept.has_transaction:
            self.transition(State.READY)
        else:
            self.is_started, self.prepared = True, kept
            self.transition(State.PREPARED_TRANSACTION)

    @property
    def is_kept(self) -> bool:
        """Return whether an earlier producer began the prepared transaction, so that its partitions are
        unknown."""
        return self.prepared.has_transaction and self.prepared != PreparedTxnState(*self.producer)

    def prepare(self) -> None:
        """Close the transaction for records, until it is completed."""
        self.check_in_transaction("prepare the transaction")
        self.prepared = PreparedTxnState(*self.producer)
        self.transition(State.PREPARED_TRANSACTION)

    def ended(self, producer: ProducerIdAndEpoch | None) -> None:
        """EndTxn was answered, with the next id and epoch in version 2, or was not necessary."""
        if producer is not None:
            self.producer = producer
            self._entries.clear()
            self._unresolved.clear()
        needs_bump, self.needs_bump = self.needs_bump, False
        self.is_started = False
        self.prepared = _NOT_PREPARED
        self.may_complete = False
        self.partitions.clear()
        self.new_partitions.clear()
        self.transition(State.INITIALIZING if needs_bump else State.READY)

    # Batches

    def entry(self, partition: TopicPartition) -> Sequences:
        """Return the sequences of a partition."""
        found = self._entries.get(partition)
        if found is None:
            found = self._entries[partition] = Sequences()
        return found

    def may_send(self, batch: ProducerBatch) -> bool:
        """Return whether a batch may be sent now.

        A batch that is repeated waits for those before it. A new batch waits while the first one in flight is
        repeated (unlike Java): a broker knows the last five batches, and that one must be among them."""
        partition = batch.partition
        if self.is_transactional and partition not in self.partitions:
            return False
        entry = self.entry(partition)
        if batch.base_sequence == NO_SEQUENCE:
            if not entry.in_flight:
                return entry.unresolved is None
            is_repeated = entry.in_flight[0].attempts > 1
            return entry.unresolved is None and entry.producer == self.producer and not is_repeated
        return batch not in entry.in_flight or entry.in_flight[0] is batch

    def number(self, batch: ProducerBatch) -> None:
        """Give a batch its sequence, before it is sent first."""
        entry = self.entry(batch.partition)
        if entry.producer != self.producer:
            entry.restart(self.producer)
        entry.number(batch)

    def acknowledged(self, batch: ProducerBatch, base_offset: int) -> None:
        """A batch is in the log."""
        self.entry(batch.partition).acknowledged(batch, base_offset)

    def failed(self, batch: ProducerBatch, error: KafkaError, *, is_refused: bool) -> None:
        """A batch has failed for good. ``is_refused``: it is certainly not in the log."""
        self.fail_batch(error)
        entry = self.entry(batch.partition)
        entry.remove(batch)
        if self.state is State.FATAL_ERROR or batch.base_sequence == NO_SEQUENCE:
            return
        if isinstance(error, OutOfOrderSequenceError) and not self.is_transactional:
            self._bump_for(batch.partition)
        elif error.code is ErrorCode.UNKNOWN_PRODUCER_ID:
            self._entries.pop(batch.partition, None)
            self._unresolved.discard(batch.partition)
        elif is_refused and not self.is_transactional:
            self._bump_for(batch.partition)
        elif is_refused:
            entry.failed(batch)

    def fail_batch(self, error: KafkaError) -> None:
        """Enter the state that a failed record leads to."""
        if error.code in PRODUCE_FATAL:
            self.fail(error)
        elif self.is_transactional and self.state is not State.FATAL_ERROR:
            if error.retriable or error.code is ErrorCode.INVALID_TXN_STATE:
                made = TransactionAbortableError(f"a record was not acknowledged: {error}")
                made.__cause__ = error
                error = made
            if self.can_bump and not self.is_v2 and not self.is_ending:
                self.needs_bump = True
            self.fail_transaction(error)

    def may_retry(self, code: ErrorCode, batch: ProducerBatch, log_start_offset: int) -> bool:
        """Return whether a refused batch is sent again, with a new epoch where that helps."""
        entry = self.entry(batch.partition)
        if code is ErrorCode.UNKNOWN_PRODUCER_ID:
            if log_start_offset == NO_OFFSET or batch.has_new_sequence:
                return True
            if self.is_transactional:
                is_lost = entry.last_offset < log_start_offset  # with the head of the log
                if is_lost:
                    entry.restart(self.producer)
                return is_lost
            self._bump_for(batch.partition)
            return True
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            is_next = entry.is_next(batch.base_sequence)
            if entry.unresolved is None and (batch.has_new_sequence or not is_next):
                return True  # a batch before it is missing still
            if self.is_transactional:
                return False
            if entry.unresolved is None or batch.base_sequence == entry.unresolved:
                self._bump_for(batch.partition)
            return True
        return code.retriable

    def expired(self, batch: ProducerBatch) -> None:
        """A batch that was sent is given up; the log may have it."""
        self.entry(batch.partition).mark_unresolved(batch)
        self._unresolved.add(batch.partition)

    def resolve(self) -> None:
        """Find out about expired batches, once no batch of their partition is in flight."""
        for partition in list(self._unresolved):
            entry = self.entry(partition)
            if entry.in_flight:
                continue
            self._unresolved.discard(partition)
            entry.unresolved = None
            if entry.is_next(entry.next):
                continue  # a batch after it was acknowledged
            if self.is_transactional:
                self.fail_for_bump(
                    error_for(ErrorCode.REQUEST_TIMED_OUT, f"{partition}: records were never acknowledged")
                )
            else:
                self._bump_for(partition)

    def bump(self) -> None:
        """Raise the epoch of a producer without transactions, if a batch made it necessary."""
        if self.is_transactional or not self.needs_bump or not self.has_producer:
            return
        self.needs_bump = False
        if self.producer.producer_epoch == _LAST_EPOCH:
            self.producer = NO_PRODUCER
            self.transition(State.UNINITIALIZED)
            return
        self.producer = ProducerIdAndEpoch(self.producer.producer_id, self.producer.producer_epoch + 1)
        self._renumber()

    def _bump_for(self, partition: TopicPartition) -> None:
        self.needs_bump = True
        self._to_renumber.add(partition)

    def _renumber(self) -> None:
        partitions, self._to_renumber = self._to_renumber, set()
        for partition in partitions:
            self.entry(partition).restart(self.producer)
            self._unresolved.discard(partition)

"""``JoinTransaction``: partitions join the transaction of a producer with their first data (KIP-890).

The coordinator adds the partition (Produce 12, TxnOffsetCommit 5 and later), or confirms that the client
has added it. Data that waits for a new record of the coordinator is appended as soon as the record is, so
both share a flush; it is acknowledged when both are durable. Later data of the producer, and a retry, also
wait for the record, although they find the transaction open in the partition.

Source: ``AddPartitionsToTxnManager``; kafka-protocol 2.4 and 2.8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from txnkafka.broker.coordinators.unknown_transactions import abort_if_unknown
from txnkafka.coordinator.old_clients import error_for
from txnkafka.coordinator.txn.open_transactions import has_joined
from txnkafka.coordinator.txn.txn_events import AddPartitions, Answer, VerifyPartitions
from txnkafka.error_codes import ErrorCode
from txnkafka.storage.log.verification import NO_GUARD

if TYPE_CHECKING:
    from txnkafka.broker.coordinators.transactions import Transactions
    from txnkafka.broker.services import Services
    from txnkafka.model import TopicPartition
    from txnkafka.storage.log.partition_log import PartitionLog


class Joiner(Protocol):
    """The data of a request for one partition."""

    @property
    def partition(self) -> TopicPartition:
        """The partition that joins."""

    @property
    def is_appended(self) -> bool:
        """True once an append was tried."""

    def append_joined(self) -> None:
        """Append, unless that was done: the coordinator's record is appended, or it has confirmed the
        partition. ``JoinTransaction.on_disk`` follows when the data is durable or never will be."""

    def refuse_join(self, error: ErrorCode) -> None:
        """Refuse the data: the coordinator has refused the partition. Nothing is appended."""

    def joined(self, error: ErrorCode) -> None:
        """Answer: the data is durable or never will be, and the coordinator has answered with ``error``."""


class JoinTransaction:
    """One request of a transactional producer. ``joiners`` are the partitions about which the coordinator is
    asked; ``is_implicit_add``: it adds them."""

    __slots__ = (
        "_answer", "_api", "_on_disk", "_producer", "_services", "_transactional_id", "_transactions",
        "_version", "is_implicit_add", "joiners",
    )  # fmt: skip

    def __init__(
        self,
        services: Services,
        transactions: Transactions,
        transactional_id: str,
        producer: tuple[int, int],
        *,
        api: str,
        version: int,
        is_implicit_add: bool,
    ) -> None:
        self._services = services
        self._transactions = transactions
        self._api, self._version = api, version
        self._transactional_id = transactional_id
        self._producer = producer  # id and epoch
        self.is_implicit_add = is_implicit_add
        self.joiners: list[Joiner] = []  # empty after the answer
        self._on_disk: list[Joiner] = []  # wait only for the answer
        self._answer: ErrorCode | None = None

    def must_ask(self, log: PartitionLog, sequence: int) -> bool:
        """Begin the verification of the producer in a log; return True if the coordinator must be asked
        before the append. Not if the transaction is open in the log and its coordinator will end it. Raises
        InvalidProducerEpochError."""
        if self._start_verification(log, sequence) != NO_GUARD:
            return self.is_implicit_add or log.config.transaction_partition_verification_enable
        # open, perhaps beside a record in flight, or until its marker arrives
        if not self.is_implicit_add:
            return False
        owner = self._transactions.coordinator.settled(self._transactional_id)
        return not has_joined(owner, log.topic_partition, *self._producer)

    def guard(self, log: PartitionLog, sequence: int) -> int:
        """Return the guard for an append after the coordinator's answer. The transaction that was open when
        the request arrived may have got its marker. Raises InvalidProducerEpochError."""
        pending = log.verification.pending(self._producer[0])
        if pending is not None:
            return pending.guard
        return self._start_verification(log, sequence) if self.is_implicit_add else NO_GUARD

    def _start_verification(self, log: PartitionLog, sequence: int) -> int:
        return log.verification.maybe_start(
            log.producers, *self._producer, sequence,
            supports_epoch_bump=self.is_implicit_add, now_ms=self._services.now_ms,
        )  # fmt: skip

    def ask(self) -> None:
        """Send the partitions of ``joiners`` to the coordinator."""
        partitions = frozenset([joiner.partition for joiner in self.joiners])
        identity = self._transactional_id, *self._producer, partitions
        coordinator, now_ms = self._transactions.coordinator, self._services.now_ms
        if self.is_implicit_add:
            event = AddPartitions(*identity, client_transaction_version=2)
            coordinator.handle(event, self._answered, now_ms, on_append=self._append)
        else:
            coordinator.handle(VerifyPartitions(*identity), self._answered, now_ms)

    def confirm(self) -> None:
        """Record that the coordinator need not be asked."""
        self._answer = ErrorCode.NONE

    def on_disk(self, joiner: Joiner) -> None:
        """Record that the data of a joiner is durable, or never will be."""
        if self._answer is None:
            self._on_disk.append(joiner)
        else:
            joiner.joined(self._answer)

    def _append(self) -> None:
        for joiner in self.joiners:
            joiner.append_joined()

    def _answered(self, answer: Answer) -> None:
        if answer.error == ErrorCode.NONE:
            self._refuse_missing(answer)
            self._append()
            self._answer = ErrorCode.NONE
        else:
            self._answer = self.error(answer.error)
            for joiner in self.joiners:
                if joiner.is_appended:  # the record that was to be durable with the data is not
                    transactions = self._transactions
                    abort_if_unknown(
                        self._services, transactions.coordinator, transactions.markers, joiner.partition,
                        transactional_id=self._transactional_id, producer=self._producer,
                    )  # fmt: skip
                else:
                    joiner.refuse_join(self._answer)
        on_disk, self._on_disk, self.joiners = self._on_disk, [], []
        for joiner in on_disk:
            joiner.joined(self._answer)

    def _refuse_missing(self, answer: Answer) -> None:
        for joiner in self.joiners if answer.missing else ():
            if joiner.partition in answer.missing:
                joiner.refuse_join(self.error(ErrorCode.TRANSACTION_ABORTABLE))

    def error(self, error: ErrorCode) -> ErrorCode:
        """Return the error that a client of this version of the API gets."""
        return error_for(self._api, self._version, error)

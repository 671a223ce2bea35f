"""``TxnOffsetCommit``: offsets that are committed with a transaction.

As with Produce, the partition of ``__consumer_offsets`` joins the transaction first: the coordinator adds it
(version 5 and later), or says whether the client has added it (KIP-890). Then the group is asked, and the
offsets are appended; they share a flush with the coordinator's record, and are answered when both are
durable.

Source: ``GroupCoordinatorService.commitTransactionalOffsets``; kafka-protocol 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from txnkafka.broker.durability import error_code
from txnkafka.broker.unknown_transactions import abort_if_unknown
from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC
from txnkafka.coordinator.old_clients import error_for
from txnkafka.coordinator.txn_events import AddPartitions, Answer, VerifyPartitions
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError
from txnkafka.model import NO_SEQUENCE, TopicPartition
from txnkafka.storage.log.verification import NO_GUARD

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.broker.broker import Broker
    from txnkafka.coordinator.group_requests import Identity, Offsets
    from txnkafka.model import ProducerIdAndEpoch

__all__ = ["TxnOffsetCommit"]

IMPLICIT_ADD: Final = 5  # the first version that adds the group to the transaction


@dataclass(slots=True, eq=False)
class TxnOffsetCommit:
    """One request under way; ``version`` is that of the API."""

    broker: Broker
    identity: Identity
    transactional_id: str
    producer: ProducerIdAndEpoch
    offsets: Offsets
    reply: Callable[[dict[TopicPartition, ErrorCode]], None]
    version: int
    appended: dict[TopicPartition, ErrorCode] | None = None  # what became of the offsets, when it is durable
    joined: ErrorCode | None = None  # what became of the coordinator's record
    is_append_begun: bool = False

    def run(self) -> None:
        """Ask the transaction coordinator, if the transaction is not open in the partition."""
        partitions = self.broker.groups.coordinator.partitions
        here = partitions.of(self.identity.group_id)
        if isinstance(here, ErrorCode):
            self._refuse(here)
            return
        partition = TopicPartition(CONSUMER_OFFSETS_TOPIC, partitions.number_of(self.identity.group_id))
        log = self.broker.logs.get(partition)
        if log is None:
            self._refuse(ErrorCode.NOT_COORDINATOR)
            return
        is_implicit = self.version >= IMPLICIT_ADD
        try:
            guard = log.verification.maybe_start(
                log.producers, *self.producer, NO_SEQUENCE,
                supports_epoch_bump=is_implicit, now_ms=self.broker.now_ms,
            )  # fmt: skip
        except KafkaError as error:
            self._refuse(error_for("TxnOffsetCommit", self.version, error_code(error)))
            return
        is_verified = is_implicit or log.config.transaction_partition_verification_enable
        if guard == NO_GUARD or not is_verified:
            self.joined = ErrorCode.NONE
            self._append()
            return
        identity = self.transactional_id, *self.producer, frozenset((partition,))
        coordinator = self.broker.transactions.coordinator
        if is_implicit:
            event = AddPartitions(*identity, client_transaction_version=2)
            coordinator.handle(event, self._answered, self.broker.now_ms, on_append=self._append)
        else:
            coordinator.handle(VerifyPartitions(*identity), self._answered, self.broker.now_ms)

    def _append(self) -> None:
        if not self.is_append_begun:
            self.is_append_begun = True
            self.broker.groups.coordinator.commit(
                self.identity, self.offsets, self._durable, self.broker.now_ms, producer=self.producer
            )

    def _durable(self, errors: dict[TopicPartition, ErrorCode]) -> None:
        self.appended = errors
        self._answer()

    def _answered(self, answer: Answer) -> None:
        error = ErrorCode.TRANSACTION_ABORTABLE if answer.missing else answer.error
        self.joined = error_for("TxnOffsetCommit", self.version, error)
        if self.joined == ErrorCode.NONE:
            if not self.is_append_begun:
                self._append()  # which answers, perhaps at once: the group may refuse
                return
        elif self.is_append_begun:
            # the record that was to be durable with the offsets is not
            partitions = self.broker.groups.coordinator.partitions
            partition = TopicPartition(CONSUMER_OFFSETS_TOPIC, partitions.number_of(self.identity.group_id))
            abort_if_unknown(self.broker, partition, self.transactional_id, *self.producer)
        else:
            self.appended = {}
        self._answer()

    def _answer(self) -> None:
        if self.joined is None or self.appended is None:
            return
        if self.joined != ErrorCode.NONE:
            self._refuse(self.joined)
        else:
            self.reply(self.appended)

    def _refuse(self, error: ErrorCode) -> None:
        self.reply(dict.fromkeys(self.offsets, error))

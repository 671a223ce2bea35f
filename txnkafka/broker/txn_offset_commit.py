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
from txnkafka.coordinator.open_transactions import has_joined
from txnkafka.coordinator.txn_events import AddPartitions, Answer, VerifyPartitions
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError
from txnkafka.model import NO_SEQUENCE, TopicPartition
from txnkafka.storage.log.verification import NO_GUARD

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.broker.broker import Broker
    from txnkafka.coordinator.group_requests import Identity, Offsets, OffsetToCommit
    from txnkafka.model import ProducerIdAndEpoch
    from txnkafka.storage.log.partition_log import PartitionLog

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
        """Ask the transaction coordinator, unless the transaction is open in the partition and will be ended
        by it."""
        partitions = self.broker.groups.coordinator.partitions
        here = partitions.of(self.identity.group_id)
        if isinstance(here, ErrorCode):
            self._refuse(here)
            return
        log = self.broker.logs.get(self._partition)
        if log is None:
            self._refuse(ErrorCode.NOT_COORDINATOR)
            return
        try:
            is_unknown = self._is_unknown(log)
        except KafkaError as error:
            self._refuse(self._code(error))
            return
        if is_unknown:
            self._ask()
        else:
            self.joined = ErrorCode.NONE
            self._append()

    @property
    def _partition(self) -> TopicPartition:
        number = self.broker.groups.coordinator.partitions.number_of(self.identity.group_id)
        return TopicPartition(CONSUMER_OFFSETS_TOPIC, number)

    @property
    def _is_implicit_add(self) -> bool:
        return self.version >= IMPLICIT_ADD

    def _is_unknown(self, log: PartitionLog) -> bool:
        if self._start_verification(log) != NO_GUARD:
            return self._is_implicit_add or log.config.transaction_partition_verification_enable
        # open, perhaps beside a record in flight, or until its marker comes
        owner = self.broker.transactions.coordinator.settled(self.transactional_id)
        return self._is_implicit_add and not has_joined(owner, log.topic_partition, *self.producer)

    def _start_verification(self, log: PartitionLog) -> int:
        return log.verification.maybe_start(
            log.producers, *self.producer, NO_SEQUENCE,
            supports_epoch_bump=self._is_implicit_add, now_ms=self.broker.now_ms,
        )  # fmt: skip

    def _ask(self) -> None:
        identity = self.transactional_id, *self.producer, frozenset((self._partition,))
        coordinator = self.broker.transactions.coordinator
        if self._is_implicit_add:
            event = AddPartitions(*identity, client_transaction_version=2)
            coordinator.handle(event, self._answered, self.broker.now_ms, on_append=self._append)
        else:
            coordinator.handle(VerifyPartitions(*identity), self._answered, self.broker.now_ms)

    def _append(self) -> None:
        if self.is_append_begun:
            return
        self.is_append_begun = True
        log = self.broker.logs.get(self._partition)
        if log is not None and self._is_implicit_add:
            # the transaction that was open when the request came may have got its marker
            try:
                self._start_verification(log)
            except KafkaError as error:
                self._durable(dict.fromkeys(self.offsets, self._code(error)))
                return
        there = {each: offset for each, offset in self.offsets.items() if self._is_there(each, offset)}
        if not there:
            self._durable({})
            return
        self.broker.groups.coordinator.commit(
            self.identity, there, self._durable, self.broker.now_ms, producer=self.producer
        )

    def _is_there(self, partition: TopicPartition, offset: OffsetToCommit) -> bool:
        """Whether an offset is one of a topic that is still there. The topic may have been deleted while the
        coordinator had to wait; behind the tombstones of its offsets nothing would remove this one, and a new
        topic of the name would have it."""
        if offset.topic_id is None:
            return True
        topic = self.broker.image.topics.get(partition.topic)
        return topic is not None and topic.topic_id == offset.topic_id

    def _durable(self, errors: dict[TopicPartition, ErrorCode]) -> None:
        gone = dict.fromkeys(self.offsets, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        told = {each: error_for("TxnOffsetCommit", self.version, error) for each, error in errors.items()}
        self.appended = {**gone, **told}
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
            abort_if_unknown(self.broker, self._partition, self.transactional_id, *self.producer)
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

    def _code(self, error: KafkaError) -> ErrorCode:
        return error_for("TxnOffsetCommit", self.version, error_code(error))

    def _refuse(self, error: ErrorCode) -> None:
        self.reply(dict.fromkeys(self.offsets, error))

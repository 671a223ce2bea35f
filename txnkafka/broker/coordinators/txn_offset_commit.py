"""``TxnOffsetCommit``: the offsets of a group are committed with a transaction.

The partition of ``__consumer_offsets`` joins the transaction first; see ``JoinTransaction``.

Source: ``GroupCoordinatorService.commitTransactionalOffsets``; kafka-protocol 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from txnkafka.broker.coordinators.joining import JoinTransaction
from txnkafka.broker.durability import error_code
from txnkafka.coordinator import CONSUMER_OFFSETS_TOPIC
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError
from txnkafka.model import NO_SEQUENCE, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.broker.coordinators.transactions import Transactions
    from txnkafka.broker.services import Services
    from txnkafka.coordinator.group.group_coordinator import GroupCoordinator
    from txnkafka.coordinator.group.group_requests import Identity, Offsets, OffsetToCommit
    from txnkafka.model import ProducerIdAndEpoch

IMPLICIT_ADD: Final = 5  # the first version that adds the group to the transaction


@dataclass(frozen=True, slots=True)
class OffsetsOfTransaction:
    """A TxnOffsetCommit request in this ``version`` of the API."""

    identity: Identity
    transactional_id: str
    producer: ProducerIdAndEpoch
    offsets: Offsets
    version: int


class TxnOffsetCommit:
    """One request under way."""

    def __init__(
        self,
        services: Services,
        groups: GroupCoordinator,
        transactions: Transactions,
        request: OffsetsOfTransaction,
        reply: Callable[[dict[TopicPartition, ErrorCode]], None],
    ) -> None:
        self._services = services
        self._groups = groups
        self._identity = request.identity
        self._producer = request.producer
        self._offsets = request.offsets
        self._reply = reply
        self._joining = JoinTransaction(
            services, transactions, request.transactional_id, request.producer, api="TxnOffsetCommit",
            version=request.version, is_implicit_add=request.version >= IMPLICIT_ADD,
        )  # fmt: skip
        number = groups.partitions.number_of(request.identity.group_id)
        self.partition = TopicPartition(CONSUMER_OFFSETS_TOPIC, number)
        self.is_appended = self._is_refused = False
        self._result: dict[TopicPartition, ErrorCode] = {}  # of the append

    def run(self) -> None:
        """Append the offsets, after the transaction coordinator was asked if necessary."""
        here = self._groups.partitions.of(self._identity.group_id)
        if isinstance(here, ErrorCode):
            self.refuse_join(here)
            return
        log = self._services.logs.get(self.partition)
        if log is None:
            self.refuse_join(ErrorCode.NOT_COORDINATOR)
            return
        try:
            must_ask = self._joining.must_ask(log, NO_SEQUENCE)
        except KafkaError as error:
            self.refuse_join(self._code(error))
            return
        if must_ask:
            self._joining.joiners.append(self)
            self._joining.ask()
        else:
            self._joining.confirm()
            self.append_joined()

    def append_joined(self) -> None:
        """Append the offsets of topics that exist."""
        if self.is_appended or self._is_refused:
            return
        self.is_appended = True
        log = self._services.logs.get(self.partition)
        try:
            if log is not None:
                self._joining.guard(log, NO_SEQUENCE)
        except KafkaError as error:
            self._durable(dict.fromkeys(self._offsets, self._code(error)))
            return
        found = {each: offset for each, offset in self._offsets.items() if self._exists(each, offset)}
        if not found:
            self._durable({})
            return
        self._groups.commit(
            self._identity, found, self._durable, self._services.now_ms, producer=self._producer
        )

    def _exists(self, partition: TopicPartition, offset: OffsetToCommit) -> bool:
        """Return False for a topic that was deleted while the coordinator waited: this offset would come
        after the tombstones of the topic's offsets, and a new topic of the name would inherit it."""
        if offset.topic_id is None:
            return True
        topic = self._services.image.topics.get(partition.topic)
        return topic is not None and topic.topic_id == offset.topic_id

    def _durable(self, errors: dict[TopicPartition, ErrorCode]) -> None:
        """Record the result: the offsets are durable, or never will be."""
        removed = dict.fromkeys(self._offsets, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._result = removed | {each: self._joining.error(error) for each, error in errors.items()}
        self._joining.on_disk(self)

    def refuse_join(self, error: ErrorCode) -> None:
        """Refuse all offsets."""
        self._is_refused = True
        self._reply(dict.fromkeys(self._offsets, error))

    def joined(self, error: ErrorCode) -> None:
        """Answer: the coordinator has answered, and the result of the append is known."""
        if error != ErrorCode.NONE:
            self.refuse_join(error)
        else:
            self._reply(self._result)

    def _code(self, error: KafkaError) -> ErrorCode:
        return self._joining.error(error_code(error))

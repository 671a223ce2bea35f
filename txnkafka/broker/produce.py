"""Produce: batches of one request are checked, join their transaction, are appended and acknowledged.

The batches of a transaction that its partition does not know yet wait for the coordinator: it adds the
partition (Produce 12 and later), or says whether the client has added it (KIP-890). The batch is appended as
soon as the coordinator's record is, so that both share a flush; it is acknowledged when both are durable.

Source: ``ReplicaManager.handleProduceAppend``, ``AddPartitionsToTxnManager``; kafka-protocol 2.4 and 2.8.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.broker.durability import error_code
from txnkafka.broker.requests import ProduceResult
from txnkafka.coordinator.old_clients import error_for
from txnkafka.coordinator.txn_events import AddPartitions, Answer, VerifyPartitions
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError, ProduceError
from txnkafka.model import NO_PRODUCER_ID, TopicPartition
from txnkafka.record.batch_header import ATTRIBUTE_TRANSACTIONAL, HEADER_SIZE
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.log.verification import NO_GUARD

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from txnkafka.broker.broker import Broker
    from txnkafka.broker.requests import ProduceRequest
    from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["Produce", "produce"]

_PRODUCER = struct.Struct(">qhi")  # producer id, epoch, base sequence
_ATTRIBUTES_AT, _PRODUCER_AT, _MAGIC_AT = 21, 43, 16
_INTERNAL = ("__consumer_offsets", "__transaction_state")

Reply = "Callable[[Mapping[TopicPartition, ProduceResult]], None]"


class _Batch(NamedTuple):
    """One batch and where it goes."""

    topic_partition: TopicPartition
    log: PartitionLog
    records: memoryview
    producer_id: int
    producer_epoch: int
    sequence: int
    is_transactional: bool


@dataclass(slots=True, eq=False)
class Produce:
    """One request under way: ``results`` of the partitions that are decided."""

    broker: Broker
    request: ProduceRequest
    now_ms: int
    reply: Callable[[Mapping[TopicPartition, ProduceResult]], None]
    results: dict[TopicPartition, ProduceResult] = field(default_factory=dict)
    appended: set[TopicPartition] = field(default_factory=set)

    def decide(self, partition: TopicPartition, result: ProduceResult) -> None:
        """The answer for one partition; with the last one the request is answered."""
        if partition not in self.results:
            self.results[partition] = result
            if len(self.results) == len(self.request.batches):
                self.reply(self.results)

    def refuse(self, partition: TopicPartition, error: ErrorCode, message: str | None = None) -> None:
        """Nothing was appended."""
        self.decide(partition, ProduceResult(error, message=message))

    def append(self, batch: _Batch, guard: int, then: Callable[[Callable[[ErrorCode], None]], None]) -> None:
        """Append a batch. ``then`` gets whom to call once nothing but the disk stands in the way."""
        partition, log = batch.topic_partition, batch.log
        if partition in self.appended or partition in self.results:
            return
        if not self.broker.serves(partition) or self.broker.logs.get(partition) is not log:
            # the topic was deleted while the coordinator had to wait
            self.refuse(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        self.appended.add(partition)
        try:
            info = log.append(
                batch.records, now_ms=self.now_ms, leader_epoch=self.broker.leader_epoch(partition),
                origin=AppendOrigin.CLIENT, guard=guard,
            )  # fmt: skip
        except KafkaError as error:
            self._refused(partition, error)
            return
        result = ProduceResult(ErrorCode.NONE, info.first_offset, info.log_append_time, info.log_start_offset)

        def durable(error: ErrorCode) -> None:
            then(lambda other: self.decide(partition, _either(result, error, other)))

        self.broker.durability.when_durable(log, durable)

    def _refused(self, partition: TopicPartition, error: KafkaError) -> None:
        errors = error.record_errors if isinstance(error, ProduceError) else ()
        start = self.broker.logs[partition].log_start_offset
        self.decide(
            partition,
            ProduceResult(
                error_code(error), log_start_offset=start, message=str(error), record_errors=errors
            ),
        )


def _either(result: ProduceResult, error: ErrorCode, other: ErrorCode) -> ProduceResult:
    failed = error or other
    return result if failed == ErrorCode.NONE else ProduceResult(failed)


def produce(
    broker: Broker,
    request: ProduceRequest,
    now_ms: int,
    reply: Callable[[Mapping[TopicPartition, ProduceResult]], None],
) -> None:
    """Answer a produce request, now or later. An acknowledgement means durable, whatever ``acks`` says; with
    ``acks`` 0 the caller sends no answer."""
    state = Produce(broker, request, now_ms, reply)
    if not request.batches:
        reply({})
        return
    if request.acks not in (-1, 0, 1):
        for partition in request.batches:
            state.refuse(partition, ErrorCode.INVALID_REQUIRED_ACKS)
        return
    batches = [batch for item in request.batches.items() if (batch := _parsed(state, *item)) is not None]
    transactional = [batch for batch in batches if batch.is_transactional]
    if transactional and not _is_one_producer(state, batches, transactional):
        return
    unknown = [batch for batch in transactional if _guard_of(state, batch) is not None]
    for batch in batches:
        if batch not in unknown and batch.topic_partition not in state.results:
            state.append(batch, NO_GUARD, lambda decide: decide(ErrorCode.NONE))
    left = [batch for batch in unknown if batch.topic_partition not in state.results]
    if left:
        _Joining(state, left).ask()


def _parsed(state: Produce, partition: TopicPartition, records: memoryview | None) -> _Batch | None:
    """The batch for a partition; None when it is refused."""
    broker = state.broker
    log = broker.logs.get(partition)
    if not broker.serves(partition):
        state.refuse(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    elif log is None:
        state.refuse(partition, ErrorCode.KAFKA_STORAGE_ERROR)
    elif partition.topic in _INTERNAL and not state.request.is_internal_allowed:
        state.refuse(
            partition, ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {partition.topic}"
        )
    elif records is None or len(records) < HEADER_SIZE or records[_MAGIC_AT] != 2:
        if records is not None and len(records) > _MAGIC_AT:
            # the log says what is wrong
            return _Batch(partition, log, records, NO_PRODUCER_ID, -1, -1, False)
        state.refuse(partition, ErrorCode.INVALID_RECORD, "there must be exactly one batch of magic 2")
    else:
        attributes = records[_ATTRIBUTES_AT] << 8 | records[_ATTRIBUTES_AT + 1]
        producer_id, epoch, sequence = _PRODUCER.unpack_from(records, _PRODUCER_AT)
        is_transactional = bool(attributes & ATTRIBUTE_TRANSACTIONAL) and producer_id != NO_PRODUCER_ID
        return _Batch(partition, log, records, producer_id, epoch, sequence, is_transactional)
    return None


def _is_one_producer(state: Produce, batches: list[_Batch], transactional: list[_Batch]) -> bool:
    """Refuse all of a request whose transactional batches are not those of its transactional id."""
    if state.request.transactional_id is None:
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif len({(batch.producer_id, batch.producer_epoch) for batch in transactional}) > 1:
        error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    else:
        return True
    for batch in batches:
        state.refuse(batch.topic_partition, error)
    return False


def _guard_of(state: Produce, batch: _Batch) -> int | None:
    """The guard to append with after the coordinator has agreed; None when the transaction is open here."""
    try:
        guard = batch.log.verification.maybe_start(
            batch.log.producers, batch.producer_id, batch.producer_epoch, batch.sequence,
            supports_epoch_bump=state.request.is_implicit_add, now_ms=state.now_ms,
        )  # fmt: skip
    except KafkaError as error:
        state.refuse(batch.topic_partition, error_code(error), str(error))
        return NO_GUARD
    if guard == NO_GUARD:
        return None
    if not state.request.is_implicit_add and not batch.log.config.transaction_partition_verification_enable:
        return None
    return guard


class _Joining:
    """Batches whose partitions join a transaction, or are looked for in it."""

    def __init__(self, state: Produce, batches: list[_Batch]) -> None:
        self._state = state
        self._batches = batches
        self._answer: ErrorCode | None = None
        self._waiting: list[Callable[[ErrorCode], None]] = []

    def ask(self) -> None:
        """Send the coordinator the partitions."""
        request, first = self._state.request, self._batches[0]
        partitions = frozenset(batch.topic_partition for batch in self._batches)
        identity = request.transactional_id or "", first.producer_id, first.producer_epoch
        coordinator, now_ms = self._state.broker.transactions.coordinator, self._state.now_ms
        if request.is_implicit_add:
            event = AddPartitions(*identity, partitions, client_transaction_version=2)
            coordinator.handle(event, self._answered, now_ms, on_append=self._append)
        else:
            coordinator.handle(VerifyPartitions(*identity, partitions), self._answered, now_ms)

    def _append(self) -> None:
        for batch in self._batches:
            pending = batch.log.verification.pending(batch.producer_id)
            guard = NO_GUARD if pending is None else pending.guard
            self._state.append(batch, guard, self._when_answered)

    def _when_answered(self, decide: Callable[[ErrorCode], None]) -> None:
        if self._answer is None:
            self._waiting.append(decide)
        else:
            decide(self._answer)

    def _answered(self, answer: Answer) -> None:
        if answer.error == ErrorCode.NONE:
            self._append_those_found(answer)
            self._answer = ErrorCode.NONE
        else:
            self._answer = self._refusal(answer.error)
            for batch in self._batches:
                if batch.topic_partition not in self._state.appended:
                    self._state.refuse(batch.topic_partition, self._answer, _MESSAGES.get(self._answer))
        waiting, self._waiting = self._waiting, []
        for decide in waiting:
            decide(self._answer)

    def _append_those_found(self, answer: Answer) -> None:
        missing = self._refusal(ErrorCode.TRANSACTION_ABORTABLE)
        for batch in self._batches:
            if batch.topic_partition in answer.missing:
                self._state.refuse(batch.topic_partition, missing, _MESSAGES.get(missing))
        self._append()

    def _refusal(self, error: ErrorCode) -> ErrorCode:
        return error_for("Produce", self._state.request.version, error)


_MESSAGES = {
    ErrorCode.INVALID_TXN_STATE: "Partition was not added to the transaction",
    ErrorCode.TRANSACTION_ABORTABLE: "Partition was not added to the transaction",
    ErrorCode.NOT_ENOUGH_REPLICAS: "Unable to verify the partition has been added to the transaction",
}

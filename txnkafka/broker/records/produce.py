"""Produce: batches of one request are checked, join their transaction, are appended and acknowledged.

A batch of a transaction that is unknown in its partition joins it first; see ``JoinTransaction``.

Source: ``ReplicaManager.handleProduceAppend``; kafka-protocol 2.4 and 2.8.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from txnkafka.broker.coordinators.joining import JoinTransaction
from txnkafka.broker.durability import error_code
from txnkafka.broker.requests import ProduceResult
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError, ProduceError
from txnkafka.model import NO_PRODUCER_ID, TopicPartition
from txnkafka.record.batch_header import ATTRIBUTE_TRANSACTIONAL, HEADER_SIZE
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.log.verification import NO_GUARD

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from txnkafka.broker.coordinators.transactions import Transactions
    from txnkafka.broker.requests import ProduceRequest
    from txnkafka.broker.services import Services
    from txnkafka.coordinator.registry.cluster_image import PartitionImage
    from txnkafka.storage.log.partition_log import PartitionLog

_PRODUCER = struct.Struct(">h20xqhi")  # attributes, producer id, epoch, base sequence
_ATTRIBUTES_AT, _MAGIC_AT = 21, 16
_SIZE_OVERHEAD = 12  # of a batch: its base offset and its size
_WITHOUT_START = (  # errors whose answers have no log start offset in Kafka
    ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
)  # fmt: skip
_INTERNAL = ("__consumer_offsets", "__transaction_state")


class _Produce:
    """One request under way: ``results`` of the partitions that are decided. It does not know its batches: a
    circle would keep the bytes of a request that is over until the garbage collector comes."""

    __slots__ = (
        "is_nameless", "is_transactional", "reply", "request", "results", "services", "transactions",
    )  # fmt: skip

    def __init__(
        self,
        services: Services,
        transactions: Transactions,
        request: ProduceRequest,
        reply: Callable[[Mapping[TopicPartition, ProduceResult]], None],
    ) -> None:
        self.services = services
        self.transactions = transactions
        self.request = request
        self.reply = reply
        self.results: dict[TopicPartition, ProduceResult] = {}
        self.is_transactional = False  # one of its batches is
        self.is_nameless = False  # and the transactional id is missing

    def decide(self, partition: TopicPartition, result: ProduceResult) -> None:
        """Set the answer of one partition, once; the last one answers the request."""
        self.results[partition] = result
        if len(self.results) == len(self.request.batches):
            self.reply(self.results)

    def refuse(self, partition: TopicPartition, error: ErrorCode, message: str | None = None) -> None:
        """Refuse a partition without a valid batch."""
        self.decide(partition, ProduceResult(error, message=message))

    def batch(self, partition: TopicPartition, records: memoryview | None) -> _Batch | None:
        """Return the batch for a partition; None when it is refused."""
        services, request = self.services, self.request
        registered, log = services.registered(partition), services.logs.get(partition)
        if registered is None:
            self.refuse(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif log is None:
            self.refuse(partition, ErrorCode.KAFKA_STORAGE_ERROR)
        elif partition.topic in _INTERNAL and not request.is_internal_allowed:
            message = f"Cannot append to internal topic {partition.topic}"
            self.refuse(partition, ErrorCode.INVALID_TOPIC_EXCEPTION, message)
        elif records is None or len(records) < HEADER_SIZE or records[_MAGIC_AT] != 2:
            if records is None or len(records) <= _MAGIC_AT:
                self.refuse(partition, ErrorCode.INVALID_RECORD, "there must be exactly one batch of magic 2")
            else:  # the log reports the fault
                return _Batch(self, partition, registered, log, records, is_old=True)
        else:
            batch = _Batch(self, partition, registered, log, records)
            attributes, *producer = _PRODUCER.unpack_from(records, _ATTRIBUTES_AT)
            if attributes & ATTRIBUTE_TRANSACTIONAL:
                batch.producer_id, batch.producer_epoch, batch.sequence = producer
                batch.is_transactional = batch.producer_id != NO_PRODUCER_ID
                self.is_transactional = True
                self.is_nameless = request.transactional_id is None
            return batch
        return None

    def is_one_producer(self, batches: list[_Batch]) -> bool:
        """Refuse a whole request if transactional batches do not belong to its transactional id."""
        message = None
        if self.is_nameless:
            error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        elif len({(each.producer_id, each.producer_epoch) for each in batches if each.is_transactional}) > 1:
            error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
            message = "all transactional batches of one request must have the same producer id and epoch"
        else:
            return True
        for batch in batches:
            batch.refuse(error, message)
        return False

    def joining(self, batches: list[_Batch]) -> JoinTransaction | None:
        """Return the batches about which the coordinator is asked; None if it need not be asked."""
        request = self.request
        transactional = [batch for batch in batches if batch.is_transactional]
        if not transactional:
            return None
        first = transactional[0]
        joining = JoinTransaction(
            self.services, self.transactions, request.transactional_id or "",
            (first.producer_id, first.producer_epoch), api="Produce", version=request.version,
            is_implicit_add=request.is_implicit_add,
        )  # fmt: skip
        for batch in transactional:
            try:
                if not joining.must_ask(batch.log, batch.sequence):
                    continue
            except KafkaError as error:
                batch.refuse(error_code(error), str(error))
            else:
                batch.joining = joining
                joining.joiners.append(batch)
        return joining if joining.joiners else None


class _Batch:
    """One batch: its partition and its result. It is decided when it is on the disk, and its partition in
    the transaction. Only transactional batches have a producer here."""

    __slots__ = (
        "is_appended", "is_decided", "is_old", "is_transactional", "joining", "log", "partition",
        "producer_epoch", "producer_id", "records", "registered", "result", "sequence", "state",
    )  # fmt: skip

    result: ProduceResult  # of the append

    def __init__(
        self,
        state: _Produce,
        partition: TopicPartition,
        registered: PartitionImage,
        log: PartitionLog,
        records: memoryview,
        *,
        is_old: bool = False,
    ) -> None:
        self.state = state
        self.partition = partition
        self.registered = registered
        self.log = log
        self.records = records
        self.is_old = is_old  # of another magic than 2
        self.is_transactional = self.is_appended = self.is_decided = False
        self.producer_id = self.producer_epoch = self.sequence = -1
        self.joining: JoinTransaction | None = None

    def append(self, guard: int) -> None:
        """Append, unless the batch is appended or refused. The time is now, not the request's arrival, as the
        request may have waited: LogAppendTime does not go back (``LogValidator``)."""
        if self.is_appended or self.is_decided:
            return
        self.is_appended = True
        log, state = self.log, self.state
        try:
            info = log.append(
                self.records, now_ms=state.services.now_ms, leader_epoch=self.registered.leader_epoch,
                origin=AppendOrigin.CLIENT, guard=guard,
            )  # fmt: skip
        except KafkaError as error:
            self._refused_by_log(error)
            return
        self.result = ProduceResult(
            ErrorCode.NONE, info.first_offset, info.log_append_time, info.log_start_offset
        )
        state.services.durability.when_durable(log, self._on_disk)

    def append_joined(self) -> None:
        """Append after the coordinator has agreed. The topic may have been deleted while the batch waited."""
        if self.is_appended or self.is_decided or self.joining is None:
            return
        services = self.state.services
        registered = services.registered(self.partition)
        if registered is None or services.logs.get(self.partition) is not self.log:
            self.refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        self.registered = registered
        try:
            guard = self.joining.guard(self.log, self.sequence)
        except KafkaError as error:
            self.refuse(error_code(error), str(error))
        else:
            self.append(guard)

    def decide(self, result: ProduceResult) -> None:
        """Answer; later answers are ignored."""
        if not self.is_decided:
            self.is_decided = True
            self.state.decide(self.partition, result)

    def refuse(self, error: ErrorCode, message: str | None = None) -> None:
        """Answer a batch that was not appended."""
        self.decide(ProduceResult(error, message=message))

    def refuse_join(self, error: ErrorCode) -> None:
        """Refuse the batch: the coordinator has refused the partition."""
        self.refuse(error, _MESSAGES.get(error))

    def joined(self, error: ErrorCode) -> None:
        """Answer: the coordinator has answered, and the result of the append is known."""
        is_refused = error != ErrorCode.NONE and self.result.error == ErrorCode.NONE
        self.decide(ProduceResult(error) if is_refused else self.result)

    def _refused_by_log(self, error: KafkaError) -> None:
        code, size = error_code(error), _batch_size(self.records)
        if code == ErrorCode.CORRUPT_MESSAGE and size > len(self.records):
            code = ErrorCode.INVALID_RECORD
        is_one_batch = size == len(self.records) and not self.is_old
        errors = error.record_errors if isinstance(error, ProduceError) else ()
        start = -1 if code in _WITHOUT_START or not is_one_batch else self.log.log_start_offset
        self.decide(ProduceResult(code, log_start_offset=start, message=str(error), record_errors=errors))

    def _on_disk(self, error: ErrorCode) -> None:
        """Record that the batch is durable, or never will be."""
        if error != ErrorCode.NONE:
            self.result = ProduceResult(error)
        if self.joining is None:
            self.decide(self.result)
        else:
            self.joining.on_disk(self)


def produce(
    services: Services,
    transactions: Transactions,
    request: ProduceRequest,
    reply: Callable[[Mapping[TopicPartition, ProduceResult]], None],
) -> None:
    """Answer a produce request, now or later. An acknowledgement means durable for any ``acks``; with
    ``acks`` 0 the caller sends no answer. Batches without a coordinator are appended before it is asked."""
    if not request.batches:
        reply({})
        return
    state = _Produce(services, transactions, request, reply)
    if request.acks not in (-1, 0, 1):
        for partition in request.batches:
            state.refuse(partition, ErrorCode.INVALID_REQUIRED_ACKS)
        return
    batches = []
    for partition, records in request.batches.items():
        batch = state.batch(partition, records)
        if batch is not None:
            batches.append(batch)
    joining = None
    if state.is_transactional:
        if not state.is_one_producer(batches):
            return
        joining = state.joining(batches)
    for batch in batches:
        if batch.joining is None:
            batch.append(NO_GUARD)
    if joining is not None:
        joining.ask()


def _batch_size(records: memoryview) -> int:
    """Return the size in bytes that the first batch's header gives."""
    return _SIZE_OVERHEAD + int.from_bytes(records[8:_SIZE_OVERHEAD], "big", signed=True)


_MESSAGES = {
    ErrorCode.INVALID_TXN_STATE: "Partition was not added to the transaction",
    ErrorCode.TRANSACTION_ABORTABLE: "Partition was not added to the transaction",
    ErrorCode.NOT_ENOUGH_REPLICAS: "Unable to verify the partition has been added to the transaction",
}

"""A broker for producers over the fake transport: logs in memory, with the checks of idempotent batches.

``failures`` has error codes for the next requests of an API, which are then answered without effect.
Source of the checks: ``ProducerAppendInfo``, ``ProducerStateEntry`` (the last five batches are known).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.models.record_batch import TRANSACTIONAL, BatchHeader, Record, decode_batch, read_header
from tests.unit.client.fakes import FakeTransport, Request
from txnkafka.client.producer import Producer
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.wire.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from txnkafka.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from txnkafka.wire.messages.end_txn import EndTxnResponse
from txnkafka.wire.messages.init_producer_id import InitProducerIdResponse
from txnkafka.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from txnkafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_SEQUENCES = 1 << 31


class SentBatch(NamedTuple):
    """A batch of a Produce request."""

    partition: TopicPartition
    header: BatchHeader
    records: list[Record]

    @property
    def values(self) -> list[bytes | None]:
        return [record.value for record in self.records]

    @property
    def is_transactional(self) -> bool:
        return bool(self.header.attributes & TRANSACTIONAL)


class _State:
    """A producer in one partition."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.next = 0
        self.batches: deque[tuple[int, int, int]] = deque(maxlen=5)  # first and last sequence, offset


class FakeBroker:
    def __init__(self, transport: FakeTransport) -> None:
        self.transport = transport
        self.logs: dict[TopicPartition, list[Record]] = defaultdict(list)
        self.failures: dict[str, deque[int]] = defaultdict(deque)
        self.producer = (7, -1)
        self._states: dict[tuple[int, TopicPartition], _State] = {}
        for name, answer in {
            "Produce": self.produce,
            "InitProducerId": self._init_producer_id,
            "AddPartitionsToTxn": self._add_partitions,
            "AddOffsetsToTxn": self._add_offsets,
            "TxnOffsetCommit": self._commit_offsets,
            "EndTxn": self._end_txn,
        }.items():
            transport.answers[name] = answer

    def values(self, topic: str, partition: int = 0) -> list[bytes | None]:
        return [record.value for record in self.logs[TopicPartition(topic, partition)]]

    def batches(self, request: Request) -> Iterator[SentBatch]:
        """Return the batches of a Produce request."""
        for topic in request.message.topic_data:
            name = topic.name if request.version <= 12 else self.transport.topic_named(topic.topic_id)
            for row in topic.partition_data:
                content = bytes(row.records)
                yield SentBatch(
                    TopicPartition(name, row.index), read_header(content, 0), decode_batch(content)
                )

    def all_batches(self) -> list[SentBatch]:
        return [batch for request in self.transport.sent("Produce") for batch in self.batches(request)]

    def produce(self, request: Request) -> ProduceResponse | None:
        code = self._failure("Produce")
        rows = [(batch.partition, *self._append(batch, code)) for batch in self.batches(request)]
        return self.answer(request, rows) if request.message.acks else None

    def answer(self, request: Request, rows: list[tuple[TopicPartition, int, int]]) -> ProduceResponse:
        """Return a response with (partition, code, offset)."""
        topics = defaultdict(list)
        for (topic, number), code, offset in rows:
            row = PartitionProduceResponse(index=number, error_code=code, base_offset=offset)
            topics[topic].append(row)
        return ProduceResponse(
            responses=tuple(
                TopicProduceResponse(
                    name="" if request.version > 12 else topic,
                    topic_id=self.transport.topic_id(topic),
                    partition_responses=tuple(found),
                )
                for topic, found in topics.items()
            )
        )

    def has_any(self, request: Request) -> bool:
        """Return whether a batch of a request is in the log, and so was not too large."""
        return any(self._offset_of(batch) is not None for batch in self.batches(request))

    def _offset_of(self, batch: SentBatch) -> int | None:
        header = batch.header
        state = self._states.get((header.producer_id, batch.partition))
        if state is None or state.epoch != header.producer_epoch:
            return None
        last = (header.base_sequence + header.count - 1) % _SEQUENCES
        return next((row[2] for row in state.batches if row[:2] == (header.base_sequence, last)), None)

    def _append(self, batch: SentBatch, code: int) -> tuple[int, int]:
        if code:
            return code, -1
        log, header = self.logs[batch.partition], batch.header
        if header.producer_id >= 0:
            state = self._states.setdefault(
                (header.producer_id, batch.partition), _State(header.producer_epoch)
            )
            last = (header.base_sequence + header.count - 1) % _SEQUENCES
            if header.producer_epoch < state.epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH, -1
            if header.producer_epoch > state.epoch:
                if header.base_sequence != 0:
                    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
                state.epoch, state.next = header.producer_epoch, 0
                state.batches.clear()
            known = self._offset_of(batch)
            if known is not None:
                return 0, known
            if header.base_sequence != state.next:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            state.next = (last + 1) % _SEQUENCES
            state.batches.append((header.base_sequence, last, len(log)))
        offset = len(log)
        log += batch.records
        return 0, offset

    def _failure(self, name: str) -> int:
        codes = self.failures[name]
        return codes.popleft() if codes else 0

    def _init_producer_id(self, request: Request) -> InitProducerIdResponse:
        code = self._failure("InitProducerId")
        if code:
            return InitProducerIdResponse(error_code=code)
        self.producer = (self.producer[0], self.producer[1] + 1)
        return InitProducerIdResponse(producer_id=self.producer[0], producer_epoch=self.producer[1])

    def _add_partitions(self, request: Request) -> AddPartitionsToTxnResponse:
        code = self._failure("AddPartitionsToTxn")
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=tuple(
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=tuple(
                        AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=code)
                        for number in topic.partitions
                    ),
                )
                for topic in request.message.v3_and_below_topics
            )
        )

    def _add_offsets(self, request: Request) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse(error_code=self._failure("AddOffsetsToTxn"))

    def _commit_offsets(self, request: Request) -> TxnOffsetCommitResponse:
        code = self._failure("TxnOffsetCommit")
        return TxnOffsetCommitResponse(
            topics=tuple(
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        TxnOffsetCommitResponsePartition(partition_index=row.partition_index, error_code=code)
                        for row in topic.partitions
                    ),
                )
                for topic in request.message.topics
            )
        )

    def _end_txn(self, request: Request) -> EndTxnResponse:
        code = self._failure("EndTxn")
        if code or request.version < 5:
            return EndTxnResponse(error_code=code)
        self.producer = (request.message.producer_id, request.message.producer_epoch + 1)
        return EndTxnResponse(producer_id=self.producer[0], producer_epoch=self.producer[1])


def producer_over(
    *, version: int = 2, topics: dict[str, int] | None = None, nodes: int = 1, **settings: Any
) -> tuple[Producer, FakeBroker]:
    """Return a producer and its broker. ``version`` is the cluster's transaction.version."""
    transport = FakeTransport(
        topics or {"orders": 1, "stock": 2}, nodes=nodes, features={"transaction.version": version}
    )
    broker = FakeBroker(transport)
    return Producer(settings, transport=transport.for_client), broker


def sequences(broker: FakeBroker) -> list[tuple[int, int, int]]:
    """Return epoch, sequence and count of the sent batches of one partition."""
    return [
        (batch.header.producer_epoch, batch.header.base_sequence, batch.header.count)
        for batch in broker.all_batches()
    ]


def held(broker: FakeBroker) -> tuple[list[Request], Callable[[int], None]]:
    """Hold Produce requests; return them, and a function that appends and answers one of them."""
    kept: list[Request] = []
    broker.transport.answers["Produce"] = kept.append

    def answer(number: int) -> None:
        kept[number].reply(broker.produce(kept[number]))
        broker.transport.reactor.settle()

    return kept, answer


def sent(producer: Producer, *values: bytes) -> list[Any]:
    """Send each value in a batch of its own, and do not wait for answers."""
    futures = []
    for value in values:
        futures.append(producer.send("orders", value))
        with producer._reactor:
            producer._core.accumulator.close_all()
    return futures

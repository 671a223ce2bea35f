"""Produce: appends record batches, at most one for each partition.

Versions 3 to 13, announced from 0 on (KAFKA-18659). Topics have names up to 12, ids in 13. 12 also adds the
partitions to the transaction; 11 knows TRANSACTION_ABORTABLE, earlier versions get INVALID_TXN_STATE
(KIP-890). zstd needs 7. The response lists refused records from 8 on.

A request with ``acks`` 0 gets no response. When it fails the connection is closed, so that the producer
notices the failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.broker.requests import ProduceRequest as Batches
from txnkafka.broker.requests import ProduceResult
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.record.batch_header import ATTRIBUTE_CODEC, ATTRIBUTES, HEADER_SIZE, MAGIC
from txnkafka.server.handlers import serves
from txnkafka.server.peer import CloseConnection
from txnkafka.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.broker.broker import Broker
    from txnkafka.server.peer import Peer, Reply
    from txnkafka.wire.fields import Buffer
    from txnkafka.wire.messages.produce import TopicProduceData

_ADMIN_CLIENT: Final = "__admin_client"  # the client id that may write to internal topics
_ZSTD: Final = 4
_MOST_NAMED: Final = 3  # in a log message: a request may contain a hundred megabytes of names
_LONGEST_NAMED: Final = 260  # characters; a topic name with a partition is shorter


@serves("Produce")
def handle(broker: Broker, request: ProduceRequest, version: int, peer: Peer, reply: Reply) -> None:
    """Answer when every batch that was appended is durable."""
    answer = _Answer(broker, request, version, reply)
    batches, refused = answer.batches, answer.refused
    for partition in refused:
        del batches[partition]
    if not batches:
        answer.give({})
        return
    is_internal_allowed = peer.client_id == _ADMIN_CLIENT
    broker.produce(
        Batches(batches, request.transactional_id, request.acks, version, is_internal_allowed), answer.give
    )


class _Answer:
    """One request: ``batches`` of existing topics, some ``refused`` by the handler."""

    __slots__ = ("_acks", "_asked", "_reply", "batches", "refused")

    def __init__(self, broker: Broker, request: ProduceRequest, version: int, reply: Reply) -> None:
        self._acks = request.acks
        self._reply = reply
        # topics with their partitions; None for topics that do not exist
        self._asked: list[tuple[TopicProduceData, list[TopicPartition] | None]] = []
        self.batches: dict[TopicPartition, memoryview | None] = {}
        self.refused: dict[TopicPartition, ProduceResult] = {}
        names = broker.image.topic_names
        for topic in request.topic_data:
            name = names.get(topic.topic_id) if version >= 13 else topic.name
            self._asked.append((topic, None if name is None else self._partitions(name, topic, version)))

    def _partitions(self, name: str, topic: TopicProduceData, version: int) -> list[TopicPartition]:
        partitions = []
        for data in topic.partition_data:
            partition, records = TopicPartition(name, data.index), data.records
            partitions.append(partition)
            self.batches[partition] = None if records is None else memoryview(records)
            if version < 7 and records is not None and _is_zstd(records):
                self.refused[partition] = _OLD_AND_ZSTD
        return partitions

    def give(self, results: Mapping[TopicPartition, ProduceResult]) -> None:
        """Send the response, after the broker has appended or refused the other batches."""
        if self.refused:
            results = {**results, **self.refused}
        self._reply(self._none(results) if self._acks == 0 else self._response(results))

    def _none(self, results: Mapping[TopicPartition, ProduceResult]) -> CloseConnection | None:
        failed = [(str(each), result.error) for each, result in results.items() if result.error]
        not_there = [topic.topic_id for topic, partitions in self._asked if partitions is None]
        failed += [(topic_id, ErrorCode.UNKNOWN_TOPIC_ID) for topic_id in not_there]
        if not failed:
            return None
        named = ", ".join(f"{_cut(name)}: {error.name}" for name, error in failed[:_MOST_NAMED])
        more = f" and {len(failed) - _MOST_NAMED:,} more" if len(failed) > _MOST_NAMED else ""
        return CloseConnection(f"produce with acks 0 failed for {named}{more}")

    def _response(self, results: Mapping[TopicPartition, ProduceResult]) -> ProduceResponse:
        topics = []
        for topic, partitions in self._asked:
            if partitions is None:
                answers = [_answer(data.index, _UNKNOWN_TOPIC_ID) for data in topic.partition_data]
            else:
                answers = [_answer(partition.partition, results[partition]) for partition in partitions]
            if answers:
                topics.append(
                    TopicProduceResponse(
                        topic_id=topic.topic_id, name=topic.name, partition_responses=tuple(answers)
                    )
                )
        return ProduceResponse(responses=tuple(topics))


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAMED else f"{name[:_LONGEST_NAMED]}…"


def _answer(index: int, result: ProduceResult) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        error_code=result.error,
        base_offset=result.base_offset,
        log_append_time_ms=result.log_append_time,
        log_start_offset=result.log_start_offset,
        record_errors=tuple([_record_error(*record_error) for record_error in result.record_errors]),
        error_message=result.message,
    )


def _record_error(number: int, message: str) -> BatchIndexAndErrorMessage:
    return BatchIndexAndErrorMessage(batch_index=number, batch_index_error_message=message)


def _is_zstd(records: Buffer) -> bool:
    return (
        len(records) >= HEADER_SIZE
        and records[MAGIC] == 2
        and records[ATTRIBUTES + 1] & ATTRIBUTE_CODEC == _ZSTD
    )


_UNKNOWN_TOPIC_ID: Final = ProduceResult(ErrorCode.UNKNOWN_TOPIC_ID)
_OLD_AND_ZSTD: Final = ProduceResult(
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    message="zstd needs version 7 of Produce: upgrade the client or use another codec",
)

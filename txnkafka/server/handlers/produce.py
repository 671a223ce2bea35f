"""Produce: record batches for partitions, one each.

Versions 3 to 13, announced from 0 on (KAFKA-18659). Up to 12 topics have names, 13 has ids. Version 12 adds
the partitions to the transaction by itself, 11 knows TRANSACTION_ABORTABLE, earlier ones get
INVALID_TXN_STATE (KIP-890). zstd needs version 7. Records that were refused are named from version 8 on.

A request with ``acks`` 0 has no answer; when it fails the connection is closed, so that the producer learns
that something is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.broker.requests import ProduceRequest as Batches
from txnkafka.broker.requests import ProduceResult
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.record.batch_header import ATTRIBUTE_CODEC, ATTRIBUTES, HEADER_SIZE, MAGIC
from txnkafka.server.context import CloseConnection
from txnkafka.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from txnkafka.broker.broker import Broker
    from txnkafka.server.context import Context, Reply
    from txnkafka.wire.codegen.fields import Buffer
    from txnkafka.wire.messages.produce import TopicProduceData

__all__ = ["handle"]

_ADMIN_CLIENT: Final = "__admin_client"  # may write to internal topics
_ZSTD: Final = 4


def handle(broker: Broker, request: ProduceRequest, version: int, context: Context, reply: Reply) -> None:
    """Answer when everything is durable that the broker could append."""
    answer = _Answer(broker, request, version, context)
    batches = {
        partition: records for partition, records in answer.batches.items() if partition not in answer.refused
    }
    if not batches:
        reply(answer.of({}))
        return
    broker.produce(
        Batches(
            batches,
            request.transactional_id,
            request.acks,
            version,
            is_internal_allowed=context.client_id == _ADMIN_CLIENT,
        ),
        lambda results: reply(answer.of(results)),
        now_ms=context.now_ms,
    )


class _Answer:
    """One request by partitions: ``batches`` of the topics that exist, ``refused`` ones among them."""

    def __init__(self, broker: Broker, request: ProduceRequest, version: int, context: Context) -> None:
        self._request = request
        self._client_id = context.client_id
        names = broker.image.topic_names
        self._names = [
            names.get(topic.topic_id) if version >= 13 else topic.name for topic in request.topic_data
        ]
        self.batches: dict[TopicPartition, memoryview | None] = {}
        self.refused: dict[TopicPartition, ProduceResult] = {}
        for name, topic in zip(self._names, request.topic_data, strict=True):
            if name is None:
                continue
            for data in topic.partition_data:
                partition, records = TopicPartition(name, data.index), data.records
                self.batches[partition] = None if records is None else memoryview(records)
                if version < 7 and records is not None and _is_zstd(records):
                    self.refused[partition] = _OLD_AND_ZSTD

    def of(self, results: Mapping[TopicPartition, ProduceResult]) -> ProduceResponse | CloseConnection | None:
        """The answer when the broker has appended, or refused, the rest."""
        results = {**results, **self.refused}
        if self._request.acks == 0:
            failed = [
                f"{partition}: {result.error.name}" for partition, result in results.items() if result.error
            ]
            failed += [f"{topic.topic_id}: UNKNOWN_TOPIC_ID" for topic in self._topics_not_there()]
            return CloseConnection(f"produce with acks 0 failed for {', '.join(failed)}") if failed else None
        return ProduceResponse(
            responses=tuple(
                TopicProduceResponse(
                    topic_id=topic.topic_id,
                    name=topic.name,
                    partition_responses=tuple(
                        _response(
                            data.index,
                            _UNKNOWN_TOPIC_ID if name is None else results[TopicPartition(name, data.index)],
                        )
                        for data in topic.partition_data
                    ),
                )
                for name, topic in zip(self._names, self._request.topic_data, strict=True)
                if topic.partition_data
            )
        )

    def _topics_not_there(self) -> Iterator[TopicProduceData]:
        for name, topic in zip(self._names, self._request.topic_data, strict=True):
            if name is None:
                yield topic


def _response(index: int, result: ProduceResult) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        error_code=result.error,
        base_offset=result.base_offset,
        log_append_time_ms=result.log_append_time,
        log_start_offset=result.log_start_offset,
        record_errors=tuple(
            BatchIndexAndErrorMessage(batch_index=number, batch_index_error_message=message)
            for number, message in result.record_errors
        ),
        error_message=result.message,
    )


def _is_zstd(records: Buffer) -> bool:
    return (
        len(records) >= HEADER_SIZE
        and records[MAGIC] == 2
        and records[ATTRIBUTES + 1] & ATTRIBUTE_CODEC == _ZSTD
    )


_UNKNOWN_TOPIC_ID: Final = ProduceResult(ErrorCode.UNKNOWN_TOPIC_ID)
_OLD_AND_ZSTD: Final = ProduceResult(
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, message="zstd needs version 7 of Produce"
)

"""The messages of a half as finished record batches, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka._core.consumer_record import ConsumerRecord, consumer_records
from txnkafka._core.read_committed import select
from txnkafka._core.scan import scan
from txnkafka.checkback.message import TAGS, TXN_ID, Message
from txnkafka.errors import CorruptRecordError
from txnkafka.record.batch import header_key
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches
from txnkafka.wire.records.half_records import HalfBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from txnkafka.record.builder import InputRecord, RecordBatchBuilder


def batches_of(
    messages: Iterable[tuple[Message, int]], transaction_id: str, builder: RecordBatchBuilder, now_ms: int
) -> tuple[HalfBatch, ...]:
    """Encode messages with their partitions: one batch for each partition, with the records in the order of
    the messages. The header ``txn.id`` is added. Raises the errors of the builder."""
    records: dict[tuple[str, int], list[InputRecord]] = {}
    for message, partition in messages:
        headers = [*message.record_headers(), (TXN_ID, transaction_id.encode())]
        timestamp = now_ms if message.timestamp is None else message.timestamp
        row = message.key_bytes(), message.value_bytes(), timestamp, headers
        records.setdefault((message.topic, partition), []).append(row)
    return tuple(
        HalfBatch(topic, partition, bytes(builder.build(rows)))
        for (topic, partition), rows in records.items()
    )


def messages_of(batches: Iterable[HalfBatch]) -> list[Message]:
    """Decode the messages of a half. Raises CorruptRecordError for bytes that are not one whole batch."""
    return [_message(record) for each in batches for record in _records(each)]


def _records(batch: HalfBatch) -> Iterator[ConsumerRecord]:
    source = memoryview(batch.records)
    index = scan(source)
    if len(index) != 1 or index.end_position != len(source):
        reason = index.stop_reason or f"{len(index)} batches instead of one"
        raise CorruptRecordError(reason, topic=batch.topic, partition=batch.partition)

    def read(position: int, length: int) -> memoryview:
        return source[position : position + length]

    for columns in ChunkDecoder(headers=True).chunks(SelectedBatches(read, index, select(index))):
        yield from consumer_records(
            columns, batch.topic, batch.partition, 0, len(columns), header_key=header_key
        )


def _message(record: ConsumerRecord) -> Message:
    headers = [(name, value) for name, value in record.headers if name != TXN_ID]
    tags = [value for name, value in headers if name == TAGS and value is not None]
    return Message(
        record.topic,
        record.value,
        tags=tags[0].decode(errors="replace") if tags else None,
        keys=record.key,
        headers=[each for each in headers if each[0] != TAGS],
        partition=record.partition,
        timestamp=record.timestamp,
    )

"""What a leader takes: one batch, checked in Kafka's order with Kafka's errors, and made ready for the log.

Nothing here knows the log. A batch that passes has its offsets, leader epoch and timestamps in place and can
be written as it is; a batch that does not is left alone.

Better than Kafka: every record of a client's batch is read in full, compressed or not (length, offset delta,
headers), and bytes behind the batch are refused.

Source: ``UnifiedLog.analyzeAndValidateRecords``, ``LogValidator``.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from txnkafka._core import producer_table
from txnkafka._core.encode import replace_payload, set_max_timestamp
from txnkafka._core.validate import read_batch, read_records
from txnkafka.errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    MessageTooLargeError,
)
from txnkafka.model import NO_PRODUCER_ID, NO_TIMESTAMP
from txnkafka.record.batch_header import (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_LOG_APPEND_TIME,
    HEADER_SIZE,
    MAGIC_2,
)
from txnkafka.record.compression import CompressionType, Compressor, Decompressor

if TYPE_CHECKING:
    from txnkafka._core.validate import BatchFields
    from txnkafka.config import LogConfig

__all__ = ["AppendOrigin", "LogValidator", "ValidatedBatch"]

_LEVELS = {"gzip": "compression_gzip_level", "lz4": "compression_lz4_level", "zstd": "compression_zstd_level"}


class AppendOrigin(enum.IntEnum):
    """Who appends: a replica (the log replayed), a coordinator (markers, offsets), or a client."""

    REPLICATION = producer_table.REPLICATION
    COORDINATOR = producer_table.COORDINATOR
    CLIENT = producer_table.CLIENT


_CLIENT = AppendOrigin.CLIENT  # looked up in the class it takes half a microsecond
_NOT_COMPRESSED = CompressionType.NONE


class ValidatedBatch(NamedTuple):
    """A batch as it will be in the log, and what the log has to know of it. ``log_append_time`` is -1 for
    CreateTime."""

    batch: bytearray
    fields: BatchFields
    max_timestamp: int
    log_append_time: int


class LogValidator:
    """Checks batches for the logs of one topic; for one thread at a time."""

    def __init__(self, config: LogConfig) -> None:
        self.config = config
        self._decompressor = Decompressor(max_bytes=max(64 << 20, config.max_message_bytes))
        self._target = None if config.compression_type == "producer" else config.compression_type

    def prepare(self, batch: bytearray, origin: AppendOrigin, now_ms: int) -> ValidatedBatch:
        """The batch ready for the log but for its offsets. Raises ProduceError or CorruptRecordError."""
        fields = read_batch(batch)
        self._check_frame(fields, len(batch), origin)
        records = self._records(batch, fields)
        if fields.last_offset_delta < 0:
            raise InvalidRecordError(f"the last offset lies {-fields.last_offset_delta} before the first")
        if origin == _CLIENT:
            _check_header(fields)
            self._check_records(fields, now_ms)
        return self._stored(batch, fields, records, now_ms)

    def _check_frame(self, fields: BatchFields, length: int, origin: AppendOrigin) -> None:
        if fields.problem:
            raise CorruptRecordError(fields.problem)
        if fields.magic < MAGIC_2:
            raise InvalidRecordError(f"message format {fields.magic} is not written any more, only 2 is")
        if origin == _CLIENT and fields.base_offset != 0:
            raise InvalidRecordError(f"the base offset of a new batch is 0, not {fields.base_offset}")
        if fields.size > self.config.max_message_bytes:
            limit = self.config.max_message_bytes
            raise MessageTooLargeError(f"the batch has {fields.size} bytes, max.message.bytes is {limit}")
        if not fields.crc_holds:
            raise CorruptRecordError("the CRC of the batch does not match its bytes")
        if fields.size != length:
            raise InvalidRecordError(f"{length - fields.size} bytes follow the batch; one batch is appended")

    def _records(self, batch: bytearray, fields: BatchFields) -> memoryview | None:
        """The decompressed records, looked at; None when they are not compressed."""
        codec = fields.attributes & ATTRIBUTE_CODEC
        if codec == _NOT_COMPRESSED:
            return None
        self._decompressor.reset()
        start, end = self._decompressor.append(codec, memoryview(batch)[HEADER_SIZE:])
        records = self._decompressor.buffer[start:end]
        read_records(fields, records)
        return records

    def _check_records(self, fields: BatchFields, now_ms: int) -> None:
        if fields.record_problem:
            raise InvalidRecordError(f"record {fields.bad_record} of the batch: {fields.record_problem}")
        if fields.out_of_order >= 0:
            raise InvalidRecordError(f"the offset delta of record {fields.out_of_order} is not its number")
        if not self.config.log_append_time:
            self._check_timestamps(fields, now_ms)
        if self.config.compact and fields.keyless >= 0:
            raise InvalidRecordError(f"record {fields.keyless} has no key, which a compacted topic needs")

    def _check_timestamps(self, fields: BatchFields, now_ms: int) -> None:
        if fields.latest_timestamp == NO_TIMESTAMP and fields.attributes & ATTRIBUTE_LOG_APPEND_TIME:
            raise InvalidTimestampError("a producer must not set the timestamp type LogAppendTime")
        oldest = now_ms - self.config.message_timestamp_before_max_ms
        newest = now_ms + self.config.message_timestamp_after_max_ms
        for timestamp in (fields.earliest_timestamp, fields.latest_timestamp):
            if timestamp != NO_TIMESTAMP and not oldest <= timestamp <= newest:
                raise InvalidTimestampError(
                    f"a record's timestamp is {timestamp}, outside of {oldest} to {newest}, which "
                    "message.timestamp.before.max.ms and after.max.ms allow"
                )

    def _stored(
        self, batch: bytearray, fields: BatchFields, records: memoryview | None, now_ms: int
    ) -> ValidatedBatch:
        if self._target and not fields.attributes & ATTRIBUTE_CONTROL:
            batch = self._recompressed(batch, fields, records)
        if self.config.log_append_time:
            set_max_timestamp(batch, 0, timestamp_type=1, max_timestamp=now_ms)
            return ValidatedBatch(batch, fields, now_ms, now_ms)
        latest = fields.latest_timestamp
        if latest != fields.max_timestamp or fields.attributes & ATTRIBUTE_LOG_APPEND_TIME:
            set_max_timestamp(batch, 0, timestamp_type=0, max_timestamp=latest)
        return ValidatedBatch(batch, fields, latest, NO_TIMESTAMP)

    def _recompressed(
        self, batch: bytearray, fields: BatchFields, records: memoryview | None
    ) -> bytearray:
        wanted = "none" if self._target == "uncompressed" else str(self._target)
        if CompressionType(fields.attributes & ATTRIBUTE_CODEC).label == wanted:
            return batch
        plain = memoryview(batch)[HEADER_SIZE:] if records is None else records
        level = getattr(self.config, _LEVELS[wanted]) if wanted in _LEVELS else None
        payload = Compressor(wanted, level).compress(plain)
        stored = replace_payload(batch, payload, codec=CompressionType[wanted.upper()])
        limit = self.config.max_message_bytes
        if len(stored) > limit:
            raise MessageTooLargeError(
                f"the batch has {len(stored)} bytes as {self._target}, max.message.bytes is {limit}"
            )
        return stored


def _check_header(fields: BatchFields) -> None:
    if fields.record_count <= 0:
        raise InvalidRecordError(f"a batch of {fields.record_count} records cannot be appended")
    if fields.last_offset_delta + 1 != fields.record_count:
        raise InvalidRecordError(
            f"the batch says {fields.record_count} records for {fields.last_offset_delta + 1} offsets"
        )
    if fields.attributes & ATTRIBUTE_CONTROL:
        raise InvalidRecordError("control records are written by coordinators only")
    if fields.producer_id > NO_PRODUCER_ID and fields.base_sequence < 0:
        raise InvalidRecordError(
            f"producer {fields.producer_id} has sent the sequence {fields.base_sequence}"
        )

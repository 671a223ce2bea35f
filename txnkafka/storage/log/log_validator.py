"""Validates a batch sent to a leader, with Kafka's checks, in Kafka's order, with Kafka's errors.

Validation does not depend on the state of the log. The caller's bytes are never changed: fields that differ
in the log (timestamps, offsets, leader epoch) change in a copy of the 61-byte header, and records that the
log compresses differently go to a new buffer.

Stricter than Kafka: every record of a client's batch is read in full, compressed or not (length, offset
delta, headers), and bytes after the batch are refused.

Source: ``UnifiedLog.analyzeAndValidateRecords``, ``LogValidator``.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from txnkafka._core import producer_table
from txnkafka._core.validate import FAULTS, BatchRules
from txnkafka.errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    KafkaError,
    MessageTooLargeError,
    ProduceError,
)
from txnkafka.record.batch_header import HEADER_SIZE
from txnkafka.record.compression import CompressionType, Compressor, Decompressor

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from txnkafka._core.validate import IncomingBatch
    from txnkafka.config import LogConfig

MOST_RECORD_ERRORS = 100  # per error
_LEVELS = {"gzip": "compression_gzip_level", "lz4": "compression_lz4_level", "zstd": "compression_zstd_level"}


class AppendOrigin(enum.IntEnum):
    """The origin of a batch: a replica (replays the log), a coordinator (markers, offsets), or a client."""

    REPLICATION = producer_table.REPLICATION
    COORDINATOR = producer_table.COORDINATOR
    CLIENT = producer_table.CLIENT


# The error of each fault in _core/validate.pyx, and its text.
_REFUSALS: dict[str, tuple[type[KafkaError], str]] = {
    "fine": (KafkaError, ""),
    "too short": (CorruptRecordError, "{batch.received} bytes are not a record batch"),
    "too small": (
        CorruptRecordError,
        "the batch header announces {batch.size} bytes, fewer than any format",
    ),
    "unknown magic": (CorruptRecordError, "the magic byte is {batch.magic}, not 0, 1 or 2"),
    "no header": (CorruptRecordError, "the batch header announces {batch.size} bytes, fewer than a header"),
    "cut off": (
        CorruptRecordError,
        "the batch header announces {batch.size} bytes, but {batch.received} were received",
    ),
    "larger than any": (
        CorruptRecordError,
        "the batch header announces {batch.size} bytes, too many for a batch",
    ),
    "old format": (InvalidRecordError, "message format {batch.magic} cannot be appended, only 2 can"),
    "base offset": (InvalidRecordError, "the base offset of a new batch is 0, not {batch.base_offset}"),
    "too large": (
        MessageTooLargeError,
        "the batch has {batch.size} bytes, max.message.bytes is {config.max_message_bytes}",
    ),
    "wrong CRC": (CorruptRecordError, "the CRC of the batch does not match its bytes"),
    "bytes behind": (InvalidRecordError, "{behind} bytes follow the batch; append one batch at a time"),
    "last before first": (InvalidRecordError, "the last offset lies {before} before the first"),
    "no records": (InvalidRecordError, "a batch of {batch.record_count} records cannot be appended"),
    "count": (InvalidRecordError, "the batch claims {batch.record_count} records for {offsets} offsets"),
    "control": (InvalidRecordError, "control records are written by coordinators only"),
    "no sequence": (
        InvalidRecordError,
        "producer {batch.producer_id} has sent the sequence {batch.base_sequence}",
    ),
    "bad record": (InvalidRecordError, "record {batch.bad_record} of the batch: {batch.record_problem}"),
    "out of order": (InvalidRecordError, "the offset delta of record {number} is not its number"),
    "timestamp type": (
        InvalidTimestampError,
        "a producer must not set the timestamp type LogAppendTime",
    ),
    "timestamp": (
        InvalidTimestampError,
        "the timestamp of record {number} is {timestamp}, outside of {oldest} to {newest}, which "
        "message.timestamp.before.max.ms and after.max.ms allow",
    ),
    "no key": (InvalidRecordError, "record {number} has no key, which a compacted topic needs"),
}
_OF_FAULT = [_REFUSALS[fault] for fault in FAULTS]
_OF_RECORDS = tuple(FAULTS.index(fault) for fault in ("out of order", "timestamp", "no key"))


def batch_rules(config: LogConfig) -> BatchRules:
    """Return the rules of a log with these settings."""
    return BatchRules(
        max_message_bytes=config.max_message_bytes,
        segment_bytes=config.segment_bytes,
        log_append_time=config.log_append_time,
        compact=config.compact,
        compresses=config.compression_type not in ("producer", "uncompressed"),
        before_max_ms=config.message_timestamp_before_max_ms,
        after_max_ms=config.message_timestamp_after_max_ms,
    )


class LogValidator:
    """Validates batches for any number of logs. Only one thread at a time may use it: it keeps up to 32 MiB
    of buffers for decompression."""

    def __init__(self) -> None:
        self._decompressor = Decompressor()

    def validate(
        self, batch: Buffer, config: LogConfig, rules: BatchRules, origin: AppendOrigin, now_ms: int
    ) -> IncomingBatch:
        """Return the batch as the log will store it, except for its offsets; ``rules`` are derived from
        ``config``. Raises ProduceError or CorruptRecordError."""
        incoming = rules.read(batch, origin, now_ms)
        if not incoming.is_accepted:
            self.finish(incoming, config, rules, origin, now_ms)
        return incoming

    def finish(
        self, batch: IncomingBatch, config: LogConfig, rules: BatchRules, origin: AppendOrigin, now_ms: int
    ) -> None:
        """Complete the validation of a batch that ``rules`` have read, like ``validate``."""
        fault = rules.frame_fault(batch, origin)
        if fault:
            raise _refusal(fault, batch, config)
        records = self._decompressed(batch, config) if batch.codec else None
        fault = rules.content_fault(batch, origin, now_ms)
        if fault:
            raise _with_records(fault, batch, config, records, now_ms)
        if config.compression_type != "producer" and not batch.is_control:
            _recompress(batch, config, records)
        batch.stamp(rules, now_ms)

    def _decompressed(self, batch: IncomingBatch, config: LogConfig) -> memoryview:
        """Decompress the records, and let ``batch`` check them."""
        decompressor = self._decompressor
        decompressor.max_bytes = max(64 << 20, config.max_message_bytes)
        decompressor.reset()
        start, end = decompressor.append(batch.codec, batch.payload)
        records = decompressor.buffer[start:end]
        batch.walk_decompressed(records)
        return records


def _refusal(fault: int, batch: IncomingBatch, config: LogConfig, **facts: int) -> KafkaError:
    kind, text = _OF_FAULT[fault]
    return kind(
        text.format(
            batch=batch,
            config=config,
            behind=batch.received - batch.size,
            before=-batch.last_offset_delta,
            offsets=batch.last_offset_delta + 1,
            **facts,
        )
    )


def _with_records(
    fault: int, batch: IncomingBatch, config: LogConfig, records: memoryview | None, now_ms: int
) -> KafkaError:
    """Return the error of a fault in header or records. For refused records, return the error of the first
    record with this fault, which lists all refused records, like Kafka's ``ApiRecordError``."""
    if fault not in _OF_RECORDS:
        return _refusal(fault, batch, config)
    limits = {
        "oldest": now_ms - config.message_timestamp_before_max_ms,
        "newest": now_ms + config.message_timestamp_after_max_ms,
    }
    plain = batch.payload if records is None else records
    errors = [
        (number, kind, _refusal(kind, batch, config, number=number, timestamp=timestamp, **limits))
        for number, kind, timestamp in batch_rules(config).bad_records(
            batch, plain, now_ms, MOST_RECORD_ERRORS
        )
    ]
    first = next((error for _, kind, error in errors if kind == fault), None)
    if first is None:  # it is after the hundred listed records
        first = _OF_FAULT[fault][0]("records of the batch are refused")
    if isinstance(first, ProduceError):
        first.record_errors = tuple((number, str(error)) for number, _, error in errors)
    return first


def _recompress(batch: IncomingBatch, config: LogConfig, records: memoryview | None) -> None:
    """Compress the records with the codec of ``compression.type``."""
    wanted = "none" if config.compression_type == "uncompressed" else config.compression_type
    if wanted == "none" and not batch.codec:  # like all batches of coordinators
        return
    if CompressionType(batch.codec).label == wanted:
        return
    level = getattr(config, _LEVELS[wanted]) if wanted in _LEVELS else None
    payload = bytes(Compressor(wanted, level).compress(batch.payload if records is None else records))
    size, limit = HEADER_SIZE + len(payload), config.max_message_bytes
    if size > limit:
        raise MessageTooLargeError(
            f"the batch has {size} bytes as {config.compression_type}, max.message.bytes is {limit}"
        )
    batch.replace_records(payload, CompressionType[wanted.upper()])

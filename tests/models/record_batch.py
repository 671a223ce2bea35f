"""Magic 2 batches, decoded as by the full reader of Apache Kafka 4.3.

A reimplementation of org.apache.kafka.common.record.internal.DefaultRecordBatch and DefaultRecord without
regard to speed. A batch is decoded as a whole or not at all.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from crc32c import crc32c

from tests.models.codecs import CodecError, decompress
from tests.models.varint import VarintError, read_varint, read_varlong

__all__ = ["BatchHeader", "InvalidBatchError", "Record", "decode_batch", "read_header"]

HEADER_SIZE = 61
_HEADER = struct.Struct(">qiibIhiqqqhii")
CODEC, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40


class InvalidBatchError(ValueError):
    """The Java reader would raise an exception here."""


class BatchHeader(NamedTuple):
    """The fields of a header, named and ordered as in the compiled scan."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    count: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    partition_leader_epoch: int
    attributes: int
    magic: int
    crc: int
    control_type: int
    coordinator_epoch: int


class Record(NamedTuple):
    """One record. ``timestamp_type``: 0 CreateTime, 1 LogAppendTime, -1 none (magic 0)."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    leader_epoch: int | None


def read_header(data: bytes, position: int) -> BatchHeader:
    """Read the header of the whole magic 2 batch at ``position``; checks nothing."""
    base_offset, length, leader_epoch, magic, crc, attributes, last_delta, *rest = _HEADER.unpack_from(
        data, position
    )
    base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count = rest
    size = 12 + length
    control_type, coordinator_epoch = -1, -1
    right = crc32c(data[position + 21 : position + size]) == crc
    if right and attributes & CONTROL and attributes & CODEC == 0 and count > 0:
        control_type, coordinator_epoch = _control(data[position + HEADER_SIZE : position + size])
    return BatchHeader(
        position, size, base_offset, base_offset + last_delta, count, base_timestamp, max_timestamp,
        producer_id, producer_epoch, base_sequence, leader_epoch, attributes, magic, crc,
        control_type, coordinator_epoch,
    )  # fmt: skip


def _control(records: bytes) -> tuple[int, int]:
    """Read control type and coordinator epoch from the first record; -1 for what cannot be read."""
    control_type = -1
    try:
        key, value = _first_key_and_value(records)
    except (VarintError, InvalidBatchError):
        return -1, -1
    if key is None or len(key) < 4 or key[0] >= 0x80:
        return -1, -1
    control_type = int.from_bytes(key[2:4], "big", signed=True)
    if control_type not in (0, 1):
        return control_type, -1
    if value is None or len(value) < 6 or value[0] >= 0x80:
        return control_type, -1
    return control_type, int.from_bytes(value[2:6], "big", signed=True)


def _first_key_and_value(records: bytes) -> tuple[bytes | None, bytes | None]:
    _, position = read_varint(records, 0)
    _, position = read_varlong(records, position + 1)
    _, position = read_varint(records, position)
    key, position = _bytes(records, position)
    try:
        value, position = _bytes(records, position)
    except (VarintError, InvalidBatchError):
        value = None
    return key, value


def decode_batch(batch: bytes) -> list[Record]:
    """Return all records of one batch, or raise ``InvalidBatchError``."""
    if len(batch) < HEADER_SIZE:
        raise InvalidBatchError("smaller than a header")
    header = read_header(batch, 0)
    if header.size != len(batch):
        raise InvalidBatchError("length field")
    if header.magic != 2:
        raise InvalidBatchError("magic")
    if crc32c(batch[21:]) != header.crc:
        raise InvalidBatchError("CRC")
    if header.count < 0:
        raise InvalidBatchError("negative record count")
    if header.count == 0:
        return []
    if header.attributes & CODEC > 4:
        raise InvalidBatchError("codec")
    try:
        records = decompress(header.attributes & CODEC, batch[HEADER_SIZE:])
        return _decode_records(header, records)
    except (CodecError, VarintError) as error:
        raise InvalidBatchError(str(error)) from error


def _decode_records(header: BatchHeader, data: bytes) -> list[Record]:
    records = []
    position = 0
    for _ in range(header.count):
        length, position = read_varint(data, position)
        if length < 0 or position + length > len(data):
            raise InvalidBatchError("record length")
        records.append(_decode_record(header, data[position : position + length]))
        position += length
    if position != len(data):
        raise InvalidBatchError("bytes after the last record")
    return records


def _decode_record(header: BatchHeader, body: bytes) -> Record:
    if not body:
        raise InvalidBatchError("empty record")
    timestamp_delta, position = read_varlong(body, 1)
    offset_delta, position = read_varint(body, position)
    key, position = _bytes(body, position)
    value, position = _bytes(body, position)
    headers, position = _headers(body, position)
    if position != len(body):
        raise InvalidBatchError("record length")
    timestamp, timestamp_type = _wrap(header.base_timestamp + timestamp_delta), 0
    if header.attributes & LOG_APPEND_TIME:
        timestamp, timestamp_type = header.max_timestamp, 1
    leader_epoch = header.partition_leader_epoch
    return Record(
        offset=header.base_offset + offset_delta,
        timestamp=timestamp,
        timestamp_type=timestamp_type,
        key=key,
        value=value,
        headers=headers,
        leader_epoch=None if leader_epoch < 0 else leader_epoch,
    )


def _wrap(value: int) -> int:
    """Wrap as Java's long does."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _bytes(body: bytes, position: int) -> tuple[bytes | None, int]:
    """Read a length and its bytes; any negative length is null."""
    length, position = read_varint(body, position)
    if length < 0:
        return None, position
    if position + length > len(body):
        raise InvalidBatchError("a field runs past its record")
    return body[position : position + length], position + length


def _headers(body: bytes, position: int) -> tuple[list[tuple[str, bytes | None]], int]:
    count, position = read_varint(body, position)
    if count < 0 or count > len(body) - position:
        raise InvalidBatchError("header count")
    headers = []
    for _ in range(count):
        key, position = _bytes(body, position)
        if key is None:
            raise InvalidBatchError("null header key")
        value, position = _bytes(body, position)
        headers.append((key.decode("utf-8", "replace"), value))
    return headers, position

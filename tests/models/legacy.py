"""Magic 0 and 1 entries, including compressed wrappers (LegacyRecord, AbstractLegacyRecordBatch).

An entry of the log is decoded as a whole or not at all; the CRCs of the entry and of each inner entry must be
right.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from tests.models.codecs import CodecError, decompress
from tests.models.record_batch import BatchHeader, InvalidBatchError, Record

__all__ = ["decode_entry", "read_legacy_header"]

_CODEC, _LOG_APPEND_TIME = 0x07, 0x08
_OVERHEAD = {0: 14, 1: 22}


class _Entry(NamedTuple):
    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def read_legacy_header(data: bytes, position: int) -> BatchHeader:
    """Read the header that the compiled scan returns for an entry."""
    offset, length, crc, magic, attributes = struct.unpack_from(">qiIbB", data, position)
    timestamp = struct.unpack_from(">q", data, position + 18)[0] if magic == 1 else -1
    return BatchHeader(
        position=position, size=12 + length, base_offset=offset, last_offset=offset,
        count=-1 if attributes & _CODEC else 1, base_timestamp=timestamp, max_timestamp=timestamp,
        producer_id=-1, producer_epoch=-1, base_sequence=-1, partition_leader_epoch=-1,
        attributes=attributes & (_CODEC | _LOG_APPEND_TIME), magic=magic, crc=crc,
        control_type=-1, coordinator_epoch=-1,
    )  # fmt: skip


def decode_entry(data: bytes) -> list[Record]:
    """Return the record of one entry, or all records of a wrapper; raises ``InvalidBatchError``."""
    entry = _read_entry(data)
    codec = entry.attributes & _CODEC
    if codec == 0:
        return [_record(entry, entry.offset, entry)]
    if entry.value is None:
        raise InvalidBatchError("a wrapper without value")
    try:
        content = decompress(codec, entry.value, entry.magic)
    except CodecError as error:
        raise InvalidBatchError(str(error)) from error
    inner = [_read_entry(each) for each in _split(content)]
    if not inner:
        raise InvalidBatchError("an empty wrapper")
    if any(each.attributes & _CODEC for each in inner):
        raise InvalidBatchError("a wrapper in a wrapper")
    base_offset = _base_offset(entry, inner[-1])
    return [_record(each, base_offset + each.offset, entry) for each in inner]


def _split(content: bytes) -> list[bytes]:
    """Return the inner entries; an incomplete last one is ignored, as in DataLogInputStream."""
    entries = []
    position = 0
    while len(content) - position >= 12:
        (size,) = struct.unpack_from(">i", content, position + 8)
        if size < 14:
            raise InvalidBatchError("entry size")
        if position + 12 + size > len(content):
            break
        entries.append(content[position : position + 12 + size])
        position += 12 + size
    return entries


def _base_offset(wrapper: _Entry, last: _Entry) -> int:
    """Return the number to add to inner offsets: they are absolute in magic 0, relative in magic 1."""
    if wrapper.magic == 0 or wrapper.offset == 0:
        return 0
    if wrapper.offset < last.offset:
        raise InvalidBatchError("the wrapper's offset is lower than the last inner offset")
    return wrapper.offset - last.offset


def _read_entry(data: bytes) -> _Entry:
    offset, size, crc, magic, attributes = struct.unpack_from(">qiIbB", data)
    if magic not in _OVERHEAD or size < _OVERHEAD[magic]:
        raise InvalidBatchError("magic or size")
    if zlib.crc32(data[16:]) != crc:
        raise InvalidBatchError("CRC")
    timestamp, position = (struct.unpack_from(">q", data, 18)[0], 26) if magic == 1 else (-1, 18)
    key, position = _bytes(data, position)
    value, position = _bytes(data, position)
    return _Entry(offset, magic, attributes, timestamp, key, value)


def _bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    if position + 4 > len(data):
        raise InvalidBatchError("a field runs past its entry")
    (length,) = struct.unpack_from(">i", data, position)
    position += 4
    if length < 0:
        return None, position
    if position + length > len(data):
        raise InvalidBatchError("a field runs past its entry")
    return data[position : position + length], position + length


def _record(entry: _Entry, offset: int, wrapper: _Entry) -> Record:
    timestamp, timestamp_type = entry.timestamp, -1
    if entry.magic == 1:
        timestamp_type = 1 if wrapper.attributes & _LOG_APPEND_TIME else 0
        if timestamp_type == 1:
            timestamp = wrapper.timestamp
    return Record(offset, timestamp, timestamp_type, entry.key, entry.value, [], None)

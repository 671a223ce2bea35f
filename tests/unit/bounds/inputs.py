"""Small files that become large: without limits a reader of any of them would use many times the allowed
memory."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

from crc32c import crc32c

__all__ = [
    "TINY_RECORD",
    "coordinator_log",
    "group_log",
    "legacy_wrappers",
    "many_batches",
    "many_headers",
    "many_keys",
    "one_record_of_headers",
    "tiny_records",
    "write_log",
]

GZIP = 1


def varint(value: int) -> bytes:
    """Encode in zigzag, as fields of records are."""
    return uvarint(value << 1 ^ value >> 63)


def uvarint(value: int) -> bytes:
    """Encode unsigned, as compact lengths are."""
    found = bytearray()
    while value >= 128:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes((*found, value))


def record(key: bytes | None, value: bytes | None, headers: bytes = b"\0") -> bytes:
    """Encode one record with offset delta 0; ``headers`` begin with their number."""
    fields = b"".join(varint(-1) if field is None else varint(len(field)) + field for field in (key, value))
    body = b"\0\0\0" + fields + headers
    return varint(len(body)) + body


def batch(records: bytes, count: int, base_offset: int = 0) -> bytes:
    """Encode a gzip batch of magic 2."""
    payload = gzip.compress(records, 6, mtime=0)
    body = struct.pack(">hiqqqhii", GZIP, count - 1, 5, 5, -1, -1, -1, count) + payload
    return struct.pack(">qiibI", base_offset, len(body) + 9, 0, 2, crc32c(body)) + body


def legacy_entry(value: bytes, codec: int, offset: int) -> bytes:
    """Encode an entry of magic 1 without a key."""
    body = struct.pack(">bbqii", 1, codec, 5, -1, len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


TINY_RECORD = record(None, None)


def tiny_records(size: int) -> bytes:
    """Encode one batch of the smallest records."""
    count = size // len(TINY_RECORD)
    return batch(TINY_RECORD * count, count)


def many_headers(size: int) -> bytes:
    """Encode one batch whose records consist of a thousand headers of two bytes each."""
    one = record(None, None, varint(1000) + b"\0\1" * 1000)
    return batch(one * (size // len(one)), size // len(one))


def one_record_of_headers(count: int) -> bytes:
    """Encode a batch of one record with many headers."""
    return batch(record(b"k", b"v", varint(count) + b"\0\1" * count), 1)


def legacy_wrappers(size: int) -> bytes:
    """Encode wrappers of magic 1 that decompress to 1 MiB each."""
    wrapped = gzip.compress(legacy_entry(bytes(1 << 20), 0, 0), 9, mtime=0)
    return b"".join(legacy_entry(wrapped, GZIP, i + 1) for i in range(size >> 20))


def legacy_wrapper_of_small_entries(size: int) -> bytes:
    """Encode one wrapper of entries without key and value."""
    one = legacy_entry(b"", 0, 0)
    return legacy_entry(gzip.compress(one * (size // len(one)), 6, mtime=0), GZIP, size // len(one))


def many_batches(size: int) -> bytes:
    """Encode the smallest entries that the format allows, of magic 0."""
    body = struct.pack(">bbii", 0, 0, -1, -1)
    crc = zlib.crc32(body)
    return b"".join(struct.pack(">qiI", i, 14, crc) + body for i in range(size // 26))


def coordinator_log(size: int) -> bytes:
    """Encode a transaction with an empty topic name for each three bytes."""
    count = size // 3
    value = struct.pack(">hqhi", 1, 5, 0, 60000) + b"\1" + uvarint(count + 1) + b"\1\1\0" * count
    value += struct.pack(">qq", 5, 5) + b"\0"
    return batch(record(struct.pack(">hh", 0, 1) + b"a", value), 1)


def group_log(size: int) -> bytes:
    """Encode a group of members without names."""
    count = size // 26
    value = struct.pack(">hhih", 3, 0, 1, -1) + struct.pack(">hq", -1, 5) + struct.pack(">i", count)
    value += (struct.pack(">hhhh", 0, -1, 0, 0) + struct.pack(">iiii", 0, 0, 0, 0)) * count
    return batch(record(struct.pack(">hh", 2, 1) + b"g", value), 1)


def many_keys(count: int, value_bytes: int) -> bytes:
    """Encode transactional ids whose last states are large."""
    key = struct.pack(">hh", 0, 8)
    records = b"".join(record(key + b"%08d" % i, bytes(value_bytes)) for i in range(count))
    return batch(records, count)


def write_log(directory: Path, content: bytes, name: str = "t-0") -> str:
    """Write a log directory with one segment; return its path."""
    (directory / name).mkdir()
    (directory / name / f"{0:020}.log").write_bytes(content)
    return str(directory)

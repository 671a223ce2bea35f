"""Writes batches of all kinds for tests: magic 0, 1 and 2, every codec, with any field set to a wrong value.

Fields that are not given are derived from the records as in Kafka's MemoryRecordsBuilder.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from crc32c import crc32c

from tests.models.framing import gzip_member, lz4_frame, xerial, zstd_frame
from tests.models.varint import write_varint, write_varlong

__all__ = [
    "Batch",
    "PlainRecord",
    "compress",
    "control_batch",
    "encode_record",
    "end_marker",
    "legacy_entry",
    "legacy_wrapper",
]

Headers = Sequence[tuple[bytes, bytes | None]]


class PlainRecord(NamedTuple):
    """A record to write. Without ``offset_delta`` its offset follows that of the record before."""

    key: bytes | None
    value: bytes | None
    timestamp: int = 0
    headers: Headers = ()
    offset_delta: int | None = None


def compress(codec: int, content: bytes, magic: int = 2) -> bytes:
    """Compress with the framing of Kafka's writer."""
    if codec == 0:
        return content
    if codec == 1:
        return gzip_member(content)
    if codec == 2:
        return xerial(content)
    if codec == 3:
        return lz4_frame(content, magic=magic)
    if codec == 4:
        return zstd_frame(content)
    raise ValueError(f"codec {codec}")


def _nullable(content: bytes | None) -> bytes:
    return write_varint(-1) if content is None else write_varint(len(content)) + content


def encode_record(record: PlainRecord, *, base_timestamp: int, offset_delta: int) -> bytes:
    """Encode one magic 2 record with its length."""
    delta = (record.timestamp - base_timestamp + 2**63) % 2**64 - 2**63  # wraps as Java's long
    body = b"\0" + write_varlong(delta) + write_varint(offset_delta)
    body += _nullable(record.key) + _nullable(record.value) + write_varint(len(record.headers))
    for key, value in record.headers:
        body += _nullable(key) + _nullable(value)
    return write_varint(len(body)) + body


@dataclass(kw_only=True)
class Batch:
    """A magic 2 batch; ``encode()`` returns its bytes. ``payload`` replaces the bytes after the header."""

    records: Sequence[PlainRecord] = ()
    base_offset: int = 0
    partition_leader_epoch: int = -1
    codec: int = 0
    log_append_time: int | None = None
    transactional: bool = False
    control: bool = False
    delete_horizon: int | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    last_offset_delta: int | None = None
    base_timestamp: int | None = None
    max_timestamp: int | None = None
    count: int | None = None
    payload: bytes | None = None
    magic: int = 2
    more_attributes: int = 0
    crc: int | None = None

    @property
    def attributes(self) -> int:
        """Return the 16 attribute bits."""
        flags = (
            self.log_append_time is not None,
            self.transactional,
            self.control,
            self.delete_horizon is not None,
        )
        bits = sum(8 << i for i, flag in enumerate(flags) if flag)
        return self.codec | bits | self.more_attributes

    def deltas(self) -> list[int]:
        """Return the offset delta of each record."""
        deltas: list[int] = []
        for record in self.records:
            following = deltas[-1] + 1 if deltas else 0
            deltas.append(following if record.offset_delta is None else record.offset_delta)
        return deltas

    def _base_timestamp(self) -> int:
        if self.base_timestamp is not None:
            return self.base_timestamp
        if self.delete_horizon is not None:
            return self.delete_horizon
        return self.records[0].timestamp if self.records else -1

    def _max_timestamp(self) -> int:
        if self.max_timestamp is not None:
            return self.max_timestamp
        if self.log_append_time is not None:
            return self.log_append_time
        return max((record.timestamp for record in self.records), default=-1)

    def _payload(self) -> bytes:
        if self.payload is not None:
            return self.payload
        base_timestamp = self._base_timestamp()
        records = zip(self.records, self.deltas(), strict=True)
        encoded = [
            encode_record(each, base_timestamp=base_timestamp, offset_delta=delta) for each, delta in records
        ]
        return compress(self.codec, b"".join(encoded))

    def encode(self) -> bytes:
        """Return the batch as it is stored in a log."""
        deltas = self.deltas()
        last_offset_delta = self.last_offset_delta
        if last_offset_delta is None:
            last_offset_delta = deltas[-1] if deltas else 0
        count = len(self.records) if self.count is None else self.count
        covered = struct.pack(
            ">hiqqqhii", self.attributes, last_offset_delta, self._base_timestamp(), self._max_timestamp(),
            self.producer_id, self.producer_epoch, self.base_sequence, count,
        ) + self._payload()  # fmt: skip
        crc = crc32c(covered) if self.crc is None else self.crc
        behind_length = struct.pack(">ibI", self.partition_leader_epoch, self.magic, crc) + covered
        return struct.pack(">qi", self.base_offset, len(behind_length)) + behind_length


def control_batch(key: bytes | None, value: bytes | None, *, timestamp: int = 0, **fields: Any) -> bytes:
    """Encode a batch with one control record."""
    record = PlainRecord(key, value, timestamp)
    return Batch(**{"records": [record], "control": True, "transactional": True, **fields}).encode()


def end_marker(control_type: int, *, coordinator_epoch: int = 0, **fields: Any) -> bytes:
    """Encode an ABORT (0) or COMMIT (1) marker."""
    return control_batch(
        struct.pack(">hh", 0, control_type), struct.pack(">hi", 0, coordinator_epoch), **fields
    )


def legacy_entry(
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    magic: int = 1,
    timestamp: int = 0,
    attributes: int = 0,
    crc: int | None = None,
) -> bytes:
    """Encode one magic 0 or 1 entry."""
    covered = struct.pack(">bb", magic, attributes)
    if magic == 1:
        covered += struct.pack(">q", timestamp)
    for content in (key, value):
        covered += struct.pack(">i", -1 if content is None else len(content)) + (content or b"")
    crc = zlib.crc32(covered) if crc is None else crc
    return struct.pack(">qiI", offset, len(covered) + 4, crc) + covered


def legacy_wrapper(
    entries: Sequence[bytes],
    offset: int,
    *,
    codec: int,
    magic: int = 1,
    timestamp: int = 0,
    log_append_time: bool = False,
) -> bytes:
    """Encode a compressed set of entries; ``offset`` is that of the last one."""
    value = compress(codec, b"".join(entries), magic)
    attributes = codec | (8 if log_append_time else 0)
    return legacy_entry(offset, None, value, magic=magic, timestamp=timestamp, attributes=attributes)

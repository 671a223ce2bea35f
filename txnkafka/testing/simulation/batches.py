"""Record batches as written and read by the clients of the simulation, without the engine's codecs.

All records have a key of 4 bytes, and a value of 12 bytes: the unique number of the record, and a checksum of
that number and its partition. Nearly all batches have the same layout, which one call of ``struct`` reads.
"""

from __future__ import annotations

import struct
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from txnkafka._core.crc32c import crc32c
from txnkafka.record.batch_header import ATTRIBUTE_CONTROL, ATTRIBUTE_TRANSACTIONAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_RECORDS: Final = 60  # limit for offset deltas of one byte
_HEADER: Final = struct.Struct(">qiibIhiqqqhii")  # through the number of records
_FRAME: Final = struct.Struct(">8xi4xb")  # length and magic
_UP_TO_CRC: Final = struct.Struct(">qiibI")
_BEHIND_CRC: Final = struct.Struct(">hiqqqhii")
_RECORD: Final = struct.Struct(">bbbbb4sbqIb")
_REST: Final = struct.Struct(">b4sbqIb")  # of a record, from the length of the key on
_KEY_LENGTH: Final = b"\x08"
_RECORD_LENGTH: Final = (_RECORD.size - 1) << 1  # varints are zigzag
_CONTROL_TYPE: Final = struct.Struct(">hh")
_REMEMBERED: Final = 4096  # batches


class Batch(NamedTuple):
    """A batch in a response: ``values`` by offset. ``control`` is 0 for an ABORT marker, 1 for a COMMIT
    marker, None for data. Immutable: readers of the same bytes share it."""

    base_offset: int
    last_offset: int
    producer_id: int
    is_transactional: bool
    control: int | None
    values: list[tuple[int, int]]


def checksum(number: int, topic: str, partition: int) -> int:
    """Return the checksum of a record sent to this partition."""
    return crc32(_place(topic, partition), number)


@cache
def _place(topic: str, partition: int) -> bytes:
    return f"{topic}-{partition}".encode()


def encode(
    records: Sequence[tuple[bytes, int, int]],
    *,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    is_transactional: bool,
) -> memoryview:
    """Return the bytes of a batch of (key, number, checksum)."""
    pack = _RECORD.pack
    body = b"".join(
        [
            pack(_RECORD_LENGTH, 0, 0, i << 1, 8, key, 24, number, check, 0)
            for i, (key, number, check) in enumerate(records)
        ]
    )
    count = len(records)
    behind_crc = _BEHIND_CRC.pack(
        ATTRIBUTE_TRANSACTIONAL if is_transactional else 0,
        count - 1,
        timestamp,
        timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    content = behind_crc + body
    begin = _UP_TO_CRC.pack(0, _UP_TO_CRC.size - 12 + len(content), -1, 2, crc32c(content))
    return memoryview(bytearray(begin + content))


def parse(data: memoryview, topic: str, partition: int) -> list[Batch]:
    """Return the whole batches in a slice of a partition, without a partial last one. Raises ValueError for
    invalid bytes, and for records sent to another partition."""
    batches: list[Batch] = []
    content, place = bytes(data), _place(topic, partition)
    position, end = 0, len(content)
    while end - position >= _HEADER.size:
        length, magic = _FRAME.unpack_from(content, position)
        behind = position + 12 + length
        if magic != 2 or length < _HEADER.size - 12:
            raise ValueError(f"no batch at byte {position}: magic {magic}, length {length}")
        if behind > end:
            break
        batches.append(_batch(content[position:behind], place))
        position = behind
    return batches


def _plain(body: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield (offset delta, number, checksum) of records whose deltas have one byte each."""
    for _, _, _, delta, _, _, _, number, check, _ in _RECORD.iter_unpack(body):
        yield delta >> 1, number, check


def _records(body: bytes, count: int, base_offset: int) -> Iterator[tuple[int, int, int]]:
    """Yield the same of records with longer deltas: later timestamps, or more records. Raises ValueError."""
    at = 0
    for _ in range(count):
        size, at = _varint(body, at)
        end = at + size
        _, at = _varint(body, at + 1)  # after the attributes: the timestamp
        delta, at = _varint(body, at)
        if body[at : at + 1] != _KEY_LENGTH or end - at != _REST.size:
            raise ValueError(f"the batch of offset {base_offset} has a record of {end - at} bytes")
        _, _, _, number, check, _ = _REST.unpack_from(body, at)
        at = end
        yield delta, number, check
    if at != len(body):
        raise ValueError(f"the batch of offset {base_offset} has {len(body)} bytes for {count} records")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a zigzag number, and the place after it."""
    found = shift = 0
    while True:
        byte = data[at]
        found |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at


@lru_cache(maxsize=_REMEMBERED)
def _batch(content: bytes, place: bytes) -> Batch:
    """Return one batch, cached, because all readers of the partition get the same bytes. Raises
    ValueError."""
    base_offset, _, _, _, _, attributes, last_delta, _, _, producer_id, _, _, count = _HEADER.unpack_from(
        content
    )
    body = content[_HEADER.size :]
    control: int | None = None
    values: list[tuple[int, int]] = []
    if attributes & ATTRIBUTE_CONTROL:
        # one record: length, attributes, two deltas, the length of the key
        control = _CONTROL_TYPE.unpack_from(body, 5)[1] if count else -1
    else:
        is_plain = len(body) == count * _RECORD.size
        for delta, number, check in _plain(body) if is_plain else _records(body, count, base_offset):
            if crc32(place, number) != check:
                raise ValueError(f"offset {base_offset + delta} has a record of another partition")
            values.append((base_offset + delta, number))
    is_transactional = bool(attributes & ATTRIBUTE_TRANSACTIONAL)
    return Batch(base_offset, base_offset + last_delta, producer_id, is_transactional, control, values)

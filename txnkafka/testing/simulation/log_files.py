"""Parses the files of a partition in the slow and obvious way, by Kafka's specification alone.

Source: ``DefaultRecordBatch``, ``DefaultRecord``, ``TransactionIndex``,
``ProducerStateManager.writeSnapshot``, ``TransactionLogKey``, ``TransactionLogValue``, ``OffsetCommitKey``,
``OffsetCommitValue``.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_ABORTED: Final = struct.Struct(">hqqqq")
_PRODUCER: Final = struct.Struct(">qhiqiqiq")
_SNAPSHOT_HEADER: Final = 10
_REMEMBERED: Final = 64  # segments
_TRANSACTIONAL, _CONTROL, _CODEC = 0x10, 0x20, 7


class Batch(NamedTuple):
    """A batch; ``records`` are (offset, key, value) triples. ``committed`` and ``coordinator_epoch`` belong
    to a marker; None and -1 for data."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    committed: bool | None
    coordinator_epoch: int
    records: list[tuple[int, bytes | None, bytes | None]]


class Producer(NamedTuple):
    """A producer in a snapshot."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    coordinator_epoch: int
    first_offset: int


class Decision(NamedTuple):
    """A record of ``__transaction_state``; ``state`` is Kafka's number, -1 for a tombstone."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: int


def segments_of(files: Mapping[str, bytes], suffix: str) -> list[tuple[int, bytes]]:
    """Return the files of a partition directory with this suffix, with their base offsets, in order."""
    return sorted(
        (int(name.removesuffix(suffix)), content) for name, content in files.items()
        if name.endswith(suffix) and name.removesuffix(suffix).isdigit()
    )  # fmt: skip


def batches_of(data: bytes) -> Iterator[Batch]:
    """Yield the batches of a segment. Raises ValueError, IndexError or struct.error for invalid bytes, after
    yielding the batches before them."""
    batches, error = _read(data)
    yield from batches
    if error is not None:
        raise error.with_traceback(None)


@lru_cache(maxsize=_REMEMBERED)
def _read(data: bytes) -> tuple[list[Batch], Exception | None]:
    """Return the batches of a segment, cached for several checks, and the error after them."""
    batches: list[Batch] = []
    try:
        batches.extend(_batches(data))
    except (ValueError, IndexError, struct.error) as error:
        return batches, error
    return batches, None


def _batches(data: bytes) -> Iterator[Batch]:
    position = 0
    while position < len(data):
        if len(data) - position < _HEADER.size:
            raise ValueError(f"{len(data) - position} bytes at position {position} are no batch")
        header = _HEADER.unpack_from(data, position)
        base, length, leader, magic, _, attributes, delta, _, _, producer_id, epoch, sequence, count = header
        end = position + 12 + length
        if magic != 2 or end > len(data) or attributes & _CODEC:
            raise ValueError(f"the batch at position {position} has magic {magic}, {length} bytes")
        records = list(_records(data[position + _HEADER.size : end], base, count))
        committed, coordinator_epoch = None, -1
        if attributes & _CONTROL and records:
            _, key, value = records[0]
            committed = struct.unpack_from(">hh", key or b"")[1] == 1
            coordinator_epoch = struct.unpack_from(">hi", value or b"")[1]
        yield Batch(
            base, base + delta, leader, producer_id, epoch, sequence, bool(attributes & _TRANSACTIONAL),
            committed, coordinator_epoch, records,
        )  # fmt: skip
        position = end


def _records(body: bytes, base_offset: int, count: int) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    position = 0
    for _ in range(count):
        length, position = _varint(body, position)
        end = position + length
        _, position = _varint(body, position + 1)
        delta, position = _varint(body, position)
        key, position = _bytes(body, position)
        value, position = _bytes(body, position)
        yield base_offset + delta, key, value
        position = end
    if position != len(body):
        raise ValueError(f"{count} records at offset {base_offset} end at byte {position} of {len(body)}")


def _varint(body: bytes, position: int) -> tuple[int, int]:
    byte = body[position]
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), position + 1
    raw = shift = 0
    while True:
        byte = body[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw >> 1 ^ -(raw & 1), position
        shift += 7


def _bytes(body: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = _varint(body, position)
    if length < 0:
        return None, position
    return body[position : position + length], position + length


def aborted_of(data: bytes) -> list[tuple[int, int, int, int]]:
    """Return the entries of a ``.txnindex``: producer id, first, last and last stable offset."""
    return [entry[1:] for entry in _ABORTED.iter_unpack(data)]


def snapshot_of(data: bytes) -> list[Producer]:
    """Return the producers of a ``.snapshot``."""
    found = []
    for producer_id, epoch, sequence, offset, _, _, coordinator_epoch, first in _PRODUCER.iter_unpack(
        data[_SNAPSHOT_HEADER:]
    ):
        found.append(Producer(producer_id, epoch, sequence, offset, coordinator_epoch, first))
    return found


def decisions_of(batch: Batch) -> Iterator[Decision]:
    """Yield the records of a batch of ``__transaction_state``."""
    for _, key, value in batch.records:
        if batch.committed is not None or key is None:
            continue
        (length,) = struct.unpack_from(">h", key, 2)
        transactional_id = key[4 : 4 + length].decode()
        if value is None:
            yield Decision(transactional_id, -1, -1, -1)
        else:
            _, producer_id, epoch, _, state = struct.unpack_from(">hqhib", value)
            yield Decision(transactional_id, producer_id, epoch, state)


def offsets_of(batch: Batch) -> Iterator[tuple[tuple[str, str, int], int, int | None]]:
    """Yield the offsets committed by a batch of ``__consumer_offsets``: (group, topic, partition), the
    record's offset, and the committed offset, None for a tombstone."""
    for place, key, value in batch.records:
        if batch.committed is not None or key is None or struct.unpack_from(">h", key)[0] > 1:
            continue
        (size,) = struct.unpack_from(">h", key, 2)
        group = key[4 : 4 + size].decode()
        (length,) = struct.unpack_from(">h", key, 4 + size)
        topic = key[6 + size : 6 + size + length].decode()
        (partition,) = struct.unpack_from(">i", key, 6 + size + length)
        offset = None if value is None else struct.unpack_from(">hq", value)[1]
        yield (group, topic, partition), place, offset

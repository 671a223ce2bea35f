"""Parses ``.snapshot`` files, the state of all producers of a partition up to the offset in the file's name.

    0  i16  version (1)
    2  u32  CRC-32C of all following bytes
    6  i32  number of producers
    10      46 bytes each: i64 producer id, i16 epoch, i32 last sequence, i64 last offset, i32 offset delta,
            i64 timestamp, i32 coordinator epoch, i64 first offset of the open transaction; -1 for none

The checksum is verified first, and the count must fill the file exactly, so every wrong byte is noticed.
Entries are created one at a time, after all were checked. A damaged snapshot is dropped: an older one and the
log give the same state. A snapshot with a batch or a transaction at or above the offset in its name is also
dropped: the log below that offset cannot have caused it.

Source: ``ProducerStateManager.readSnapshot``, ``ProducerSnapshot.json``.
"""

from __future__ import annotations

import struct
from itertools import islice
from operator import eq
from typing import TYPE_CHECKING

from txnkafka._core.crc32c import crc32c
from txnkafka.errors import CorruptFileError
from txnkafka.model import ProducerStateEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Buffer

_VERSION = 1
_HEADER = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_CRC_START = 6


def parse_producer_snapshot(data: Buffer, end_offset: int = -1) -> list[ProducerStateEntry]:
    """Return the producers in the order of the file, which is arbitrary. ``end_offset`` is the offset in the
    name of the file, -1 if unknown. Raises ``CorruptFileError``."""
    return list(iter_producer_snapshot(data, end_offset))


def iter_producer_snapshot(data: Buffer, end_offset: int = -1) -> Iterator[ProducerStateEntry]:
    """Yield the producers one by one. Raises ``CorruptFileError`` before the first one."""
    view = memoryview(data).cast("B")
    if len(view) < _HEADER.size:
        raise CorruptFileError(f"{len(view)} bytes are not a producer snapshot", position=0)
    version, crc, count = _HEADER.unpack_from(view)
    computed = crc32c(view[_CRC_START:])
    if crc != computed:
        raise CorruptFileError(f"CRC is {crc:#010x}, but the content has {computed:#010x}", position=2)
    if version != _VERSION:
        raise CorruptFileError(f"version {version} is not known, only {_VERSION} is", position=0)
    if _HEADER.size + count * _ENTRY.size != len(view):
        raise CorruptFileError(f"{count} producers do not fill {len(view)} bytes", position=_CRC_START)
    _check_values(view[_HEADER.size :], end_offset)
    return _entries(view[_HEADER.size :])


def _check_values(rows: memoryview, end_offset: int) -> None:
    """Raise CorruptFileError for values that no log causes. The checksum is correct, so the writer of the
    file had a bug."""
    producer_ids = []
    for number, fields in enumerate(_ENTRY.iter_unpack(rows)):
        producer_id, _, sequence, last_offset, offset_delta, _, _, first = fields  # with any epoch
        position = _HEADER.size + number * _ENTRY.size
        if producer_id < 0 or min(sequence, last_offset, first) < -1 or offset_delta < 0:
            raise CorruptFileError(f"producer {producer_id} has values that no log gives", position=position)
        if 0 <= end_offset <= max(last_offset, first):
            raise CorruptFileError(
                f"producer {producer_id} has offset {max(last_offset, first)}, "
                f"the snapshot ends at offset {end_offset}",
                position=position,
            )
        producer_ids.append(producer_id)
    producer_ids.sort()  # colliding ids would make a set slow
    if any(map(eq, producer_ids, islice(producer_ids, 1, None))):
        raise CorruptFileError("a producer is in the snapshot twice", position=_HEADER.size)


def _entries(rows: memoryview) -> Iterator[ProducerStateEntry]:
    for fields in _ENTRY.iter_unpack(rows):
        producer_id, epoch, sequence, last_offset, offset_delta, timestamp, coordinator_epoch, first = fields
        yield ProducerStateEntry(
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=coordinator_epoch,
            last_timestamp=timestamp,
            current_txn_first_offset=first,
            last_sequence=sequence,
            last_offset=last_offset,
            offset_delta=offset_delta,
        )

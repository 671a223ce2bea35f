"""``.snapshot``: the state of all producers of a partition up to the offset in the file's name.

    0  i16  version (1)
    2  u32  CRC-32C of everything behind it
    6  i32  number of producers
    10      46 bytes each: i64 producer id, i16 epoch, i32 last sequence, i64 last offset, i32 offset delta,
            i64 timestamp, i32 coordinator epoch, i64 first offset of the open transaction; -1 for none

The checksum is verified before anything else is believed, and the count must fill the file exactly, so that
no byte can be wrong unnoticed. A snapshot that does not hold is dropped: an older one and the log give the
same state.

Source: ``ProducerStateManager.readSnapshot``, ``ProducerSnapshot.json``.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from txnkafka._core.crc32c import crc32c
from txnkafka.errors import CorruptFileError
from txnkafka.model import ProducerStateEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Buffer

__all__ = ["parse_producer_snapshot"]

_VERSION = 1
_HEADER = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_CRC_START = 6


def parse_producer_snapshot(data: Buffer) -> list[ProducerStateEntry]:
    """The producers in the order of the file, which means nothing; raises ``CorruptFileError``."""
    view = memoryview(data).cast("B")
    if len(view) < _HEADER.size:
        raise CorruptFileError(f"{len(view)} bytes are no producer snapshot", position=0)
    version, crc, count = _HEADER.unpack_from(view)
    computed = crc32c(view[_CRC_START:])
    if crc != computed:
        raise CorruptFileError(f"CRC is {crc:#010x}, but the content has {computed:#010x}", position=2)
    if version != _VERSION:
        raise CorruptFileError(f"version {version} is not known, only {_VERSION} is", position=0)
    if _HEADER.size + count * _ENTRY.size != len(view):
        raise CorruptFileError(f"{count} producers do not fill {len(view)} bytes", position=_CRC_START)
    entries = list(_entries(view))
    if len({entry.producer_id for entry in entries}) != count:
        raise CorruptFileError("a producer stands in the snapshot twice", position=_HEADER.size)
    return entries


def _entries(view: memoryview) -> Iterator[ProducerStateEntry]:
    for number, fields in enumerate(_ENTRY.iter_unpack(view[_HEADER.size :])):
        producer_id, epoch, sequence, last_offset, offset_delta, timestamp, coordinator_epoch, first = fields
        # The checksum holds, so whoever wrote this was wrong himself; such state would match no log.
        if (
            producer_id < 0
            or epoch < -1
            or sequence < -1
            or last_offset < -1
            or offset_delta < 0
            or first < -1
        ):
            position = _HEADER.size + number * _ENTRY.size
            raise CorruptFileError(f"producer {producer_id} has values that no log gives", position=position)
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

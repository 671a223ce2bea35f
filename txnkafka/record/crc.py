"""Checks the CRCs of whole batches without parsing their contents."""

from __future__ import annotations

import zlib

from txnkafka._core.decode import check_crcs
from txnkafka._core.scan import BatchIndex
from txnkafka.record.batch_header import MAGIC, MAGIC_2


def valid_crcs(data: memoryview, index: BatchIndex, *, position: int = 0) -> list[bool]:
    """Return whether the CRC of each batch matches; ``position`` is the position of ``data`` in the
    indexed file."""
    valid = [True] * len(index)
    i = 0
    while (i := check_crcs(data, index, i, len(index), position=position)) < len(index):
        valid[i] = False
        i += 1
    for i, magic in enumerate(index.magic):
        if magic > MAGIC_2:
            valid[i] = True  # else it would not be in the index
        elif magic < MAGIC_2:
            valid[i] = _legacy_crc_holds(data, index, i, position)
    return valid


def first_invalid_crc(data: memoryview, index: BatchIndex, *, position: int = 0, start: int = 0) -> int:
    """Return the number of the first batch from ``start`` on whose CRC is wrong; ``len(index)`` when all
    match.

    Zeros after a torn header look like a batch of magic 0, so the CRC of magic 0 is also checked."""
    first = check_crcs(data, index, start, len(index), position=position)
    if min(index.magic, default=MAGIC_2) < MAGIC_2:
        for i in range(start, first):
            if index.magic[i] < MAGIC_2 and not _legacy_crc_holds(data, index, i, position):
                return i
    return first


def _legacy_crc_holds(data: memoryview, index: BatchIndex, i: int, position: int) -> bool:
    begin = index.position[i] - position
    # in magic 0 and 1 the CRC-32 covers everything from the magic byte on
    return zlib.crc32(data[begin + MAGIC : begin + index.size[i]]) == index.crc[i]

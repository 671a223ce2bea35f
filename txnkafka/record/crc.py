"""Checksums of whole batches, without looking at what is in them."""

from __future__ import annotations

import zlib

from txnkafka._core.decode import check_crcs
from txnkafka._core.scan import BatchIndex

__all__ = ["valid_crcs"]

MAGIC_2 = 2
LEGACY_CRC_END = 16  # in magic 0 and 1 the CRC-32 covers everything behind itself


def valid_crcs(data: memoryview, index: BatchIndex, *, position: int = 0) -> list[bool]:
    """Whether the CRC of each batch holds; ``position`` is that of ``data`` in what ``index`` is about."""
    valid = [True] * len(index)
    i = 0
    while (i := check_crcs(data, index, i, len(index), position=position)) < len(index):
        valid[i] = False
        i += 1
    for i, magic in enumerate(index.magic):
        if magic > MAGIC_2:
            valid[i] = True  # else it would not be in the index
        elif magic < MAGIC_2:
            begin = index.position[i] - position
            valid[i] = zlib.crc32(data[begin + LEGACY_CRC_END : begin + index.size[i]]) == index.crc[i]
    return valid

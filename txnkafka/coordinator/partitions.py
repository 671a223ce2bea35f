"""Computes the partition of a coordinator's topic for an id; the leader of that partition coordinates it.

Source: TransactionStateManager.partitionFor, GroupCoordinatorService.partitionFor, ``Utils.abs``.
"""

from __future__ import annotations

from functools import lru_cache
from struct import unpack
from typing import Final

__all__ = [
    "CONSUMER_OFFSETS_TOPIC",
    "DEFAULT_PARTITIONS",
    "TRANSACTION_STATE_TOPIC",
    "partition_for",
    "string_hash",
]

CONSUMER_OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
REMEMBERED_IDS: Final = 16_384  # a busy id is hashed once, not with every request
LONGEST_REMEMBERED: Final = 256  # characters: clients choose them, and any request names some
LANES: Final = 128
_NEXT_ROW: Final = pow(31, LANES, 1 << 32)
_LOW_HALVES: Final = int.from_bytes(bytes([0, 0, 0, 0, 255, 255, 255, 255]) * LANES, "big")
DEFAULT_PARTITIONS: Final = 50  # transaction.state.log.num.partitions, offsets.topic.num.partitions


def string_hash(text: str) -> int:
    """Return ``Utils.abs(text.hashCode())`` of Java: over UTF-16 code units, in 32 bits, with 0 for the
    smallest number."""
    units = text.encode("utf-16-be", "surrogatepass")
    is_long = len(units) > 2 * LANES
    value = 0
    for number in _columns(units) if is_long else unpack(f">{len(units) // 2}H", units):
        value = (value * 31 + number) & 0xFFFFFFFF
    signed = value - (value >> 31 << 32)
    return 0 if signed == -(1 << 31) else abs(signed)


def _columns(units: bytes) -> tuple[int, ...]:
    """Write the code units in rows of LANES, and return the hash of each column, whose numbers are so many
    places apart: together they have the hash of the text. A row is one number of 64 bits for each column, so
    that a client's longest id costs a tenth of what it does unit by unit."""
    units = bytes(-len(units) % (2 * LANES)) + units  # zeros in front change no hash
    wide = bytearray(4 * len(units))
    wide[6::8], wide[7::8] = units[::2], units[1::2]
    total = 0
    for begin in range(0, len(wide), 8 * LANES):
        total = (total * _NEXT_ROW + int.from_bytes(wide[begin : begin + 8 * LANES], "big")) & _LOW_HALVES
    return unpack(f">{LANES}Q", total.to_bytes(8 * LANES, "big"))


def partition_for(text: str, partitions: int) -> int:
    """Return the partition of ``__transaction_state`` (or ``__consumer_offsets``) for a transactional id (or
    group id), when the topic has this number of partitions."""
    return (_remembered if len(text) <= LONGEST_REMEMBERED else string_hash)(text) % partitions


@lru_cache(REMEMBERED_IDS)
def _remembered(text: str) -> int:
    return string_hash(text)

"""Computes the partition of a coordinator's topic for an id; the leader of that partition coordinates it.

Source: TransactionStateManager.partitionFor, GroupCoordinatorService.partitionFor, ``Utils.abs``.
"""

from __future__ import annotations

from functools import lru_cache
from struct import unpack
from typing import Final

CONSUMER_OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
REMEMBERED_IDS: Final = 16_384  # so that a busy id is not hashed with every request
LONGEST_REMEMBERED: Final = 256  # characters: clients choose ids, and any request may name some
DEFAULT_PARTITIONS: Final = 50  # transaction.state.log.num.partitions, offsets.topic.num.partitions


def string_hash(text: str) -> int:
    """Return ``Utils.abs(text.hashCode())`` of Java: over UTF-16 code units, in 32 bits, with 0 for the
    smallest number."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for number in unpack(f">{len(units) // 2}H", units):
        value = (value * 31 + number) & 0xFFFFFFFF
    signed = value - (value >> 31 << 32)
    return 0 if signed == -(1 << 31) else abs(signed)


def partition_for(text: str, partitions: int) -> int:
    """Return the partition of ``__transaction_state`` (or ``__consumer_offsets``) for a transactional id (or
    group id), when the topic has this number of partitions."""
    return (_remembered if len(text) <= LONGEST_REMEMBERED else string_hash)(text) % partitions


@lru_cache(REMEMBERED_IDS)
def _remembered(text: str) -> int:
    return string_hash(text)

"""Encodes records of the coordinators' logs for tests, in Kafka's layout."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

__all__ = [
    "offset_commit_key",
    "offset_commit_value",
    "transaction_key",
    "transaction_value",
]


def _string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def transaction_key(transactional_id: str) -> bytes:
    """Encode the key of a record of ``__transaction_state``."""
    return struct.pack(">h", 0) + _string(transactional_id)


def transaction_value(
    producer_id: int,
    *,
    producer_epoch: int = 0,
    timeout_ms: int = 60_000,
    state: int = 0,
    topics: Mapping[str, Sequence[int]] | None = None,
    start_ms: int = -1,
    update_ms: int = 0,
) -> bytes:
    """Encode a value, version 0. ``topics`` None is a null array, which is valid in state 0 (Empty) only."""
    head = struct.pack(">hqhib", 0, producer_id, producer_epoch, timeout_ms, state)
    if topics is None:
        return head + struct.pack(">iqq", -1, update_ms, start_ms)
    body = b"".join(
        _string(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
        for topic, numbers in topics.items()
    )
    return head + struct.pack(">i", len(topics)) + body + struct.pack(">qq", update_ms, start_ms)


def offset_commit_key(group: str, topic: str, partition: int, *, version: int = 1) -> bytes:
    """Encode the key of an offset in ``__consumer_offsets``."""
    return struct.pack(">h", version) + _string(group) + _string(topic) + struct.pack(">i", partition)


def offset_commit_value(offset: int) -> bytes:
    """Encode a value, version 3."""
    return struct.pack(">hqi", 3, offset, -1) + _string("") + struct.pack(">q", 0)

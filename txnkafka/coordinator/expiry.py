"""``Expiry``: schedules the check for expired ids, and packs their tombstones into batches.

A hundred thousand idle ids or groups are checked in slices, so that no request waits for all of them. Their
tombstones are written in batches that the log accepts (KAFKA-13099).

Source: TransactionStateManager.removeExpiredTransactionalIds,
GroupCoordinatorService.cleanupExpiredGroupMetadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from txnkafka.record.batch_header import HEADER_SIZE

__all__ = ["Expiry", "batches_of"]

T = TypeVar("T")
SLICE: Final = 2_000
RECORD_BYTES: Final = 26  # upper limit for a record without its key: six varints and the attributes


class Expiry:
    """Schedule of the check, with the ids that are left of the current round. ``size`` ids are checked at
    a time; the first round begins at ``first_ms``.
    """

    def __init__(self, interval_ms: int, size: int = SLICE, first_ms: int = 0) -> None:
        self._interval_ms, self._size = interval_ms, size
        self._next_ms = first_ms
        self._left: list[str] = []

    def deadline(self, now_ms: int) -> int:
        """Return the time when the next slice is due."""
        return now_ms if self._left else self._next_ms

    def due(self, transactional_ids: Iterable[str], now_ms: int) -> list[str]:
        """Return the next slice, empty while none is due; a new round begins with the current ids."""
        if not self._left and now_ms >= self._next_ms:
            self._next_ms = now_ms + self._interval_ms
            self._left = list(transactional_ids)
        found, self._left = self._left[: self._size], self._left[self._size :]
        return found


def batches_of(tombstones: Iterable[T], key_of: Callable[[T], bytes], max_bytes: int) -> Iterator[list[T]]:
    """Yield tombstones of one partition in batches of at most ``max_bytes``. A larger one is alone: the
    log refuses it, and its id stays.
    """
    batch: list[T] = []
    size = HEADER_SIZE
    for tombstone in tombstones:
        needed = RECORD_BYTES + len(key_of(tombstone))
        if batch and size + needed > max_bytes:
            yield batch
            batch, size = [], HEADER_SIZE
        batch.append(tombstone)
        size += needed
    if batch:
        yield batch

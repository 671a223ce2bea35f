"""``ProducerIds``: unique producer ids, from blocks that the registry assigns.

A block is used only after the record that takes it from the registry is durable. Otherwise the next owner of
the directory would not know of the block, and would assign it again. The rest of a block is lost at a
restart, as in Kafka.

Source: RPCProducerIdManager, ProducerIdsBlock; the record is ProducerIdsRecord of the metadata log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

BLOCK_SIZE: Final = 1_000  # ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE
PREFETCH: Final = 10  # the next block is requested when one id in this many is left
LARGEST_ID: Final = 2**63 - 1


class ProducerIds:
    """The producer ids of a broker. ``request_block`` asks the registry for a block, without waiting; the
    registry answers each request once, with ``block_durable`` or ``block_failed``."""

    def __init__(self, request_block: Callable[[], None]) -> None:
        self._request_block = request_block
        self._requested = False
        self._current = range(0)
        self._next: range | None = None
        self._last = -1

    def request(self) -> None:
        """Request a block, unless one is requested or in reserve. The start calls it, so that the first
        block arrives in time."""
        if not self._requested and self._next is None:
            self._requested = True
            self._request_block()

    def take(self) -> int | None:
        """Return an unused id. Returns None without a block; clients then get
        COORDINATOR_LOAD_IN_PROGRESS, and retry."""
        if not self._current and self._next is not None:
            self._current, self._next = self._next, None
        if not self._current:
            self.request()
            return None
        producer_id, self._current = self._current[0], self._current[1:]
        if len(self._current) <= BLOCK_SIZE // PREFETCH:
            self.request()
        return producer_id

    def block_durable(self, first: int, size: int = BLOCK_SIZE) -> None:
        """Add the ids from ``first`` on. Raises ValueError for an empty block, or one that overlaps an
        earlier block: the registry is inconsistent, and no id of the block is used."""
        self._requested = False
        if size <= 0 or first <= self._last or first > LARGEST_ID - size:
            raise ValueError(
                f"producer ids {first} to {first + size - 1} are not a new block after {self._last}"
            )
        self._last = first + size - 1
        self._next = range(first, first + size)

    def block_failed(self) -> None:
        """Note that the registry assigned no block; the next ``take`` requests one again."""
        self._requested = False

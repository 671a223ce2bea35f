"""``ProducerIds``: producer ids out of blocks that the registry hands out, none of them twice.

A block is used only when the record that takes it from the registry is durable: of a block that was not, the
next owner of the directory knows nothing, and would hand it out again. What is left of a block at a restart
is lost, as in Kafka.
Source: RPCProducerIdManager, ProducerIdsBlock; the record is ProducerIdsRecord of the metadata log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["BLOCK_SIZE", "ProducerIds"]

BLOCK_SIZE: Final = 1_000  # ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE
PREFETCH: Final = 10  # the next block is asked for when one id out of this many is left
LARGEST_ID: Final = 2**63 - 1


class ProducerIds:
    """``request_block`` asks the registry for a block, without waiting: ``block_durable`` or ``block_failed``
    is called when the registry has answered, once for each request."""

    def __init__(self, request_block: Callable[[], None]) -> None:
        self._request_block = request_block
        self._requested = False
        self._current = range(0)
        self._next: range | None = None
        self._last = -1

    def request(self) -> None:
        """Ask for a block unless one is on its way or in reserve; at start, so that the first one is there
        in time."""
        if not self._requested and self._next is None:
            self._requested = True
            self._request_block()

    def take(self) -> int | None:
        """An unused id, or None while no block is there: COORDINATOR_LOAD_IN_PROGRESS, which
        all clients try again."""
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
        """The ids from ``first`` on belong to this owner. Raises ValueError for a block that overlaps with
        one of before, or has no ids: the registry is not sound, and nothing of the block is used."""
        self._requested = False
        if size <= 0 or first <= self._last or first > LARGEST_ID - size:
            raise ValueError(
                f"producer ids {first} to {first + size - 1} after {self._last}: not a new block"
            )
        self._last = first + size - 1
        self._next = range(first, first + size)

    def block_failed(self) -> None:
        """The registry has given no block; the next id that is wanted asks for one again."""
        self._requested = False

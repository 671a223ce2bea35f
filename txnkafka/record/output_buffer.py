"""The reusable memory that decompression writes into.

Invariant: bytes written before ``end`` stay unchanged and in place until ``reset()``, also when the buffer
grows: growing allocates new memory and copies, so existing views of the old memory stay valid. Memory comes
from an anonymous private mapping: pages that are never written cost nothing, so room may be requested by an
upper bound. The mapping is private because a forked worker process must not share it.
"""

from __future__ import annotations

import mmap  # noqa: TID251  (memory only, no file)

from txnkafka.errors import CorruptRecordError

FIRST_CAPACITY = 1 << 20
# Up to this size the memory is kept for the next batch; more is released.
RETAINED_CAPACITY = 32 << 20


class OutputBuffer:
    """A growing buffer with a limit; ``limit`` is the last position that the current batch may reach."""

    __slots__ = ("capacity", "clipped", "end", "limit", "view")

    def __init__(self) -> None:
        self.view = memoryview(bytearray())
        self.capacity = 0
        self.end = 0
        self.limit = 0
        self.clipped = False

    def reset(self) -> None:
        """Discard the content. Earlier views may be overwritten from now on."""
        self.end = 0
        if self.capacity > RETAINED_CAPACITY:
            self.view = memoryview(bytearray())
            self.capacity = 0

    def room(self, position: int, size: int) -> memoryview:
        """Return ``size`` writable bytes from ``position`` on; only those up to the limit when
        ``clipped``."""
        stop = position + size
        self.clipped = stop > self.limit
        if self.clipped:
            stop = self.limit
        if stop > self.capacity:
            self._grow(position, stop)
        return self.view[position:stop]

    def exact_room(self, position: int, size: int) -> memoryview:
        """Return ``size`` writable bytes from ``position`` on, or raise when that exceeds the limit."""
        if size > self.limit - position:
            raise CorruptRecordError(
                f"the batch becomes more than {self.limit - self.end} bytes, the limit for its size"
            )
        return self.room(position, size)

    def write(self, position: int, content: bytes | memoryview) -> int:
        """Copy ``content`` to ``position`` and return the position after it."""
        size = len(content)
        self.exact_room(position, size)[:] = content
        return position + size

    def reserve(self, capacity: int) -> None:
        """Make room for ``capacity`` bytes in all."""
        if capacity > self.capacity:
            self._grow(self.end, capacity)

    def _grow(self, position: int, stop: int) -> None:
        capacity = max(stop, 2 * self.capacity, FIRST_CAPACITY)
        mapping = mmap.mmap(-1, capacity, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        view = memoryview(mapping)
        view[:position] = self.view[:position]
        self.view = view
        self.capacity = capacity

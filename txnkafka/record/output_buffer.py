"""The reusable memory that decompression writes into.

Invariant: what was written before ``end`` keeps its place and its bytes until ``reset()``, also when the
buffer grows: growing allocates new memory and copies, so that views on the old memory stay valid for whoever
still holds them. Memory comes from an anonymous private mapping: pages that nobody writes to cost nothing, so
room may be asked for by an upper bound. Private, because a forked worker process must not share it.
"""

from __future__ import annotations

import mmap  # noqa: TID251  (memory only, no file)

from txnkafka.errors import CorruptRecordError

__all__ = ["OutputBuffer"]

FIRST_CAPACITY = 1 << 20
# After an unusually large batch the memory is given back; up to here it is kept for the next one.
RETAINED_CAPACITY = 32 << 20


class OutputBuffer:
    """Growing bytes with a limit; ``limit`` is the position that the batch being written may not pass."""

    __slots__ = ("capacity", "clipped", "end", "limit", "view")

    def __init__(self) -> None:
        self.view = memoryview(bytearray())
        self.capacity = 0
        self.end = 0
        self.limit = 0
        self.clipped = False

    def reset(self) -> None:
        """Forget the content. Views handed out before may be overwritten from now on."""
        self.end = 0
        if self.capacity > RETAINED_CAPACITY:
            self.view = memoryview(bytearray())
            self.capacity = 0

    def room(self, position: int, size: int) -> memoryview:
        """Give ``size`` writable bytes from ``position`` on; only those up to the limit when ``clipped``."""
        stop = position + size
        self.clipped = stop > self.limit
        if self.clipped:
            stop = self.limit
        if stop > self.capacity:
            self._grow(position, stop)
        return self.view[position:stop]

    def exact_room(self, position: int, size: int) -> memoryview:
        """Give ``size`` writable bytes from ``position`` on, or raise when that passes the limit."""
        if size > self.limit - position:
            raise CorruptRecordError(
                f"the batch becomes more than {self.limit - self.end} bytes, the limit for its size"
            )
        return self.room(position, size)

    def write(self, position: int, content: bytes | memoryview) -> int:
        """Copy ``content`` to ``position`` and return the position behind it."""
        size = len(content)
        self.exact_room(position, size)[:] = content
        return position + size

    def _grow(self, position: int, stop: int) -> None:
        capacity = max(stop, 2 * self.capacity, FIRST_CAPACITY)
        mapping = mmap.mmap(-1, capacity, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        view = memoryview(mapping)
        view[:position] = self.view[:position]
        self.view = view
        self.capacity = capacity

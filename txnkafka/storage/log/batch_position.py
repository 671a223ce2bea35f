"""Where a batch is in its segment, found by a walk over headers.

A walk begins at an entry of the offset index, so in the common case one read of an index interval has all the
headers there are to look at. A batch that is larger than that is stepped over.

Source: ``FileRecords.searchForOffsetFromPosition``, ``FileRecords.LogOffsetPosition``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka._core.scan import BatchPosition, find_batch

if TYPE_CHECKING:
    from txnkafka.env import ReadableFile

__all__ = ["BatchPosition", "find_batch_in"]

# An index interval as Kafka has it by default, and the header behind it.
READ_BYTES = 4096 + 61
# Buffers that no lookup has at the moment. list.pop and list.append are atomic, so logs of several threads
# share them.
_BUFFERS: list[tuple[bytearray, memoryview]] = []


def find_batch_in(
    file: ReadableFile, position: int, end: int, offset: int
) -> tuple[BatchPosition | None, int]:
    """The first batch from ``position`` on, where a batch begins, that ends at ``offset`` or behind it, and
    where the walk stopped. ``end`` is where the last batch of the file ends. Without a batch the walk stopped
    at ``end``, or at a header that does not prove that there is one. Raises OSError."""
    try:
        data, view = _BUFFERS.pop()
    except IndexError:
        data = bytearray(READ_BYTES)
        view = memoryview(data)
    try:
        while position < end:
            near_end = end - position < READ_BYTES
            length = file.read_into(view[: end - position] if near_end else view, position)
            found = find_batch(data, length=length, position=position, end=end, offset=offset)
            if found.size:
                return found, position
            if found.position == position:
                break
            position = found.position
        return None, position
    finally:
        _BUFFERS.append((data, view))

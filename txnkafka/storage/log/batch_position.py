"""Finds a batch in its segment by a walk over headers.

A walk begins at an entry of the offset index, so usually one read of an index interval contains all headers
to check. A larger batch is skipped without reading its records.

Source: ``FileRecords.searchForOffsetFromPosition``, ``FileRecords.LogOffsetPosition``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka._core.scan import BatchPosition as BatchPosition
from txnkafka._core.scan import find_batch
from txnkafka.record.batch_header import HEADER_SIZE

if TYPE_CHECKING:
    from txnkafka.env import ReadableFile

# Kafka's default index interval, plus the following header.
READ_BYTES = 4096 + HEADER_SIZE
# Unused buffers. list.pop and list.append are atomic, so logs in several threads can share them.
_BUFFERS: list[tuple[bytearray, memoryview]] = []


def find_batch_in(
    file: ReadableFile, position: int, end: int, offset: int
) -> tuple[BatchPosition | None, int]:
    """Find the first batch that ends at or after ``offset``; return it and the position where the walk
    stopped. The walk begins at the batch at ``position``, and ends at ``end``, the end of the last batch in
    the file. If the batch is None, it has stopped at ``end``, or at a header that does not prove a batch.
    Raises OSError."""
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

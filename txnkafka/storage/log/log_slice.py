"""A part of a segment as the response to a fetch: the file, a position and a size, without a copy.

The file stays open until the slice is released, even if its segment is rolled, deleted, compacted or closed
before. Threads other than the log's owner may read and release a slice while the log changes. A truncation of
the log ends its slices at that position, so that batches appended there later do not become part of a slice.

Source: ``FileRecords.slice``, ``FetchDataInfo``.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from txnkafka.env import DataFile

_NO_END = (1 << 63) - 1


class SlicedFile:
    """An open file shared by a segment and slices; the last release closes it."""

    __slots__ = ("_others", "end", "file")

    def __init__(self, file: DataFile) -> None:
        self.file = file
        self.end = _NO_END  # the end of all slices after a truncation
        # One element per holder, minus one. append and pop are atomic: only the last release finds it empty.
        self._others: list[None] = []

    @property
    def is_shared(self) -> bool:
        """True if unreleased slices exist."""
        return bool(self._others)

    def hold(self) -> None:
        """Add a holder. Only the segment may call this, while it is a holder itself."""
        self._others.append(None)

    def release(self) -> None:
        """Remove a holder; the last one closes the file."""
        try:
            self._others.pop()
        except IndexError:
            self.file.close()


class LogSlice:
    """``size`` bytes from ``position`` on in the ``.log`` of the segment with ``base_offset``. They begin
    with a batch; the last batch may be partial, as in every fetch from Kafka: consumers ignore it.

    The caller releases the slice, by ``release`` or a ``with`` statement; a slice that is garbage collected
    without that releases itself with a ResourceWarning."""

    __slots__ = ("_held", "base_offset", "position", "size")

    def __init__(self, held: SlicedFile | None, base_offset: int, position: int, size: int) -> None:
        self._held = held
        self.base_offset = base_offset
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size

    def read_into(self, buffer: memoryview, start: int = 0) -> int:
        """Fill ``buffer`` with the bytes of the slice from its byte ``start`` on; return the number of bytes,
        limited by the slice's end or the position of a truncation. Raises OSError, and ValueError for a
        released slice."""
        left = self.size - start
        if left <= 0:
            return 0
        held = self._held
        if held is None:
            raise ValueError(f"the slice at position {self.position} was released")
        if left < len(buffer):
            buffer = buffer[:left]
        position = self.position + start
        count = held.file.read_into(buffer, position)
        # Checked after the read: a truncation sets the end before new bytes are appended there.
        return min(count, max(0, held.end - position))

    def read(self) -> memoryview:
        """Return a copy of the bytes of the slice. Raises the errors of ``read_into``."""
        buffer = memoryview(bytearray(self.size))
        return buffer[: self.read_into(buffer)]

    def fileno(self) -> int:
        """Return the file descriptor, for sendfile; valid until the slice is released. The sent bytes are
        correct only if ``is_truncated`` is False afterwards. Raises io.UnsupportedOperation, an OSError, if
        the file has no descriptor, and ValueError for a released or empty slice."""
        if self._held is None:
            raise ValueError(f"the slice at position {self.position} has no file: it is empty or released")
        return self._held.file.fileno()

    @property
    def is_truncated(self) -> bool:
        """True if the log was truncated below the end of the slice since the read."""
        held = self._held
        return held is not None and held.end < self.position + self.size

    def release(self) -> None:
        """Release the file. A second call does nothing."""
        held, self._held = self._held, None
        if held is not None:
            held.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __del__(self) -> None:
        if self._held is not None:
            warnings.warn(
                f"the slice of {self.size} bytes at position {self.position} of segment {self.base_offset} "
                "was never released",
                ResourceWarning,
                source=self,
                stacklevel=2,
            )
            self.release()

"""A part of a segment that a fetch is answered with: the file, a position and a size, without a copy.

The file stays open until the slice is released, whatever becomes of its segment meanwhile: rolled, deleted,
compacted, closed. A slice may be read and released by another thread than the one that owns the log, while
the log changes. Of a log that is truncated, a slice ends where the log was truncated, so that nothing that is
appended there later is read as if it had been in the slice.

Source: ``FileRecords.slice``, ``FetchDataInfo``.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from txnkafka.env import DataFile

__all__ = ["LogSlice", "SlicedFile"]

_NO_END = (1 << 63) - 1


class SlicedFile:
    """An open file that its segment shares with slices; the last of them to release it closes it."""

    __slots__ = ("_others", "end", "file")

    def __init__(self, file: DataFile) -> None:
        self.file = file
        self.end = _NO_END  # where the slices end since the log was truncated
        # One element for each holder but one. append and pop are atomic, so of several threads that release
        # the file at once exactly one finds the list empty.
        self._others: list[None] = []

    @property
    def is_shared(self) -> bool:
        """Whether a slice is not released."""
        return bool(self._others)

    def hold(self) -> None:
        """Add a holder. Only for the segment, while it is a holder itself."""
        self._others.append(None)

    def release(self) -> None:
        """Remove a holder; the last one closes the file."""
        try:
            self._others.pop()
        except IndexError:
            self.file.close()


class LogSlice:
    """``size`` bytes from ``position`` on in the ``.log`` of the segment with ``base_offset``. They begin
    with a batch; the last batch may be cut, as in every fetch of Kafka's: consumers ignore it.

    To be released, by ``release`` or a ``with`` statement; a slice that is forgotten releases itself with a
    ResourceWarning.
    """

    __slots__ = ("_held", "base_offset", "position", "size")

    def __init__(self, held: SlicedFile | None, base_offset: int, position: int, size: int) -> None:
        self._held = held
        self.base_offset = base_offset
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size

    def read_into(self, buffer: memoryview, start: int = 0) -> int:
        """Fill ``buffer`` with the bytes from byte ``start`` of the slice on; returns how many there were
        before its end, or before the place where the log was truncated. Raises OSError, and ValueError for a
        slice that was released."""
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
        # Asked after the read: whatever was appended behind a truncation, it was noted here before that.
        return min(count, max(0, held.end - position))

    def read(self) -> memoryview:
        """The bytes of the slice in memory of their own. Raises what ``read_into`` raises."""
        buffer = memoryview(bytearray(self.size))
        return buffer[: self.read_into(buffer)]

    def fileno(self) -> int:
        """The descriptor of the file, for sendfile; valid until the slice is released. What is sent counts
        only if ``is_truncated`` is False afterwards. Raises io.UnsupportedOperation, an OSError, where the
        file has none, and ValueError for a slice that was released or is empty."""
        if self._held is None:
            raise ValueError(f"the slice at position {self.position} has no file: it is empty or released")
        return self._held.file.fileno()

    @property
    def is_truncated(self) -> bool:
        """Whether the log was truncated below the end of the slice since it was read."""
        held = self._held
        return held is not None and held.end < self.position + self.size

    def release(self) -> None:
        """Give the file back. A second call does nothing."""
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

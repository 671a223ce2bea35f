"""The two sparse indexes of a segment while it grows: entries in memory, and their file.

An index follows from the log. So entries gather in memory and reach the file when the segment is saved: at a
roll, at a close, and now and then. A crash loses some, and recovery makes them anew from the log.

Source: ``AbstractIndex``, ``OffsetIndex``, ``TimeIndex``.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import struct

    from txnkafka.env import DataFile

__all__ = ["IndexFile"]


class IndexFile:
    """Entries of one index: all of them in ``content``, some of them in the file too."""

    __slots__ = ("_cut", "_entry", "_saved", "content")

    def __init__(self, entry: struct.Struct, content: bytes = b"") -> None:
        self._entry = entry
        self.content = bytearray(memoryview(content)[: _used(content, entry.size)])
        self._saved = len(self.content)
        self._cut = len(content) != len(self.content)

    def __len__(self) -> int:
        return len(self.content) // self._entry.size

    @property
    def is_saved(self) -> bool:
        """Whether the file has all of it, and nothing else."""
        return self._saved == len(self.content) and not self._cut

    def append(self, first: int, second: int) -> None:
        """One more entry."""
        self.content += self._entry.pack(first, second)

    def last(self) -> tuple[int, int] | None:
        """The newest entry."""
        if not self.content:
            return None
        first, second = self._entry.unpack_from(self.content, len(self.content) - self._entry.size)
        return first, second

    def keep(self, count: int) -> None:
        """Forget all entries but the first ``count``."""
        del self.content[count * self._entry.size :]
        if self._saved > len(self.content):
            self._saved, self._cut = len(self.content), True

    def replaces_file(self) -> None:
        """Whatever the file holds, this is written in its place."""
        self._saved, self._cut = 0, True

    def keep_while(self, offset_below: int, field: int) -> None:
        """Forget the entries from the first whose ``field`` (0 or 1) is ``offset_below`` or more."""
        entries = range(len(self))
        self.keep(bisect_left(entries, offset_below, key=lambda each: self._at(each)[field]))

    def _at(self, number: int) -> tuple[int, int]:
        first, second = self._entry.unpack_from(self.content, number * self._entry.size)
        return first, second

    def save(self, file: DataFile) -> None:
        """Make the file what the index is. Raises OSError."""
        if self._cut:
            file.truncate(self._saved)
            self._cut = False
        if self._saved < len(self.content):
            file.write(self._saved, [bytes(memoryview(self.content)[self._saved :])])
            self._saved = len(self.content)


def _used(content: bytes, entry_size: int) -> int:
    """Bytes of whole entries; a file that was made larger than it had to be ends with zeros."""
    used = len(content.rstrip(b"\0"))
    used += -used % entry_size
    return min(used, len(content) - len(content) % entry_size)

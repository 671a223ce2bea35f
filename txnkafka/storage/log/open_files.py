"""A limit on how many ``.log`` files the logs of one owner keep open.

A file whose bytes are not synced stays open: Linux reports a failed write-back to descriptors that were open
when it failed, and a file that is opened later may never hear of it. So only files at rest are closed, those
that were not used for the longest time first; with more unsynced files than the limit, all of them stay open
until the flush that covers them is finished.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from txnkafka.storage.log.segment_files import SegmentFiles

__all__ = ["OpenFiles"]

_LIMIT = 800  # leaves room for slices, sockets and the files of a flush below the usual limit of 1,024


class OpenFiles:
    """The open ``.log`` files of segments; ``limit`` of them unless more have bytes to sync."""

    __slots__ = ("_at_rest", "_open", "limit")

    def __init__(self, limit: int | None = None) -> None:
        if limit is None:
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            limit = _LIMIT if soft == resource.RLIM_INFINITY else min(_LIMIT, soft // 2)
        if limit < 1:
            raise ValueError(f"{limit} open files are too few: there must be one at least")
        self.limit = limit
        self._open = 0
        self._at_rest: dict[SegmentFiles, None] = {}  # the one that came to rest first is the first

    def __len__(self) -> int:
        """How many are open."""
        return self._open

    def opened(self, files: SegmentFiles) -> None:
        """A segment has opened its log, which is at rest until ``pin``."""
        self._open += 1
        self._make_room()
        self._at_rest[files] = None

    def closed(self, files: SegmentFiles) -> None:
        """A segment has closed its log."""
        self._open -= 1
        self._at_rest.pop(files, None)

    def pin(self, files: SegmentFiles) -> None:
        """The log of a segment has bytes to sync: it stays open until ``rest`` or ``closed``."""
        self._at_rest.pop(files, None)

    def rest(self, files: SegmentFiles) -> None:
        """The bytes of an open log are synced."""
        self._at_rest[files] = None
        self._make_room()

    def _make_room(self) -> None:
        """Close files at rest until the limit is kept. One that was used since it came to rest gets a second
        chance."""
        while self._open > self.limit and self._at_rest:
            files = next(iter(self._at_rest))
            del self._at_rest[files]
            if files.was_used:
                files.was_used = False
                self._at_rest[files] = None
            else:
                files.close_log()

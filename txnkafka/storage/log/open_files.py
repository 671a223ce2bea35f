"""Limits the number of open ``.log`` files of one owner's logs.

A file whose bytes are not synced stays open: Linux reports a failed write-back to descriptors that were open
when it failed, and a descriptor opened later may never get the error. So only files at rest are closed, the
least recently used first; unsynced files above the limit stay open until the flush that covers them is
finished.
"""

from __future__ import annotations

import resource
from typing import Protocol

_LIMIT = 800  # leaves room for slices, sockets and a flush's files below the usual limit of 1,024


class LogFile(Protocol):
    """The files of a segment, whose log may be closed. ``was_used`` is True if the log was used since it was
    opened."""

    was_used: bool

    def close_log(self) -> None:
        """Close the log; the next use opens it again."""


class OpenFiles:
    """The open ``.log`` files of segments: at most ``limit``, unless more have bytes to sync."""

    __slots__ = ("_at_rest", "_open", "limit")

    def __init__(self, limit: int | None = None) -> None:
        if limit is None:
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            limit = _LIMIT if soft == resource.RLIM_INFINITY else min(_LIMIT, soft // 2)
        if limit < 1:
            raise ValueError(f"{limit} open files are too few: at least one is needed")
        self.limit = limit
        self._open = 0
        self._at_rest: dict[LogFile, None] = {}  # in the order in which they came to rest

    def __len__(self) -> int:
        """Return the number of open files."""
        return self._open

    def opened(self, files: LogFile) -> None:
        """Record that a segment has opened its log; the file is at rest until ``pin``."""
        self._open += 1
        self._make_room()
        self._at_rest[files] = None

    def closed(self, files: LogFile) -> None:
        """Record that a segment has closed its log."""
        self._open -= 1
        self._at_rest.pop(files, None)

    def pin(self, files: LogFile) -> None:
        """Record that the log of a segment has bytes to sync: it stays open until ``rest`` or ``closed``."""
        self._at_rest.pop(files, None)

    def rest(self, files: LogFile) -> None:
        """Record that the bytes of an open log are synced."""
        self._at_rest[files] = None
        if self._open > self.limit:
            self._make_room()

    def _make_room(self) -> None:
        """Close files at rest until at most ``limit`` are open. A file that was used since it came to rest
        gets a second chance."""
        while self._open > self.limit and self._at_rest:
            files = next(iter(self._at_rest))
            del self._at_rest[files]
            if files.was_used:
                files.was_used = False
                self._at_rest[files] = None
            else:
                files.close_log()

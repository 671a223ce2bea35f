"""Flush tickets: many appends to many partitions wait for one flush, and are told in order.

Nothing here waits for the disk. ``begin`` says what has to be synced, somebody does it (``Flush.run``,
outside of any lock), ``finish`` says which tickets are durable. The bytes appended meanwhile belong to the
next flush.

A log whose flush fails is fenced: nothing appended to it after the last good flush is ever acknowledged,
because nobody knows what a failed fsync has left in the page cache.

Source: design of group commit; ``UnifiedLog.flush``, KAFKA-10778.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.env import DataFile, DataFiles
    from txnkafka.storage.partition_log import PartitionLog

__all__ = ["Flush", "FlushTickets", "LogFlush", "Released"]


class LogFlush(NamedTuple):
    """What one log needs on the disk for everything below ``end_offset``: contents first, then names."""

    end_offset: int
    files: Sequence[DataFile]
    directories: Sequence[str]

    def run(self, files: DataFiles) -> None:
        """Sync them. Raises OSError."""
        for file in self.files:
            file.sync()
        for directory in self.directories:
            files.sync_directory(directory)


class Flush(NamedTuple):
    """One group: everything that was appended to ``logs`` before it began, up to ``ticket``."""

    ticket: int
    logs: Sequence[tuple[PartitionLog, LogFlush]]

    def run(self) -> dict[PartitionLog, OSError]:
        """Sync all of it; returns the logs for which that failed."""
        failed: dict[PartitionLog, OSError] = {}
        for log, flush in self.logs:
            try:
                flush.run(log.files)
            except OSError as error:
                failed[log] = error
        return failed


class Released(NamedTuple):
    """A ticket whose append is durable, or, with an error, will never be acknowledged."""

    ticket: int
    log: PartitionLog
    error: OSError | None


class FlushTickets:
    """Tickets of all logs of one data directory; for one thread at a time."""

    def __init__(self) -> None:
        self._last_ticket = 0
        self._waiting: deque[tuple[int, PartitionLog]] = deque()
        self._dirty: dict[PartitionLog, None] = {}  # in the order of their first append
        self._running: Flush | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self, log: PartitionLog) -> int:
        """A ticket for everything appended to ``log`` so far."""
        self._last_ticket += 1
        self._waiting.append((self._last_ticket, log))
        self._dirty[log] = None
        return self._last_ticket

    def begin(self) -> Flush | None:
        """The next group; None when nothing waits or a group is under way, which ``finish`` ends."""
        if self._running is not None or not self._dirty:
            return None
        logs = [(log, log.begin_flush()) for log in self._dirty]
        self._running = Flush(self._last_ticket, logs)
        self._dirty.clear()
        return self._running

    def finish(self, flush: Flush, failed: dict[PartitionLog, OSError]) -> list[Released]:
        """The group was synced, but for the logs in ``failed``; returns its tickets in order."""
        if flush is not self._running:
            raise ValueError("this flush is not the one under way")
        self._running = None
        for log, done in flush.logs:
            log.finish_flush(done, failed.get(log))
        released = []
        while self._waiting and self._waiting[0][0] <= flush.ticket:
            ticket, log = self._waiting.popleft()
            released.append(Released(ticket, log, failed.get(log) or log.fenced))
        return released

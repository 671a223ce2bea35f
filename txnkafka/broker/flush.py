"""Flush tickets: many appends to many partitions wait for one flush, and are told in order.

Nothing here waits for the disk. ``begin`` says what has to be synced, somebody does it (``Flush.run``,
outside of any lock), ``finish`` says which tickets are durable. The bytes appended meanwhile belong to the
next flush; so do those in a segment that was begun since the last one, which gets its name in between.

Every ticket is handed back exactly once, as ``Released``, whatever decided it: a flush of the host, one that
the data directory made itself (``maintain``, ``flush``, ``close``), the deletion or truncation of its log.
``finish`` and ``poll`` return all that were released since the last call of either; a host calls ``poll``
after everything else that it does with the data directory.

A log whose flush fails is fenced: nothing appended to it after the last good flush is ever acknowledged,
because nobody knows what a failed fsync has left in the page cache.

Source: design of group commit; ``UnifiedLog.flush``, KAFKA-10778.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from txnkafka.errors import KafkaError
    from txnkafka.storage.log.log_flush import LogFlush
    from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["Flush", "FlushTickets", "Released"]


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
    """A ticket whose append is durable, or, with an error, will never be acknowledged: OSError when the log
    failed, KafkaError when it was deleted or truncated below the append."""

    ticket: int
    log: PartitionLog
    error: OSError | KafkaError | None


class FlushTickets:
    """Tickets of all logs of one data directory; for one thread at a time."""

    def __init__(self) -> None:
        self._last_ticket = 0
        # ticket, log, and where the log ended then
        self._waiting: deque[tuple[int, PartitionLog, int]] = deque()
        self._released: list[Released] = []
        self._dirty: dict[PartitionLog, None] = {}  # in the order of their first append
        self._running: Flush | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_flushing(self) -> bool:
        """Whether a group is under way: it was begun and ``finish`` has not been called."""
        return self._running is not None

    def take(self, log: PartitionLog) -> int:
        """A ticket for everything appended to ``log`` so far."""
        self._last_ticket += 1
        self._waiting.append((self._last_ticket, log, log.log_end_offset))
        self._dirty[log] = None
        return self._last_ticket

    def want(self, log: PartitionLog) -> None:
        """Let the next group flush ``log`` although nobody waits for it."""
        self._dirty[log] = None

    def begin(self) -> Flush | None:
        """The next group; None when nothing waits or a group is under way, which ``finish`` ends. A log whose
        files cannot be opened is fenced, and its tickets fail with this group."""
        if self._running is not None or not self._dirty:
            return None
        logs = [(log, log.begin_flush()) for log in self._dirty]
        self._running = Flush(self._last_ticket, logs)
        self._dirty.clear()
        return self._running

    def finish(self, flush: Flush, failed: dict[PartitionLog, OSError]) -> list[Released]:
        """The group was synced, but for the logs in ``failed``; returns its tickets in order, behind those
        that were released before and not handed back yet."""
        self._finish(flush, failed)
        return self.poll()

    def run(self) -> None:
        """Flush here and now until every log that waits is durable; ``poll`` has the tickets. Nothing when a
        group is under way."""
        while (flush := self.begin()) is not None:
            # a signal may end it: nobody knows what was synced by then
            failed = dict.fromkeys((log for log, _ in flush.logs), OSError("the flush was interrupted"))
            try:
                failed = flush.run()
            finally:
                self._finish(flush, failed)

    def poll(self) -> list[Released]:
        """The tickets that were released since the last call of ``poll`` or ``finish``."""
        released, self._released = self._released, []
        return released

    def fail(self, log: PartitionLog, error: KafkaError, *, above: int) -> None:
        """The log was truncated at the offset ``above``: tickets for what was appended there fail. A group
        that is under way says nothing about them any more."""
        self._hand_back(lambda waits, end_offset: waits is log and end_offset > above, error)

    def forget(self, log: PartitionLog, error: OSError | KafkaError | None) -> None:
        """The log was deleted or closed: all of its tickets are released, with an error unless what they are
        for is durable."""
        self._dirty.pop(log, None)
        self._hand_back(lambda waits, _: waits is log, error)

    def _hand_back(
        self, is_decided: Callable[[PartitionLog, int], bool], error: OSError | KafkaError | None
    ) -> None:
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            ticket, log, end_offset = each
            if is_decided(log, end_offset):
                self._released.append(Released(ticket, log, error))
            else:
                self._waiting.append(each)

    def _finish(self, flush: Flush, failed: dict[PartitionLog, OSError]) -> None:
        if flush is not self._running:
            raise ValueError("this flush is not the one under way")
        self._running = None
        for log, done in flush.logs:
            log.finish_flush(done, failed.get(log))
            if log.has_unsynced_names and log.fenced is None:
                self._dirty[log] = None  # a new segment has got its name, and may have tickets
        waiting, self._waiting = self._waiting, deque()
        for entry in waiting:
            ticket, log, end_offset = entry
            error = failed.get(log) or log.fenced
            if ticket <= flush.ticket and (error or log.recovery_point >= end_offset):
                self._released.append(Released(ticket, log, error))
            else:
                self._waiting.append(entry)

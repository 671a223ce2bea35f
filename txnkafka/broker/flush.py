"""Flush tickets: many appends to many partitions wait for one flush, and are released in order.

Nothing here waits for the disk. ``begin`` returns the files to sync, the host syncs them (``Flush.run``,
outside of any lock), ``finish`` returns the tickets that are durable. Bytes appended meanwhile belong to the
next flush, and so do those in a segment created since the last one, which gets its final name in between.

Every ticket is returned exactly once, as ``Released``: after a flush of the host, after a flush by the data
directory (``maintain``, ``flush``, ``close``), or after the deletion or truncation of its log. ``finish`` and
``poll`` return all tickets released since the last call of either; a host calls ``poll`` after every other
operation on the data directory.

A log whose flush fails is fenced: no append after the last successful flush is ever acknowledged, because the
state of the page cache after a failed fsync is not known.

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
    """One group flush: it covers all appends to ``logs`` before it began, up to ``ticket``."""

    ticket: int
    logs: Sequence[tuple[PartitionLog, LogFlush]]

    def run(self) -> dict[PartitionLog, OSError]:
        """Sync all files; returns the logs whose sync failed, with the errors."""
        failed: dict[PartitionLog, OSError] = {}
        for log, flush in self.logs:
            try:
                flush.run(log.files)
            except OSError as error:
                failed[log] = error
        return failed

    def descriptors(self) -> list[tuple[PartitionLog, int]]:
        """The open files to sync, by log, for a host that syncs them itself instead of ``run``. Empty when
        there is more to be done than that, or a file has no descriptor."""
        found = []
        for log, flush in self.logs:
            if flush.contents or flush.paths or flush.directories:
                return []
            try:
                found += [(log, file.fileno()) for file in flush.files]
            except OSError:
                return []
        return found


class Released(NamedTuple):
    """A ticket whose append is durable or, with an error, will never be acknowledged: OSError when the log
    failed, KafkaError when it was deleted or truncated below the append."""

    ticket: int
    log: PartitionLog
    error: OSError | KafkaError | None


class FlushTickets:
    """The tickets of all logs of one data directory. Only one thread at a time may use it."""

    def __init__(self) -> None:
        self._last_ticket = 0
        # ticket, log, and the log end when the ticket was taken
        self._waiting: deque[tuple[int, PartitionLog, int]] = deque()
        self._released: list[Released] = []
        self._dirty: dict[PartitionLog, None] = {}  # in the order of their first append
        self._first: dict[PartitionLog, None] = {}  # those of them that go before the others
        self._went_first = False  # whether the last group flush left others behind
        self._is_awaited = False  # else no client waits for what is dirty
        self._running: Flush | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_flushing(self) -> bool:
        """Whether a group flush is under way: ``begin`` was called, and ``finish`` was not."""
        return self._running is not None

    @property
    def is_awaited(self) -> bool:
        """Whether a group flush is to begin as soon as none is under way; one that ``begin`` returns although
        it is not awaited is due some time."""
        return self._is_awaited

    @property
    def is_dirty(self) -> bool:
        """Whether a log waits for a group flush."""
        return bool(self._dirty)

    @property
    def has_something(self) -> bool:
        """Whether a log waits for a group flush that ``finish`` is not followed by, or a released ticket for
        ``poll``."""
        return bool(self._released) or bool(self._dirty and not (self._is_awaited and self._running))

    def take(self, log: PartitionLog, *, is_awaited: bool = True, goes_first: bool = False) -> int:
        """Return a new ticket for all appends to ``log`` so far. One that is not awaited comes with the next
        group flush, whenever that is.

        ``goes_first``: what waits for the ticket will append to a log that may be dirty already. The next
        group flush is for such tickets alone, so that the other logs are synced once, in the one behind it,
        which is for all."""
        self._last_ticket += 1
        self._waiting.append((self._last_ticket, log, log.log_end_offset))
        self._dirty[log] = None
        self._is_awaited |= is_awaited
        if goes_first:
            self._first[log] = None
        return self._last_ticket

    def want(self, log: PartitionLog) -> None:
        """Include ``log`` in the next group flush, without a ticket."""
        self._dirty[log] = None
        self._is_awaited = True

    def hurry(self) -> None:
        """Let the next group flush be awaited, if a log waits for one."""
        self._is_awaited = bool(self._dirty)

    def begin(self) -> Flush | None:
        """Begin a group flush; None when there is nothing to flush, or a group flush is under way, which
        ``finish`` ends. A log whose files cannot be opened is fenced, and its tickets fail with this
        group."""
        if self._running is not None or not self._dirty:
            return None
        logs = [(log, log.begin_flush()) for log in self._take_due()]
        self._running = Flush(self._last_ticket, logs)
        return self._running

    def _take_due(self) -> dict[PartitionLog, None]:
        due, first = self._dirty, self._first
        self._first = {}
        self._went_first = bool(first) and not self._went_first and len(first) < len(due)
        if self._went_first:
            self._dirty = {log: None for log in due if log not in first}
            return first
        self._dirty = {}
        self._is_awaited = False
        return due

    def finish(self, flush: Flush, failed: dict[PartitionLog, OSError]) -> list[Released]:
        """End a group flush, which has synced all logs except those in ``failed``; returns its tickets in
        order, after tickets that were released before and not returned yet."""
        self._finish(flush, failed)
        return self.poll()

    def run(self) -> None:
        """Flush now until all waiting logs are durable; ``poll`` returns the tickets. Does nothing while a
        group flush is under way."""
        while (flush := self.begin()) is not None:
            # after an interruption by a signal it is not known what was synced
            failed = dict.fromkeys((log for log, _ in flush.logs), OSError("the flush was interrupted"))
            try:
                failed = flush.run()
            finally:
                self._finish(flush, failed)

    def poll(self) -> list[Released]:
        """Return the tickets that were released since the last call of ``poll`` or ``finish``."""
        released, self._released = self._released, []
        return released

    def fail(self, log: PartitionLog, error: KafkaError, *, above: int) -> None:
        """Release the tickets of a log that was truncated at the offset ``above``, for appends there, with
        an error. A group flush under way does not affect them any more."""
        self._hand_back(lambda waits, end_offset: waits is log and end_offset > above, error)

    def forget(self, log: PartitionLog, error: OSError | KafkaError | None) -> None:
        """Release all tickets of a log that was deleted or closed: with ``error``, or None when their
        appends are durable."""
        self._dirty.pop(log, None)
        self._first.pop(log, None)
        self._hand_back(lambda waits, _: waits is log, error)

    def _hand_back(
        self, is_decided: Callable[[PartitionLog, int], bool], error: OSError | KafkaError | None
    ) -> None:
        waiting, self._waiting = self._waiting, deque()
        for entry in waiting:
            ticket, log, end_offset = entry
            if is_decided(log, end_offset):
                self._released.append(Released(ticket, log, error))
            else:
                self._waiting.append(entry)

    def _finish(self, flush: Flush, failed: dict[PartitionLog, OSError]) -> None:
        if flush is not self._running:
            raise ValueError("this flush is not the one under way")
        self._running = None
        for log, done in flush.logs:
            log.finish_flush(done, failed.get(log))
            is_usable = log.fenced is None and not log.guarded_by.is_closed
            if is_usable and log.has_unsynced_names:
                self.want(log)  # a new segment was renamed, and may have tickets
        kept = []
        while self._waiting and self._waiting[0][0] <= flush.ticket:  # those of later appends stay
            entry = self._waiting.popleft()
            ticket, log, end_offset = entry
            error = failed.get(log) or log.fenced
            if error or log.recovery_point >= end_offset:
                self._released.append(Released(ticket, log, error))
            else:
                kept.append(entry)
        self._waiting.extendleft(reversed(kept))

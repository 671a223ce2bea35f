"""Group flushes: many appends to many logs wait for one flush.

Nothing here waits for the disk. ``begin`` returns the files to sync, the host syncs them (``Flush.run``,
outside of any lock), ``finish`` releases the calls that waited (``PartitionLog.when_durable``). Bytes
appended during a flush belong to the next one, and so do bytes in a segment created since the previous flush:
that segment gets its final name in between. The calls of one log are made in the order of its appends, log
after log.

A log whose flush fails is fenced: no append after the last successful flush is ever acknowledged, because the
state of the page cache after a failed fsync is unknown.

Source: design of group commit; ``UnifiedLog.flush``, KAFKA-10778.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.errors import KafkaError
    from txnkafka.storage.log.durable_calls import DurableCall
    from txnkafka.storage.log.log_flush import LogFlush
    from txnkafka.storage.log.partition_log import PartitionLog


class Flush(NamedTuple):
    """One group flush: it covers all appends to ``logs`` before it began."""

    logs: Sequence[tuple[PartitionLog, LogFlush]]

    def run(self) -> dict[PartitionLog, OSError]:
        """Sync all files; return the logs whose sync failed, with the errors."""
        failed: dict[PartitionLog, OSError] = {}
        for log, flush in self.logs:
            try:
                flush.run(log.files)
            except OSError as error:
                failed[log] = error
        return failed

    def descriptors(self) -> list[tuple[PartitionLog, int]]:
        """Return the open files to sync, by log, for a host that syncs them itself instead of ``run``. Empty
        if more than syncs is necessary, or if a file has no descriptor."""
        found = []
        for log, flush in self.logs:
            if flush.contents or flush.paths or flush.directories:
                return []
            try:
                found += [(log, file.fileno()) for file in flush.files]
            except OSError:
                return []
        return found


class FlushQueue:
    """The logs of one data directory that wait for a group flush. Only one thread at a time may use it."""

    def __init__(self) -> None:
        self._dirty: dict[PartitionLog, None] = {}  # in the order of their first append
        self._first: dict[PartitionLog, None] = {}  # the dirty logs that are flushed before the others
        self._went_first = False  # True if the last group flush left others for the next one
        self._is_awaited = False  # else no client waits for a dirty log
        self._running: Flush | None = None

    @property
    def is_flushing(self) -> bool:
        """True between ``begin`` and ``finish`` of a group flush."""
        return self._running is not None

    @property
    def is_awaited(self) -> bool:
        """True if a client waits for the next group flush: the host begins it as soon as the current one is
        finished. ``begin`` also returns a flush that is not awaited; that one may be delayed."""
        return self._is_awaited

    @property
    def is_dirty(self) -> bool:
        """True if a log waits for a group flush."""
        return bool(self._dirty)

    @property
    def has_waiting(self) -> bool:
        """True if a call waits for a group flush."""
        return any(log.waiting for log in self._dirty)

    @property
    def needs_host(self) -> bool:
        """True if a log waits for a group flush that does not follow the running one by itself."""
        return bool(self._dirty) and not (self._is_awaited and self._running)

    def when_durable(
        self, log: PartitionLog, call: DurableCall, *, is_awaited: bool = True, goes_first: bool = False
    ) -> None:
        """Call when all appends to ``log`` so far are durable, or never will be; see ``DurableCalls``. With
        ``is_awaited=False`` the call waits for the next group flush, whenever that is.

        ``goes_first``: the call leads to an append to a log that may be dirty already. The next group flush
        is for such logs alone; the other logs are synced once, by the flush after it, which is for all."""
        if log.when_durable(log.offsets.log_end, call):
            self._dirty[log] = None
            self._is_awaited |= is_awaited
            if goes_first:
                self._first[log] = None

    def want(self, log: PartitionLog) -> None:
        """Include ``log`` in the next group flush."""
        self._dirty[log] = None
        self._is_awaited = True

    def hurry(self) -> None:
        """Let the next group flush be awaited, if a log waits for one."""
        self._is_awaited = bool(self._dirty)

    def forget(self, log: PartitionLog, error: KafkaError) -> None:
        """Remove a deleted log; its calls get ``error``. A running group flush does not affect them."""
        self._dirty.pop(log, None)
        self._first.pop(log, None)
        log.waiting.fail(error)

    def begin(self) -> Flush | None:
        """Begin a group flush; None if nothing is to be flushed, or while a group flush runs: ``finish`` ends
        it. A log whose files cannot be opened is fenced."""
        if self._running is not None or not self._dirty:
            return None
        logs = []
        for log in self._take_due():
            logs.append((log, log.begin_flush()))
        self._running = Flush(logs)
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

    def finish(self, flush: Flush, failed: dict[PartitionLog, OSError]) -> None:
        """End a group flush, which has synced all logs except those in ``failed``, and release the calls that
        waited for it. Raises ValueError if ``flush`` is not the running one."""
        if flush is not self._running:
            raise ValueError("this flush is not the one under way")
        self._running = None
        for log, done in flush.logs:
            log.finish_flush(done, failed.get(log))
            is_usable = log.guarded_by.error is None and not log.guarded_by.is_closed
            if is_usable and log.flushing.has_unsynced_names:
                self.want(log)  # a new segment was renamed; calls may wait for its appends

    def run(self) -> None:
        """Flush until all waiting logs are durable. Does nothing while a group flush runs."""
        while (flush := self.begin()) is not None:
            # a signal that interrupts the flush leaves unknown which files were synced
            failed = dict.fromkeys((log for log, _ in flush.logs), OSError("the flush was interrupted"))
            try:
                failed = flush.run()
            finally:
                self.finish(flush, failed)

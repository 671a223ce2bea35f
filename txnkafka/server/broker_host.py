"""Run a broker on an event loop: flushes and background work in threads, deadlines by the loop's timer.

The broker is called only in the thread of the loop. Everything that happened in one iteration of the loop is
settled by one turn after it (``wake``), or at once (``turn``) when no other connection is as busy. No turn
follows while the broker ``is_quiet``. So the requests of all connections that were ready share a flush, and
the next batch of requests gathers while the flush runs.
"""

from __future__ import annotations

import logging
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Protocol

from txnkafka._core.sync_threads import SyncThreads

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.broker.broker import Broker
    from txnkafka.broker.flush import Flush
    from txnkafka.env import Clock

LOG = logging.getLogger("txnkafka.server")
_RETRY_MS: Final = 1_000
_LONGEST_MS: Final = 60_000  # longest time between two turns


class Timer(Protocol):
    """Handle returned by ``call_later``."""

    def cancel(self) -> None:
        """Cancel the call."""


class Loop(Protocol):
    """The methods of an event loop that a host uses; asyncio's loop implements them."""

    def call_soon(self, call: Callable[[], None]) -> object:
        """Call in the next iteration."""

    def call_soon_threadsafe(self, call: Callable[..., None], *arguments: Any) -> object:
        """Call in the next iteration; may be called from any thread."""

    def add_reader(self, fd: int, callback: Callable[[], None]) -> object:
        """Call whenever the descriptor is readable."""

    def remove_reader(self, fd: int) -> object:
        """Stop calling for this descriptor."""

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call after this many seconds."""


class Watch(Protocol):
    """Observer of flushes; one runs at a time."""

    def begin(self) -> None:
        """Note the begin of a flush."""

    def end(self) -> None:
        """Note the end of the flush."""


class BrokerHost:
    """Owner of the threads in which a broker's flushes and background work run.

    ``on_turn`` is called at the beginning of each turn. ``on_failure`` gets an exception of the broker
    itself; after that the host runs nothing more."""

    def __init__(
        self,
        broker: Broker,
        loop: Loop,
        clock: Clock,
        *,
        on_turn: Callable[[], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self.broker = broker
        self._loop = loop
        self._clock = clock
        self._on_turn = on_turn
        self._on_failure = on_failure
        # a pool would cost as much again for each flush, because its futures have locks
        self._to_run: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = Thread(target=self._run_all, name="txnkafka-work", daemon=True)
        self._thread.start()
        self._syncs = SyncThreads()
        self._syncing: tuple[Flush, list[tuple[Any, int]]] | None = None
        loop.add_reader(self._syncs.fileno(), self._synced)
        self._is_scheduled = False
        self._is_over = False
        self.watch: Watch | None = None
        self._timer: Timer | None = None
        self._timer_ticks = 0

    def now_ms(self) -> int:
        """Return the wall-clock time, and advance the broker's tick clock."""
        self.broker.ticks.tell(self._clock.running_ms())
        return self._clock.now_ms()

    def wake(self) -> None:
        """Take a turn in the next iteration, because the broker was called or a response is ready."""
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._turn)

    def is_quiet(self) -> bool:
        """Return whether a turn now would do nothing but send responses."""
        try:
            return self.broker.is_quiet(self.now_ms())
        except Exception:
            LOG.exception("the broker failed in work that was due by the clock; it is retried")
            return False

    def turn(self) -> None:
        """Take a turn now, unless one is scheduled."""
        if not self._is_scheduled:
            self._turn()

    def call_from_thread(self, call: Callable[[], None]) -> None:
        """Call in the thread of the loop; may be called from any thread. Raises RuntimeError when the loop
        is closed."""
        self._loop.call_soon_threadsafe(call)

    def stop(self) -> None:
        """Start nothing more."""
        self._is_over = True

    def close(self) -> None:
        """Start nothing more, and wait for running work without reporting its result to the broker."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._syncs.fileno())
        self._syncs.close()
        self._to_run.put(None)
        self._thread.join()

    def _run_all(self) -> None:
        """Run queued work one piece after another, in the worker thread."""
        while (run := self._to_run.get()) is not None:
            run()

    def _turn(self) -> None:
        self._is_scheduled = False
        if self._is_over:
            return
        try:
            self._on_turn()
            if self._is_over:
                return
            deadline = self._advance()
            self._begin()
            self._call_at(deadline)
        except Exception as error:
            self._fail(error)

    def _advance(self) -> int:
        """Do the work that is due by the clock; return the next deadline in ticks. After a failure retry
        in a second, and keep serving requests."""
        try:
            return self.broker.advance(self.now_ms())
        except Exception:
            LOG.exception("the broker failed in work that was due by the clock; it is retried in a second")
            return self.broker.ticks.now + _RETRY_MS

    def _begin(self) -> None:
        flush = self.broker.begin_flush() if self.broker.is_flush_awaited else None
        if flush is not None:
            self._begin_flush(flush)
        work = self.broker.begin_work()
        if work is not None:
            self._to_run.put(partial(self._run_work, work))

    def _begin_flush(self, flush: Flush) -> None:
        """Start a flush. Most flushes only sync open files, which needs no Python in another thread."""
        if self.watch is not None:
            self.watch.begin()
        files = flush.descriptors()
        if files:
            self._syncing = flush, files
            self._syncs.begin([descriptor for _, descriptor in files])
        else:
            self._to_run.put(partial(self._run_flush, flush))

    # In the worker thread

    def _run_flush(self, flush: Flush) -> None:
        try:
            failed = flush.run()
        except BaseException as error:
            failed = dict.fromkeys((log for log, _ in flush.logs), OSError(error))
        self._loop.call_soon_threadsafe(self._flushed, flush, failed)

    def _run_work(self, work: Any) -> None:
        failed: BaseException | None = None
        try:
            work.run()
        except BaseException as error:
            failed = error
        self._loop.call_soon_threadsafe(self._worked, work, failed)

    # Back in the loop

    def _synced(self) -> None:
        errors = self._syncs.finish()
        if errors is None or self._syncing is None:
            return
        (flush, files), self._syncing = self._syncing, None
        failed = {log: error for (log, _), error in zip(files, errors, strict=True) if error is not None}
        self._flushed(flush, failed)

    def _flushed(self, flush: Flush, failed: dict[Any, OSError]) -> None:
        if self.watch is not None:
            self.watch.end()
        self._is_scheduled = True  # the turn below serves the responses
        try:
            self.broker.finish_flush(flush, failed, now_ms=self.now_ms())
        except Exception as failure:
            self._fail(failure)
        self._turn()

    def _worked(self, work: Any, error: BaseException | None) -> None:
        self._is_scheduled = True
        try:
            if error is not None and not isinstance(error, Exception):
                raise RuntimeError(f"background work was ended by {error!r}")
            self.broker.finish_work(work, error, now_ms=self.now_ms())
        except Exception as failure:
            self._fail(failure)
        self._turn()

    def _call_at(self, deadline: int) -> None:
        """Take a turn at the deadline (in ticks). An earlier timer stays, because its turn sets the next
        one."""
        if self._timer is not None:
            if self._timer_ticks <= deadline:
                return
            self._timer.cancel()
        self.now_ms()
        delay_ms = min(max(0, deadline - self.broker.ticks.now), _LONGEST_MS)
        self._timer_ticks = deadline
        self._timer = self._loop.call_later(delay_ms / 1000, self._at_deadline)

    def _at_deadline(self) -> None:
        self._timer = None
        self._turn()

    def _fail(self, error: BaseException) -> None:
        self._is_over = True
        self._on_failure(error)

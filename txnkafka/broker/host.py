"""``CallerHost``: runs a broker in the threads of its callers.

``Broker`` documents the contract of a host. ``server.broker_host`` is the host for an event loop.
"""

from __future__ import annotations

from threading import Condition, RLock
from typing import TYPE_CHECKING, Any, TypeVar

from txnkafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.broker.broker import Broker
    from txnkafka.broker.flush import Flush
    from txnkafka.storage.work import Work

Result = TypeVar("Result")


class CallerHost:
    """A host for callers in any thread. ``now_ms`` returns the time, ``lock`` guards the broker.

    A thread that waits for the disk does not hold the lock, so that requests of other threads share the next
    flush. A callback of the broker must not call ``until`` or ``idle``."""

    def __init__(self, broker: Broker, now_ms: Callable[[], int], lock: RLock | None = None) -> None:
        self.broker = broker
        self._now_ms = now_ms
        self._changed = Condition(lock)
        self._under_way = 0  # flushes and pieces of work that threads run now

    def call(self, method: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
        """Run one request, see ``Broker.call``. Raises the exception of ``method``."""
        with self._changed:
            return self.broker.call(method, *arguments, now_ms=self._now_ms(), **named)

    def until(self, condition: Callable[[], object]) -> None:
        """Run flushes and work until ``condition()`` is true; it is called under the lock. Raises
        RuntimeError when nothing is left to run before that."""
        with self._changed:
            while not condition():
                if self.step():
                    continue
                if not self._under_way:
                    raise RuntimeError("the broker has nothing to do, but the condition is false")
                self._changed.wait()

    def idle(self) -> None:
        """Run flushes, work and background work until none is left."""
        with self._changed:
            while True:
                if not self.step():
                    if not self._under_way:
                        return
                    self._changed.wait()

    def step(self, *, only_awaited: bool = False) -> bool:
        """Run one flush or piece of work; return False when none can begin. With ``only_awaited``, do not
        begin a flush for which no client waits. The caller has the lock, once; it is released meanwhile."""
        may_flush = not only_awaited or self.broker.is_flush_awaited
        flush = self.broker.begin_flush() if may_flush else None
        if flush is not None:
            self._run_flush(flush)
            return True
        work = self.broker.begin_work()
        if work is not None:
            self._run_work(work)
        return work is not None

    def _run_flush(self, flush: Flush) -> None:
        failed = None
        self._release()
        try:
            failed = flush.run()
        finally:
            self._acquire()
            if failed is None:  # a signal leaves unknown which files were synced
                failed = dict.fromkeys((log for log, _ in flush.logs), OSError("the flush was interrupted"))
            self.broker.finish_flush(flush, failed, now_ms=self._now_ms())

    def _run_work(self, work: Work) -> None:
        """Run a piece of work, and pass its error to the broker. An error other than KafkaError and
        OSError is a bug, and is also raised."""
        error: Exception | None = RuntimeError("the work was interrupted")
        self._release()
        try:
            work.run()
            error = None
        except Exception as raised:
            error = raised
            if not isinstance(raised, KafkaError | OSError):
                raise
        finally:
            self._acquire()
            self.broker.finish_work(work, error, now_ms=self._now_ms())

    def _release(self) -> None:
        self._under_way += 1
        self._changed.release()

    def _acquire(self) -> None:
        self._changed.acquire()
        self._under_way -= 1
        self._changed.notify_all()

"""``Reactor``: runs the tasks and timers of clients, under one lock.

A reactor has a lock, a clock, timers, and calls to make soon. Callers in any thread enter it (``with
reactor:``), and wait in it for promises. Between these, its keeper, a daemon thread, runs timers and IO. The
subclasses provide IO: ``SocketReactor`` polls sockets, ``EngineReactor`` runs a broker in process.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections import deque
from heapq import heappop, heappush
from itertools import count
from threading import Condition, RLock, Thread, get_ident
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from txnkafka.client.promise import Promise, Task
from txnkafka.env import this_process
from txnkafka.errors import ClosedError, KafkaTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import TracebackType

    from txnkafka.env import Clock

T = TypeVar("T")
LOG = logging.getLogger("txnkafka.client")
_LONGEST_MS: Final = 60_000


class Timer:
    """A call at ``at_ms`` of the reactor's clock, unless it is cancelled."""

    __slots__ = ("at_ms", "call")

    def __init__(self, at_ms: int, call: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Do not make the call."""
        self.call = None


class Reactor:
    """Base class. ``name`` is in error messages."""

    def __init__(self, name: str, clock: Clock, lock: RLock | None = None) -> None:
        self.name = name
        self.clock = clock
        self.is_closed = False
        self.lock = RLock() if lock is None else lock
        self._changed = Condition(self.lock)  # waiting callers
        self._waiters = 0
        self._process = this_process()
        self._ready: deque[Callable[[], None]] = deque()
        self._timers: list[tuple[int, int, Timer]] = []
        self._places = count()
        self._tasks: set[Task[Any]] = set()
        self._keeper: Thread | None = None
        self._wakes_ms = 0  # when the keeper wakes up by itself

    # For clients

    def now_ms(self) -> int:
        """Return milliseconds of a clock that never goes back."""
        return self.clock.running_ms()

    def soon(self, call: Callable[[], None]) -> None:
        """Make a call before the lock is released."""
        self._ready.append(call)

    def call_at(self, at_ms: int, call: Callable[[], None]) -> Timer:
        """Make a call at a time of ``now_ms``."""
        timer = Timer(at_ms, call)
        heappush(self._timers, (at_ms, next(self._places), timer))
        return timer

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> Task[T]:
        """Run a coroutine as a task, which ``close`` cancels."""
        task = Task(coroutine, self.soon)
        if not task.is_done:
            self._tasks.add(task)
            task.on_done(lambda: self._tasks.discard(task))
        return task

    async def sleep(self, ms: int) -> None:
        """Wait for a time."""
        woken: Promise[None] = Promise()
        self.call_at(self.now_ms() + ms, lambda: woken.set(None))
        await woken

    async def first(self, promise: Promise[T], timeout_ms: int) -> Promise[T]:
        """Wait until a promise is done or the time is over; return the promise."""
        if not promise.is_done:
            over: Promise[None] = Promise()
            timer = self.call_at(self.now_ms() + max(0, timeout_ms), lambda: over.set(None))
            promise.on_done(lambda: over.set(None))
            await over
            timer.cancel()
        return promise

    # For callers in any thread

    def __enter__(self) -> Self:
        self.check()
        self.lock.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._run_ready()
            if not self.is_closed:
                self._leave()
        finally:
            self.lock.release()

    def check(self) -> None:
        """Raise ClosedError after ``close``, and in a forked child."""
        if self.is_closed:
            raise ClosedError(f"{self.name} is closed")
        if not self._process.is_here:
            raise ClosedError(
                f"{self.name} belongs to process {self._process.number}, from which this process was forked: "
                "create clients after the fork, in the process that uses them"
            )

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine, and wait for its result."""
        try:
            self.check()
        except ClosedError:
            coroutine.close()
            raise
        with self.lock:
            task = self.spawn(coroutine)
            if task.is_done:
                self._run_ready()
                if not self.is_closed:
                    self._leave()
                return task.result()
        return self.wait(task)

    def wait(self, promise: Promise[T], timeout_ms: float | None = None, what: str = "the result") -> T:
        """Wait for a promise, without the lock, and return its result. Raises its error, and
        KafkaTimeoutError after ``timeout_ms``. Not for calls that the reactor makes."""
        self.check()
        with self.lock:
            until = None if timeout_ms is None else self.now_ms() + timeout_ms
            promise.on_done(self._notify)
            self._waiters += 1
            try:
                while not promise.is_done:
                    self._turn()
                    if promise.is_done:
                        break
                    left = _LONGEST_MS if until is None else until - self.now_ms()
                    if left <= 0:
                        raise KafkaTimeoutError(f"{what} did not come within {timeout_ms:.0f} ms")
                    if not self._step():
                        self._changed.wait(min(left, self._pause_ms()) / 1000)
                    if self.is_closed and not promise.is_done:
                        raise ClosedError(f"{self.name} was closed meanwhile")
            finally:
                self._waiters -= 1
                self._run_ready()
                if not self.is_closed:
                    self._leave()
            return promise.result()

    def close(self) -> None:
        """End all tasks, timers and the keeper. A second call does nothing."""
        with self.lock:
            if self.is_closed:
                return
            self.is_closed = True
            for task in list(self._tasks):
                task.cancel(ClosedError(f"{self.name} was closed"))
            self._run_ready()
            self._timers.clear()
            self._changed.notify_all()
            self._wake_keeper()
            keeper = self._keeper
        if keeper is not None and keeper.ident != get_ident():
            keeper.join()

    # The subclasses' IO. All are called under the lock

    @abstractmethod
    def _step(self) -> bool:
        """Do one piece of IO without the lock; return False if another thread does it, or none is left."""

    @abstractmethod
    def _pause_ms(self) -> int:
        """Return the time until the next timer, or work that is due by the clock; called before a sleep."""

    @abstractmethod
    def _keep(self) -> None:
        """Run IO and timers until ``close``; the body of the keeper."""

    @abstractmethod
    def _wake_keeper(self) -> None:
        """Let the keeper take a turn at once."""

    def _leave(self) -> None:
        """Wake the keeper if something is due that no caller waits for."""
        if self._timers and (self._keeper is None or self._timers[0][0] < self._wakes_ms):
            self._start_keeper()
            self._wake_keeper()

    # Shared parts

    def _start_keeper(self) -> None:
        if self._keeper is None:
            self._keeper = Thread(target=self._run_keeper, name="txnkafka-client", daemon=True)
            self._keeper.start()

    def _run_keeper(self) -> None:
        with self.lock:
            try:
                self._keep()
            except BaseException:
                LOG.exception("the thread of %s failed: its clients are closed", self.name)
                self.close()

    def _notify(self) -> None:
        if self._waiters:
            self._changed.notify_all()

    def _turn(self) -> None:
        """Make the calls that are due."""
        self._run_ready()
        timers = self._timers
        if timers and timers[0][0] <= self.now_ms():
            now_ms = self.now_ms()
            while timers and timers[0][0] <= now_ms:
                call = heappop(timers)[2].call
                if call is not None:
                    call()
                    self._run_ready()

    def _run_ready(self) -> None:
        ready = self._ready
        while ready:
            ready.popleft()()

    def _timer_ms(self) -> int:
        """Return the time until the next timer, at most a minute."""
        timers = self._timers
        while timers and timers[0][2].call is None:
            heappop(timers)
        return min(_LONGEST_MS, max(0, timers[0][0] - self.now_ms())) if timers else _LONGEST_MS

"""``EngineReactor``: runs a broker and its clients in one process, in the threads of callers.

A caller that waits for the disk runs the flush itself, without the lock; other callers share it. The keeper
runs what no caller waits for: timeouts of transactions, retention, timers of clients.
"""

from __future__ import annotations

from threading import Condition, RLock
from typing import TYPE_CHECKING

from txnkafka.broker.host import CallerHost
from txnkafka.client.reactor import Reactor

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.broker.broker import Broker as Engine
    from txnkafka.env import Clock


class EngineReactor(Reactor):
    """``engine`` is called only under the lock. ``on_leave`` is called after calls of the engine, before the
    lock is released: they may have answered requests of a server, whose event loop sleeps."""

    def __init__(self, name: str, engine: Engine, clock: Clock) -> None:
        lock = RLock()
        super().__init__(name, clock, lock)
        self.engine = engine
        self.host = CallerHost(engine, self.wall_ms, lock)
        self.on_leave: Callable[[], None] | None = None
        self._rest = Condition(lock)  # of the keeper
        self._is_resting = False
        self._deadline = 0  # of the engine, in its ticks
        self._rests_until = 1 << 62  # the deadline at which the keeper wakes up by itself
        self._is_looked_at = False  # since the last call of the engine, the keeper knows what is due

    def wall_ms(self) -> int:
        """Return the wall-clock time, and report the passing of time to the engine. Each call of the engine
        asks for it."""
        self._is_looked_at = False
        self.engine.ticks.tell(self.clock.running_ms())
        return self.clock.now_ms()

    def advance_engine(self) -> None:
        """Do the work of the engine that is due by the clock. Called under the lock."""
        self._deadline = self.engine.advance(self.wall_ms())
        self._run_ready()

    def _turn(self) -> None:
        super()._turn()
        if not self.engine.is_quiet(self.wall_ms()):
            self.advance_engine()

    def _step(self) -> bool:
        has_run = self.host.step(only_awaited=True)
        if has_run and self.on_leave is not None:
            self.on_leave()
        return has_run

    def _pause_ms(self) -> int:
        if self.on_leave is not None:
            self.on_leave()
        self.wall_ms()
        return min(self._timer_ms(), max(0, self._deadline - self.engine.ticks.now))

    def _keep(self) -> None:
        while not self.is_closed:
            self._turn()
            if self.is_closed or self._step():
                continue
            pause_ms = self._pause_ms()
            self._wakes_ms, self._rests_until = self.now_ms() + pause_ms, self._deadline
            self._is_resting = True
            self._rest.wait(pause_ms / 1000)
            self._is_resting = False

    def _wake_keeper(self) -> None:
        if self._is_resting:
            self._is_resting = False
            self._rest.notify()

    def _leave(self) -> None:
        super()._leave()
        if not self._is_looked_at:
            engine = self.engine
            is_due = engine.is_flush_awaited or len(engine.jobs) or not engine.is_quiet(self.wall_ms())
            if is_due or self._deadline < self._rests_until:  # the caller has learned of an earlier deadline
                self._start_keeper()
                self._wake_keeper()
            self._is_looked_at = True
        if self.on_leave is not None:
            self.on_leave()

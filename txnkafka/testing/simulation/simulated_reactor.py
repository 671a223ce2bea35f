"""``SimulatedReactor``: runs the tasks and timers of one simulated process as events of the scheduler.

It has no thread and no IO, and nothing waits in it: a program is a coroutine that awaits the cores of the
clients. ``close`` ends the process wherever its tasks wait, as a kill does.
"""

from __future__ import annotations

from heapq import heappop
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from txnkafka.client.promise import Promise, Task
from txnkafka.client.reactor import Reactor
from txnkafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from txnkafka.testing.simulation.client import World
    from txnkafka.testing.simulation.scheduler import Scheduler

T = TypeVar("T")


class StoppedError(Exception):
    """The process stops without notice."""


class SimulatedClock:
    """The time of the scheduler, and the wall clock of the broker's machine."""

    def __init__(self, world: World) -> None:
        self._world = world

    def now_ms(self) -> int:
        """Return milliseconds since 1970."""
        at_ms: int = self._world.now_ms()
        return at_ms

    def running_ms(self) -> int:
        """Return milliseconds of simulated time."""
        return self._world.scheduler.now_us // 1000


class SimulatedReactor(Reactor):
    """Everything outside of the process enters by ``act``."""

    def __init__(self, name: str, world: World) -> None:
        super().__init__(name, SimulatedClock(world))
        self._world = world
        self._scheduler: Scheduler = world.scheduler
        self._frozen_us = 0
        self._due_us = -1  # the time of the scheduled event, -1 without one

    def now_ms(self) -> int:
        """Return milliseconds of simulated time."""
        return self._scheduler.now_us // 1000

    def act(self, call: Callable[..., None], *arguments: Any) -> None:
        """Make a call, and all calls that it causes; none after the end of the process."""
        frozen_us = self._frozen_us - self._scheduler.now_us
        if frozen_us > 0:
            self._scheduler.later(frozen_us, self.act, call, *arguments)
        elif not self.is_closed:
            call(*arguments)
            self._run_ready()
            self._schedule()

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> Task[T]:
        """Run a coroutine as a task. An unexpected exception of a task is a finding."""
        task = super().spawn(coroutine)
        task.on_done(lambda: self._check(task))
        return task

    async def pause(self, us: int) -> None:
        """Wait for a number of microseconds: the pause of a program."""
        over: Promise[None] = Promise()
        self._scheduler.event(us, self.act, over.set, None)
        await over

    async def freeze(self, us: int) -> None:
        """Stop the whole process for a time, with the tasks of its clients."""
        self._frozen_us = self._scheduler.now_us + us
        await self.pause(us)

    def _check(self, task: Task[Any]) -> None:
        error = task.error
        if error is not None and not isinstance(error, KafkaError | StoppedError):
            self._world.complaints.append(f"client: {self.name}: {type(error).__name__}: {error}")

    def _schedule(self) -> None:
        """Schedule the next timer, unless an event comes before it."""
        timers = self._timers
        while timers and timers[0][2].call is None:
            heappop(timers)
        if timers and not self.is_closed:
            now_us = self._scheduler.now_us
            at_us = max(now_us + 1, timers[0][0] * 1000)
            if self._due_us < 0 or at_us < self._due_us:
                self._due_us = at_us
                self._scheduler.later(at_us - now_us, self._fire, at_us)

    def _fire(self, at_us: int) -> None:
        if self.is_closed or at_us != self._due_us:
            return
        self._due_us = -1
        timers = self._timers
        while timers and timers[0][2].call is None:
            heappop(timers)
        if timers and timers[0][0] <= self.now_ms():
            self._scheduler.count()
            self._scheduler.note("timer", self.name)
        self.act(self._turn)

    # Nothing waits in a simulation

    def _step(self) -> NoReturn:
        raise RuntimeError(f"{self.name}: a blocking call in a simulation")

    def _pause_ms(self) -> NoReturn:
        raise RuntimeError(f"{self.name}: a keeper in a simulation")

    _keep = _pause_ms

    def _wake_keeper(self) -> None:
        """The next event looks at the timers."""

    def _leave(self) -> NoReturn:
        raise RuntimeError(f"{self.name}: entered like the reactor of a blocking client in a simulation")

"""``Program``: an application with real clients of the package, run by the simulation.

Each start is a process with a separate reactor. The process ends with its coroutine, as after a kill: no task
runs, no request is sent, no connection stays open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.errors import KafkaError
from txnkafka.testing.simulation.simulated_reactor import SimulatedReactor, StoppedError
from txnkafka.testing.simulation.simulated_transport import OLD_VERSIONS, SimulatedTransport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.client.promise import Task
    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import World

TIMES = {
    "request.timeout.ms": 400,
    "socket.connection.setup.timeout.ms": 100,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
}
"""Settings of all clients: the times of the simulation are short."""
_CALM_US: Final = 400_000
_OLD: Final = 0.3  # fraction of the programs with older versions


class Program:
    """``name`` is unique for each process. ``restarts``: another process follows one that has ended."""

    def __init__(self, world: World, name: str, random: Random) -> None:
        self.world = world
        self.random = random
        self.name = self.first_name = name
        self.is_over = False
        self.reactor: SimulatedReactor
        self._starts = 0
        self._transports: list[SimulatedTransport] = []
        self._limits = OLD_VERSIONS if random.random() < _OLD else {}

    # For the kinds of programs

    async def process(self) -> None:
        """Run one process."""
        raise NotImplementedError

    @property
    def restarts(self) -> bool:
        """Return whether another process follows."""
        return not self.world.is_ending

    def sent(self, name: str, message: Any) -> None:
        """A request leaves the client."""

    def answered(self, name: str, version: int, message: Any, response: Any, sent_us: int) -> None:
        """The response to a request has arrived."""

    def can_be_late(self, name: str, message: Any) -> bool:
        """Return False for requests whose late copy would have an effect, also in Apache Kafka."""
        return True

    # Shared parts

    def begin(self) -> None:
        """Start a process."""
        self.name = f"{self.first_name}.{self._starts}"
        self._starts += 1
        self.reactor = SimulatedReactor(self.name, self.world)
        self.reactor.act(self._start)

    def _start(self) -> None:
        task = self.reactor.spawn(self.process())
        task.on_done(lambda: self._ended(task))

    def _ended(self, task: Task[None]) -> None:
        error = task.error
        if isinstance(error, KafkaError):
            self.world.counts[f"process ended: {type(error).__name__}"] += 1
        elif error is not None and not isinstance(error, StoppedError):
            raise error
        self.reactor.close()
        for transport in self._transports:
            transport.close()
        self._transports.clear()
        self.is_over = not self.restarts
        if not self.is_over:
            self.world.scheduler.event(self.think(), self._begin_again)

    def _begin_again(self) -> None:
        self.is_over = not self.restarts
        if not self.is_over:
            self.begin()

    def transport(self, *, transaction_version: int = 2) -> SimulatedTransport:
        """Return a transport for a client of this process."""
        transport = SimulatedTransport(
            self.world, self.reactor, self.name, self, limits=self._limits,
            transaction_version=transaction_version,
        )  # fmt: skip
        self._transports.append(transport)
        return transport

    def settings(self, **more: Any) -> Mapping[str, Any]:
        """Return the settings of a client."""
        return {**TIMES, "client.id": self.name, **more}

    def think(self) -> int:
        """Return the time until the next action, in microseconds."""
        least = _CALM_US if self.world.is_calm else self.world.swarm.think_us
        return least // 4 + int(self.random.random() * least)

    async def rest(self) -> None:
        """Wait until the next action."""
        await self.reactor.pause(self.think())

    def happens(self, chance: float) -> bool:
        """Draw an incident, which happens only under faults."""
        return self.random.random() < chance and not self.world.is_calm

"""``ReadingProgram``: an application that reads assigned partitions, without a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from txnkafka.client.consumer.subscription import Place
from txnkafka.testing.simulation.program import Program
from txnkafka.testing.simulation.reading import Reading, all_partitions
from txnkafka.testing.simulation.simulated_reactor import StoppedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.env import Random
    from txnkafka.model import TopicPartition
    from txnkafka.testing.simulation.client import World
    from txnkafka.testing.simulation.history import Topic

_MOST = 200  # records of a poll


class ReadingProgram(Program):
    """``isolation_level`` is the setting's value. ``positions`` are the next offsets of all partitions."""

    def __init__(
        self, world: World, name: str, random: Random, topics: Sequence[Topic], isolation_level: str
    ) -> None:
        super().__init__(world, name, random)
        self._isolation_level = isolation_level
        self._partitions = all_partitions(topics)
        self._reading: Reading | None = None

    @property
    def restarts(self) -> bool:
        """Return True: it reads up to the very end."""
        return True

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The next offsets; 0 before the first read."""
        found = {} if self._reading is None else self._reading.positions
        return dict.fromkeys(self._partitions, 0) | found

    async def process(self) -> None:
        """Poll, and sometimes begin anew."""
        random = self.random
        reading = self._reading = Reading(self, {}, **{"isolation.level": self._isolation_level})
        core = reading.core
        await core.assign(self._partitions)
        while True:
            limit, timeout_ms = random.choice((1, 5, _MOST)), random.choice((0, 5, 50))
            is_calm = self.world.is_calm
            found = await reading.poll(_MOST if is_calm else limit, 20 if is_calm else timeout_ms)
            if self.happens(0.003):
                self.world.counts["consumer begins anew"] += 1
                reading.seek(random.choice(self._partitions), 0)
            if self.happens(0.002):
                partition = random.choice(self._partitions)
                core.seek_to([partition], random.choice((Place.BEGINNING, Place.END)))
            if self.happens(0.01):
                some = random.sample(self._partitions, 2)
                core.set_paused(some, is_paused=random.random() < 0.5)
            elif self.world.is_calm:
                core.set_paused(self._partitions, is_paused=False)
            if self.happens(0.001):
                raise StoppedError
            if not found or not self.world.is_calm:
                await self.rest()

    def answered(self, name: str, version: int, message: Any, response: Any, sent_us: int) -> None:
        """Keep the offsets in responses."""
        if name == "Fetch" and self._reading is not None:
            self._reading.fetched(message, response, sent_us)

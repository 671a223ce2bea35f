"""``GroupProgram``: an application that reads the partitions that its group assigns, and commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from txnkafka.errors import CommitFailedError, KafkaError
from txnkafka.testing.simulation.member import Member
from txnkafka.testing.simulation.program import Program
from txnkafka.testing.simulation.simulated_reactor import StoppedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import World
    from txnkafka.testing.simulation.history import Topic
    from txnkafka.testing.simulation.reading import Reading


class GroupProgram(Program):
    """``is_replaced``: another process has its instance id."""

    def __init__(
        self, world: World, name: str, random: Random, topics: Sequence[Topic], group_id: str, *,
        instance_id: str | None,
    ) -> None:  # fmt: skip
        super().__init__(world, name, random)
        self.member = Member(self, topics, group_id, instance_id, world.swarm.reader_protocols)
        self.is_replaced = False

    @property
    def restarts(self) -> bool:
        """Return whether another process follows; members read up to the very end."""
        return not self.is_replaced

    async def process(self) -> None:
        """Poll and commit."""
        random = self.random
        commits_itself = random.random() < 0.3
        settings = {
            "enable.auto.commit": commits_itself, "auto.commit.interval.ms": random.choice((20, 100)),
        }  # fmt: skip
        reading = self.member.join(**settings)
        while True:
            found = await reading.poll(random.choice((1, 10, 200)), random.choice((5, 20)))
            await self._incident()
            if not commits_itself and (self.world.is_calm or random.random() < 0.5):
                await self._commit(reading)
            if not found:
                await self.rest()

    async def _commit(self, reading: Reading) -> None:
        """Commit the positions; a member that has lost its place goes on with the next poll."""
        core = reading.core
        if not core.commits.positions():
            return
        try:
            await core.commit(None, 1_000)
        except CommitFailedError:
            self.world.counts["commit of a former member refused"] += 1
        except KafkaError as error:
            if not error.retriable:
                raise
            self.world.counts[f"commit failed: {type(error).__name__}"] += 1

    async def _incident(self) -> None:
        world = self.world
        if self.happens(0.05):
            world.counts["member stopped"] += 1
            raise StoppedError
        if self.happens(0.1):
            await self.member.leave()
            raise StoppedError
        if self.happens(0.05):
            world.counts["member overslept"] += 1
            await self.reactor.freeze(self.random.randrange(500, 3_000) * world.swarm.session_timeout_ms)

    # The messages

    def sent(self, name: str, message: Any) -> None:
        """A request leaves the client."""
        self.member.sent(name, message)

    def answered(self, name: str, version: int, message: Any, response: Any, sent_us: int) -> None:
        """The response to a request has arrived."""
        self.member.answered(name, version, message, response, sent_us)

    def can_be_late(self, name: str, message: Any) -> bool:
        """Return False for requests whose late copy would have an effect."""
        return self.member.can_be_late(name, message)

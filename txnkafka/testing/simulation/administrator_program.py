"""``AdministratorProgram``: an application with the package's admin client. It describes and lists
transactions, producers and groups, and deletes and recreates a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.client.admin.admin_config import AdminConfig
from txnkafka.client.admin.core import AdminCore
from txnkafka.client.admin.record_calls import OffsetSpec
from txnkafka.client.client_config import read_config
from txnkafka.errors import KafkaError
from txnkafka.model import TopicPartition
from txnkafka.testing.simulation.history import Progress
from txnkafka.testing.simulation.program import Program

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import World
    from txnkafka.testing.simulation.history import Topic

_SETTINGS: Final[tuple[dict[str, str], ...]] = (
    {"retention.ms": "-1"},
    {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"},
    {"index.interval.bytes": "100"},
    {},
)


class Administering(Program):
    """Base of the programs with an admin client, which run a random action again and again."""

    core: AdminCore

    async def process(self) -> None:
        """Run actions; one that fails is not repeated, apart from the client's own repetitions."""
        settings = self.settings(**{"default.api.timeout.ms": 3_000})
        self.core = AdminCore(self.transport(), read_config(AdminConfig, settings))
        while not self.world.is_ending:
            await self.reactor.pause(self.think() * 4)
            await self.attempt(self.next_action())

    def next_action(self) -> Callable[[], Awaitable[None]]:
        """Return the next action."""
        raise NotImplementedError

    async def attempt(self, action: Callable[[], Awaitable[None]]) -> bool:
        """Run an action. Returns False after an error."""
        try:
            await action()
        except KafkaError as error:
            self.world.counts[f"admin: {type(error).__name__}"] += 1
            return False
        return True


class AdministratorProgram(Administering):
    """``has_to_delete`` requests deleting and recreating ``topic``."""

    def __init__(
        self, world: World, name: str, random: Random, topic: Topic, configs: Mapping[str, str]
    ) -> None:
        super().__init__(world, name, random)
        self.has_to_delete = False
        self._has_to_create = False  # a deletion may have happened, or happens with the next start
        self._topic = topic
        self._configs = dict(configs)
        self._group_types: dict[str, str] = {}  # as last observed

    def next_action(self) -> Callable[[], Awaitable[None]]:
        """Delete and create if that is due; otherwise look at something."""
        if self.has_to_delete:
            self.has_to_delete = False
            self._has_to_create = True
            return self._delete
        if self._has_to_create:
            return self._create
        actions: list[Callable[[], Awaitable[None]]] = [
            self._describe, self._list, self._look, self._producers,
        ]  # fmt: skip
        if self.world.swarm.has_groups:
            actions += [self._list_groups, self._describe_groups]
        return self.random.choice(actions)

    async def _delete(self) -> None:
        await self.core.delete_topics(self._topic.name)
        self.world.counts["topic deleted"] += 1

    async def _create(self) -> None:
        """Recreate the topic, possibly with other settings."""
        settings, history = self._configs, self.world.history
        if self.world.swarm.alters_settings:
            settings = self.random.choice(_SETTINGS)
        possible = history.settings[self._topic.name]
        history.settings[self._topic.name] = [*possible, settings]
        await self.core.create_topic(self._topic.name, self._topic.partitions, config=settings)
        self._has_to_create = False
        self.world.counts["topic created"] += 1
        history.settings[self._topic.name] = [settings]

    async def _describe(self) -> None:
        await self.core.describe_transactions("id-0")

    async def _list(self) -> None:
        await self.core.list_transactions()

    async def _list_groups(self) -> None:
        """List groups and check their types: a group may have changed its protocol."""
        found = {each.group_id: each.type.lower() for each in await self.core.list_groups()}
        for group_id, group_type in found.items():
            change = self._group_types.get(group_id, group_type), group_type
            self.world.counts["group upgraded"] += change == ("classic", "consumer")
            self.world.counts["group downgraded"] += change == ("consumer", "classic")
        self._group_types |= found

    async def _describe_groups(self) -> None:
        """Describe the groups of both protocols, whose states differ."""
        for group_id in sorted(self.world.history.groups):
            found = (await self.core.describe_groups(group_id))[group_id]
            self.world.counts[f"{found.type.lower()} group {found.state}"] += 1

    async def _look(self) -> None:
        """Check that the end for read_committed readers never decreases."""
        partition = TopicPartition("a", 0)
        found = (await self.core.list_offsets({partition: OffsetSpec.LATEST}))[partition].offset
        self.world.history.progress.append(
            Progress(self.name, partition, found, found, 0, self.world.scheduler.now_us)
        )

    async def _producers(self) -> None:
        await self.core.describe_producers([TopicPartition("c", 0)])

"""``RegistrarProgram``: an application that changes and reads the settings of topics, and deletes records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.client.admin.configs import ConfigResource, ConfigResourceType, ConfigSource
from txnkafka.client.admin.record_calls import OffsetSpec
from txnkafka.model import TopicPartition
from txnkafka.testing.simulation.administrator_program import Administering

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import World
    from txnkafka.testing.simulation.history import Topic

TRIMMED_TOPIC: Final = "k"
_VALUES: Final = {
    "index.interval.bytes": ("100", "400", "4000"),
    "segment.ms": ("50", "3600000"),
    "file.delete.delay.ms": ("1", "50", "500"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime"),
    "max.message.bytes": ("100000", "1000000"),
}
_OF_COMPACTED_TOPICS: Final = {
    "min.cleanable.dirty.ratio": ("0.01", "0.1", "0.9"),
    "delete.retention.ms": ("0", "100", "1000"),
    "min.compaction.lag.ms": ("0", "200"),
}


class RegistrarProgram(Administering):
    """Records in the history the possible settings of each topic and the deleted records. No other client
    changes these."""

    def __init__(self, world: World, name: str, random: Random, topics: Sequence[Topic]) -> None:
        super().__init__(world, name, random)
        self._topics = [topic for topic in topics if not topic.is_deletable]

    def next_action(self) -> Callable[[], Awaitable[None]]:
        """Return a random action of those that the seed has."""
        swarm = self.world.swarm
        actions = [self._alter, self._look] if swarm.alters_settings else []
        if swarm.deletes_records:
            actions.append(self._delete)
        return self.random.choice(actions)

    async def _alter(self) -> None:
        topic = self.random.choice(self._topics)
        values = {**_VALUES, **(_OF_COMPACTED_TOPICS if topic.is_compacted else {})}
        setting = self.random.choice(sorted(values))
        value = self.random.choice((None, *values[setting]))
        possible = self.world.history.settings[topic.name]
        changed = []
        for settings in possible:
            kept = {name: text for name, text in settings.items() if name != setting}
            changed.append(kept if value is None else {**kept, setting: value})
        # from the request on, both are possible
        self.world.history.settings[topic.name] = [*possible, *changed]
        resource = ConfigResource(ConfigResourceType.TOPIC, topic.name)
        await self.core.incremental_alter_configs({resource: {setting: value}})
        self.world.history.settings[topic.name] = changed
        self.world.counts["settings changed"] += 1

    async def _look(self) -> None:
        """Compare the settings of a topic with the acknowledged changes, also after a restart."""
        topic = self.random.choice(self._topics)
        resource = ConfigResource(ConfigResourceType.TOPIC, topic.name)
        entries = (await self.core.describe_configs([resource]))[resource]
        found = {
            name: entry.value for name, entry in entries.items()
            if entry.source is ConfigSource.TOPIC_CONFIG
        }  # fmt: skip
        possible = self.world.history.settings[topic.name]
        if found not in possible:
            self.world.complaints.append(f"settings: {topic.name} has {found}, not one of {possible}")

    async def _delete(self) -> None:
        partition = TopicPartition(TRIMMED_TOPIC, 0)
        latest = {partition: OffsetSpec.LATEST}
        found = await self.core.list_offsets(latest, isolation_level="read_uncommitted")
        deleted, asked = self.world.history.deletions.get((TRIMMED_TOPIC, 0), (0, 0))
        if found[partition].offset <= deleted:
            return
        left = found[partition].offset - deleted
        offset = deleted + 1 + self.random.randrange(self.random.choice((left, min(left, 3))))
        self.world.history.deletions[TRIMMED_TOPIC, 0] = deleted, max(asked, offset)
        await self.core.delete_records({partition: offset})
        self.world.history.deletions[TRIMMED_TOPIC, 0] = offset, max(asked, offset)
        self.world.counts["records deleted"] += 1

"""``Registrar``: a client that changes settings of topics, and deletes records of a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.broker.config.config_alteration import Alteration, ConfigChange, ConfigOp, alter_configs
from txnkafka.broker.records.records_deletion import delete_records
from txnkafka.broker.requests import OffsetQuery
from txnkafka.coordinator.registry.cluster_image import TOPIC_RESOURCE
from txnkafka.error_codes import ErrorCode
from txnkafka.model import IsolationLevel, TopicPartition
from txnkafka.testing.simulation.client import Client
from txnkafka.testing.simulation.network import Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import Steps, World
    from txnkafka.testing.simulation.history import Topic

TRIMMED_TOPIC: Final = "k"
_LATEST: Final = -1
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


class Registrar(Client):
    """Records in the history the possible settings of each topic and the deleted records. No other client
    changes these."""

    def __init__(self, world: World, name: str, random: Random, topics: Sequence[Topic]) -> None:
        super().__init__(world, name, random)
        self._topics = [topic for topic in topics if not topic.is_deletable]

    def steps(self) -> Steps:
        """Run a random action again and again."""
        swarm = self.world.swarm
        actions = [self._alter, self._look] if swarm.alters_settings else []
        if swarm.deletes_records:
            actions.append(self._delete)
        while not self.world.is_ending:
            yield self.think() * 4
            yield from self.random.choice(actions)()

    def _alter(self) -> Steps:
        topic = self.random.choice(self._topics)
        values = {**_VALUES, **(_OF_COMPACTED_TOPICS if topic.is_compacted else {})}
        setting = self.random.choice(sorted(values))
        value = self.random.choice((None, *values[setting]))
        change = ConfigChange(setting, ConfigOp.DELETE if value is None else ConfigOp.SET, value)
        wanted = Alteration(TOPIC_RESOURCE, topic.name, [change])

        def alter(broker: Any, reply: Any) -> None:
            alter_configs(broker, wanted, lambda error, _: reply(error))

        possible = self.world.history.settings[topic.name]
        changed = []
        for settings in possible:
            kept = {name: text for name, text in settings.items() if name != setting}
            changed.append(kept if value is None else {**kept, setting: value})
        # from the request on, both are possible
        self.world.history.settings[topic.name] = [*possible, *changed]
        # a late copy would undo a later change
        answer, _ = yield from self.ask("IncrementalAlterConfigs", alter, can_be_late=False)
        if answer == ErrorCode.NONE:
            self.world.history.settings[topic.name] = changed
        self.world.counts["settings changed"] += answer == ErrorCode.NONE

    def _look(self) -> Steps:
        """Compare the settings of a topic with the acknowledged changes, also after a restart."""
        topic = self.random.choice(self._topics)
        found: list[dict[str, str]] = []

        def look(broker: Any, reply: Any) -> None:
            found[:] = [dict(broker.image.topic_configs(topic.name))]
            self.world.counts["metadata snapshot"] += bool(broker.metadata.snapshots)
            reply(ErrorCode.NONE)

        answer, _ = yield from self.ask("DescribeConfigs", look, can_be_late=False)
        possible = self.world.history.settings[topic.name]
        if answer == ErrorCode.NONE and found[0] not in possible:
            self.world.complaints.append(f"settings: {topic.name} has {found[0]}, not one of {possible}")

    def _delete(self) -> Steps:
        partition = TopicPartition(TRIMMED_TOPIC, 0)
        query = OffsetQuery(partition, _LATEST)

        def end(broker: Any, reply: Any) -> None:
            reply(broker.list_offsets([query], IsolationLevel.READ_UNCOMMITTED)[partition])

        (answer,) = yield [Request("ListOffsets", end)]
        deleted, asked = self.world.history.deletions.get((TRIMMED_TOPIC, 0), (0, 0))
        if answer is None or answer.error != ErrorCode.NONE or answer.offset <= deleted:
            return
        offset = self.random.randrange(deleted, answer.offset) + 1
        self.world.history.deletions[TRIMMED_TOPIC, 0] = deleted, max(asked, offset)

        def delete(broker: Any, reply: Any) -> None:
            delete_records(broker, {partition: offset}, lambda answers: reply(answers[partition].error))

        error, _ = yield from self.ask("DeleteRecords", delete)
        if error == ErrorCode.NONE:
            self.world.history.deletions[TRIMMED_TOPIC, 0] = offset, max(asked, offset)
            self.world.counts["records deleted"] += 1

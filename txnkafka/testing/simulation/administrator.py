"""``Administrator``: a client that describes transactions and partitions, and deletes and recreates a
topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.broker.requests import NewTopic, OffsetQuery
from txnkafka.coordinator.txn.txn_listing import Filters
from txnkafka.error_codes import ErrorCode
from txnkafka.model import IsolationLevel, TopicPartition
from txnkafka.testing.simulation.client import Client
from txnkafka.testing.simulation.history import Progress
from txnkafka.testing.simulation.network import Request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import Steps, World
    from txnkafka.testing.simulation.history import Topic

_LATEST: Final = -1
_SETTINGS: Final[tuple[dict[str, str], ...]] = (
    {"retention.ms": "-1"},
    {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"},
    {"index.interval.bytes": "100"},
    {},
)


class Administrator(Client):
    """``has_to_delete`` requests deleting and recreating ``topic``."""

    def __init__(
        self, world: World, name: str, random: Random, topic: Topic, configs: Mapping[str, str]
    ) -> None:
        super().__init__(world, name, random)
        self.has_to_delete = False
        self._has_to_create = False  # a deletion failed, and may take effect after the next start
        self._topic = topic
        self._configs = dict(configs)
        self._group_types: dict[str, str] = {}  # as last observed

    def steps(self) -> Steps:
        """Run a random query from time to time."""
        while not self.world.is_ending:
            yield self.think() * 4
            if self.has_to_delete:
                self.has_to_delete = False
                yield from self._delete()
                yield from self._create()
            elif self._has_to_create:
                yield from self._create()
            actions = [self._describe, self._list, self._look]
            if self.world.swarm.has_groups:
                actions += [self._list_groups, self._describe_groups]
            yield from self.random.choice(actions)()

    def _delete(self) -> Steps:
        def delete(broker: Any, reply: Any) -> None:
            name = self._topic.name
            broker.topics.delete([name], [], lambda answers: reply(answers[0].error))

        # a late copy would delete the recreated topic
        (answer,) = yield [Request("DeleteTopics", delete, can_be_late=False)]
        self.world.counts["topic deleted"] += answer == ErrorCode.NONE
        self._has_to_create |= answer != ErrorCode.NONE
        yield self.think()

    def _create(self) -> Steps:
        """Recreate the topic, possibly with other settings."""
        settings, history = self._configs, self.world.history
        if self.world.swarm.alters_settings:
            settings = self.random.choice(_SETTINGS)
        possible = history.settings[self._topic.name]
        history.settings[self._topic.name] = [*possible, settings]

        def create(broker: Any, reply: Any) -> None:
            new = NewTopic(self._topic.name, self._topic.partitions, configs=settings)
            broker.topics.create([new], lambda answers: reply(answers[0].error))

        answer, _ = yield from self.ask("CreateTopics", create)
        self.world.counts["topic created"] += answer == ErrorCode.NONE
        if answer == ErrorCode.NONE:
            history.settings[self._topic.name] = [settings]

    def _describe(self) -> Steps:
        def describe(broker: Any, reply: Any) -> None:
            reply(broker.transactions.describe("id-0").error)

        yield from self.ask("DescribeTransactions", describe)

    def _list(self) -> Steps:
        def list_all(broker: Any, reply: Any) -> None:
            reply(broker.transactions.list(Filters()).error)

        yield from self.ask("ListTransactions", list_all)

    def _list_groups(self) -> Steps:
        """List groups and check their types: a group may have changed its protocol."""

        def listed(broker: Any, reply: Any) -> None:
            found.clear()
            found.update({each.group_id: each.group_type for each in broker.groups.listed()})
            reply(ErrorCode.NONE)

        found: dict[str, str] = {}
        yield from self.ask("ListGroups", listed, can_be_late=False)
        for group_id, group_type in found.items():
            change = self._group_types.get(group_id, group_type), group_type
            self.world.counts["group upgraded"] += change == ("classic", "consumer")
            self.world.counts["group downgraded"] += change == ("consumer", "classic")
        self._group_types |= found

    def _describe_groups(self) -> Steps:
        """Check the states of groups of the consumer protocol."""

        def describe(broker: Any, reply: Any) -> None:
            def answered(rows: Any) -> None:
                states.clear()
                states.extend(row.state for row in rows if row.error == ErrorCode.NONE)
                reply(ErrorCode.NONE)

            broker.groups.describe_consumer(sorted(self.world.history.groups), answered)

        states: list[str] = []
        yield from self.ask("ConsumerGroupDescribe", describe, can_be_late=False)
        for state in states:
            self.world.counts[f"consumer group {state}"] += 1

    def _look(self) -> Steps:
        """Check that the end for read_committed readers never decreases."""
        partition = TopicPartition("a", 0)
        query = OffsetQuery(partition, _LATEST)

        def end(broker: Any, reply: Any) -> None:
            reply(broker.list_offsets([query], IsolationLevel.READ_COMMITTED)[partition])

        answer, _ = yield from self.ask("ListOffsets", end)
        if answer is not None and answer.error == ErrorCode.NONE:
            last = Progress(
                self.name, partition, answer.offset, answer.offset, 0, self.world.scheduler.now_us
            )
            self.world.history.progress.append(last)
        yield [Request("DescribeProducers", self._producers)]

    def _producers(self, broker: Any, reply: Any) -> None:
        reply(broker.describe_producers(TopicPartition("c", 0))[0])

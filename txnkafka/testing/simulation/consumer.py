"""``Consumer``: reads assigned partitions without a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from txnkafka.broker.requests import OffsetQuery
from txnkafka.error_codes import ErrorCode
from txnkafka.model import IsolationLevel, TopicPartition
from txnkafka.testing.simulation.client import BACKOFF_US, Client
from txnkafka.testing.simulation.network import Request
from txnkafka.testing.simulation.reader import Fetched, Reader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import Steps, World
    from txnkafka.testing.simulation.history import Topic

_EARLIEST = -2


class Consumer(Client):
    """A consumer; ``reader`` has its positions."""

    def __init__(
        self,
        world: World,
        name: str,
        random: Random,
        topics: Sequence[Topic],
        isolation_level: IsolationLevel,
    ) -> None:
        super().__init__(world, name, random)
        self.reader = Reader(world, name, random, isolation_level)
        for topic in topics:
            for number in range(topic.partitions):
                self.reader.seek(TopicPartition(topic.name, number), 0)

    def steps(self) -> Steps:
        """Fetch repeatedly."""
        random, reader = self.random, self.reader
        partitions = list(reader.positions)
        while True:
            count = (
                len(partitions) if self.world.is_calm else random.randrange(1, min(4, len(partitions) + 1))
            )
            wanted = random.sample(partitions, count)
            (answer,) = yield [reader.request(wanted)]
            if answer is None:
                yield random.randrange(1, BACKOFF_US)
                continue
            is_behind = False
            for each in answer:
                if each.error == ErrorCode.OFFSET_OUT_OF_RANGE:
                    yield from self._reset(each.partition)
                elif each.error == ErrorCode.NONE:
                    is_behind |= self._take(each)
                else:
                    self.world.counts[f"Fetch: {each.error.name}"] += 1
            if random.random() < 0.003 and not self.world.is_calm:
                self.world.counts["consumer begins anew"] += 1
                reader.seek(random.choice(partitions), 0)
            if not is_behind or not self.world.is_calm:
                yield self.think()

    def _take(self, answer: Fetched) -> bool:
        """Process a response; return True if it has new records."""
        position = self.reader.positions[answer.partition]
        return self.reader.take(answer)[1] > position

    def _reset(self, partition: TopicPartition) -> Steps:
        """Reset a position that is no longer in the log to the log start."""
        level = self.reader.isolation_level

        def perform(broker: Any, reply: Any) -> None:
            reply(broker.list_offsets([OffsetQuery(partition, _EARLIEST)], level)[partition])

        self.world.counts["offset out of range"] += 1
        (answer,) = yield [Request("ListOffsets", perform)]
        if answer is not None and answer.error == ErrorCode.NONE:
            self.reader.seek(partition, answer.offset)

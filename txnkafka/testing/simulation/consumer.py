"""``Consumer``: reads assigned partitions, and leaves out what was aborted, as Kafka's consumer does.

Source: ``CompletedFetch.nextFetchedRecord``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from txnkafka.broker.requests import FetchPartition, FetchRequest, OffsetQuery
from txnkafka.error_codes import ErrorCode
from txnkafka.model import IsolationLevel, TopicPartition
from txnkafka.testing.simulation import batches
from txnkafka.testing.simulation.client import BACKOFF_US, Client
from txnkafka.testing.simulation.history import Poll, Progress
from txnkafka.testing.simulation.network import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import Steps, World
    from txnkafka.testing.simulation.history import Topic

__all__ = ["Consumer", "Fetched", "fetch", "visible"]

_EARLIEST = -2


class Fetched(NamedTuple):
    """The answer for one partition, as it has come through the network. ``aborted`` has pairs of first offset
    and producer id."""

    partition: TopicPartition
    error: ErrorCode
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]]
    data: memoryview


_NOTHING = memoryview(b"")


def fetch(
    broker: Any, request: FetchRequest, reply: Callable[[list[Fetched] | None], None], now_ms: int
) -> Callable[[], None]:
    """Fetch. An answer whose bytes cannot be read is None: a server closes the connection there."""

    def answered(answer: Sequence[tuple[TopicPartition, Any]]) -> None:
        try:
            found = _fetched(answer)
        except OSError:
            found = None
        reply(found)

    withdraw: Callable[[], None] = broker.fetch(request, answered, now_ms=now_ms)
    return withdraw


def _fetched(answer: Sequence[tuple[TopicPartition, Any]]) -> list[Fetched]:
    """Read the slices of an answer, and release them. Raises OSError."""
    try:
        return [
            Fetched(
                partition, each.error, each.high_watermark, each.last_stable_offset, each.log_start_offset,
                [(entry.first_offset, entry.producer_id) for entry in each.aborted_transactions or ()],
                _NOTHING if each.records is None or not each.records.size else each.records.read(),
            )
            for partition, each in answer
        ]  # fmt: skip
    finally:
        for _, each in answer:
            if each.records is not None:
                each.records.release()


def visible(answer: Fetched, position: int = 0) -> tuple[list[tuple[int, int]], int]:
    """The records from ``position`` on that are not of aborted transactions, and where to read on."""
    found: list[tuple[int, int]] = []
    waiting = sorted(answer.aborted, reverse=True)
    hidden: set[int] = set()
    for batch in batches.parse(answer.data, *answer.partition):
        while waiting and waiting[-1][0] <= batch.last_offset:
            hidden.add(waiting.pop()[1])
        if batch.control is not None:
            if batch.control == 0:
                hidden.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in hidden):
            if batch.base_offset >= position:
                found += batch.values
            else:
                found += [value for value in batch.values if value[0] >= position]
        position = max(position, batch.last_offset + 1)
    return found, position


class Consumer(Client):
    """``positions`` are where it reads on."""

    def __init__(
        self,
        world: World,
        name: str,
        random: Random,
        topics: Sequence[Topic],
        isolation_level: IsolationLevel,
    ) -> None:
        super().__init__(world, name, random)
        self.isolation_level = isolation_level
        self.positions = {
            TopicPartition(topic.name, number): 0 for topic in topics for number in range(topic.partitions)
        }
        self._new = set(self.positions)  # whose position was set
        self._seen: dict[TopicPartition, tuple[int, int, int]] = {}

    def steps(self) -> Steps:
        """Fetch after fetch."""
        random = self.random
        partitions = list(self.positions)
        while True:
            count = (
                len(partitions) if self.world.is_calm else random.randrange(1, min(4, len(partitions) + 1))
            )
            wanted = random.sample(partitions, count)
            (answer,) = yield [self._request(wanted)]
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
                self._seek(random.choice(partitions), 0)
            if not is_behind or not self.world.is_calm:
                yield self.think()

    def _request(self, partitions: list[TopicPartition]) -> Request:
        random = self.random
        most = 16_384 if self.world.is_calm else random.choice((200, 4_096))
        request = FetchRequest(
            [FetchPartition(each, self.positions[each], most) for each in partitions],
            self.isolation_level, random.choice((0, 1, 1, 300)), 16_384, random.choice((0, 10, 100)),
        )  # fmt: skip

        def perform(broker: Any, reply: Any, now_ms: int) -> Any:
            return fetch(broker, request, reply, now_ms)

        return Request("Fetch", perform)

    def _take(self, answer: Fetched) -> bool:
        """Take what is new of an answer; whether there was something."""
        partition, at_us = answer.partition, self.world.scheduler.now_us
        offsets = answer[2:5]
        if self._seen.get(partition) != offsets:
            self._seen[partition] = offsets
            self.world.history.progress.append(Progress(self.name, partition, *offsets, at_us))
        if not answer.data:
            return False
        position = self.positions[partition]
        values, end = visible(answer, position)
        if end > position:
            self.positions[partition] = end
            is_new = partition in self._new
            self._new.discard(partition)
            self.world.counts["records read"] += len(values)
            self.world.history.polls.append(
                Poll(
                    self.name, partition, self.isolation_level is IsolationLevel.READ_COMMITTED,
                    position, end, values, at_us, is_new,
                )
            )  # fmt: skip
        return end > position

    def _seek(self, partition: TopicPartition, offset: int) -> None:
        self.positions[partition] = offset
        self._new.add(partition)

    def _reset(self, partition: TopicPartition) -> Steps:
        """The position is not in the log any more: begin where it begins."""

        def perform(broker: Any, reply: Any, now_ms: int) -> None:
            reply(broker.list_offsets([OffsetQuery(partition, _EARLIEST)], self.isolation_level)[partition])

        self.world.counts["offset out of range"] += 1
        (answer,) = yield [Request("ListOffsets", perform)]
        if answer is not None and answer.error == ErrorCode.NONE:
            self._seek(partition, answer.offset)

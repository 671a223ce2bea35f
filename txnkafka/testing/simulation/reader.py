"""``Reader``: the positions of a consumer in its partitions, and the interpretation of fetch responses: it
drops aborted records, as Kafka's consumer does.

Source: ``CompletedFetch.nextFetchedRecord``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from txnkafka.broker.requests import FetchPartition, FetchRequest
from txnkafka.model import IsolationLevel
from txnkafka.testing.simulation import batches
from txnkafka.testing.simulation.fetch_limits import FetchLimits, broken_limits
from txnkafka.testing.simulation.history import Poll, Progress
from txnkafka.testing.simulation.network import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from txnkafka.env import Random
    from txnkafka.error_codes import ErrorCode
    from txnkafka.model import TopicPartition
    from txnkafka.testing.simulation.client import World


class Fetched(NamedTuple):
    """The response for one partition, after the network. ``aborted`` has (first offset, producer id)
    pairs."""

    partition: TopicPartition
    error: ErrorCode
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]]
    data: memoryview


_NOTHING = memoryview(b"")


def fetch(
    broker: Any, request: FetchRequest, reply: Callable[[list[Fetched] | None], None]
) -> Callable[[], None]:
    """Fetch. The response is None if its bytes cannot be read: a server then closes the connection."""

    def answered(answer: Sequence[tuple[TopicPartition, Any]]) -> None:
        try:
            found = _fetched(answer)
        except OSError:
            found = None
        reply(found)

    withdraw: Callable[[], None] = broker.fetch(request, answered)
    return withdraw


def _fetched(answer: Sequence[tuple[TopicPartition, Any]]) -> list[Fetched]:
    """Read and release the slices of a response. Raises OSError."""
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
    """Return the records from ``position`` on, without aborted transactions, and the next position."""
    found: list[tuple[int, int]] = []
    waiting = sorted(answer.aborted, reverse=True)
    hidden: set[int] = set()
    for base_offset, last_offset, producer_id, is_transactional, control, values in batches.parse(
        answer.data, *answer.partition
    ):
        while waiting and waiting[-1][0] <= last_offset:
            hidden.add(waiting.pop()[1])
        if control is not None:
            if control == 0:
                hidden.discard(producer_id)
        elif not (is_transactional and producer_id in hidden):
            found += values if base_offset >= position else [each for each in values if each[0] >= position]
        if last_offset >= position:
            position = last_offset + 1
    return found, position


class Reader:
    """``positions`` are the next offsets to read, ``read`` the ends of the last reads, ``process`` its name
    in the history."""

    def __init__(self, world: World, process: str, random: Random, isolation_level: IsolationLevel) -> None:
        self.process = process
        self.isolation_level = isolation_level
        self.positions: dict[TopicPartition, int] = {}
        self.read: dict[TopicPartition, int] = {}
        self._world = world
        self._random = random
        self._new: set[TopicPartition] = set()  # partitions after a seek
        self._seen: dict[TopicPartition, tuple[int, int, int]] = {}

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Set the position of a partition."""
        self.positions[partition] = offset
        self._new.add(partition)

    def forget(self) -> None:
        """Drop all positions."""
        self.positions.clear()
        self._new.clear()

    def request(self, partitions: list[TopicPartition]) -> Request:
        """Return a fetch of the next records."""
        random = self._random
        world, small = self._world, self._world.swarm.small_fetches
        most = 16_384 if world.is_calm else random.choice((200, 4_096))
        least, most_of_all = random.choice((0, 1, 1, 300)), 16_384
        if small and not world.is_calm and random.random() < small:
            world.counts["small fetch"] += 1
            least, most_of_all = random.choice((1, 1, 5_000)), random.choice((1, 300, 1_000))
        request = FetchRequest(
            [FetchPartition(each, self.positions[each], most) for each in partitions],
            self.isolation_level, least, most_of_all, random.choice((0, 10, 100)),
        )  # fmt: skip

        def perform(broker: Any, reply: Any) -> Any:
            return fetch(broker, request, reply)

        def check(answer: list[Fetched]) -> None:
            broken = broken_limits(
                FetchLimits(most_of_all, most, least, request.max_wait_ms),
                [(str(each.partition), each.data) for each in answer],
                world.scheduler.now_us - sent.sent_us, has_errors=any(each.error for each in answer),
            )  # fmt: skip
            world.complaints.extend(f"fetch of {self.process}: {each}" for each in broken)

        sent = Request("Fetch", perform)
        sent.check = check
        return sent

    def take(self, answer: Fetched) -> tuple[list[tuple[int, int]], int]:
        """Process a response; return its new records and the next position."""
        partition, at_us = answer.partition, self._world.scheduler.now_us
        offsets = answer[2:5]
        if self._seen.get(partition) != offsets:
            self._seen[partition] = offsets
            self._world.history.progress.append(Progress(self.process, partition, *offsets, at_us))
        position = self.positions[partition]
        if not answer.data:
            return [], position
        values, end = visible(answer, position)
        if end > position:
            self.positions[partition] = self.read[partition] = end
            is_new = partition in self._new
            self._new.discard(partition)
            self._world.counts["records read"] += len(values)
            self._world.history.polls.append(
                Poll(
                    self.process, partition, self.isolation_level is IsolationLevel.READ_COMMITTED,
                    position, end, values, at_us, is_new,
                )
            )  # fmt: skip
        return values, end

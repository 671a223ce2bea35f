"""``Reading``: a consumer of the package within a program, and the history of the records that it returns."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from txnkafka.client.client_config import read_config
from txnkafka.client.consumer.consumer_config import ConsumerConfig
from txnkafka.client.consumer.core import ConsumerCore
from txnkafka.client.consumer.membership import ListenerCall
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.testing.simulation.batches import checksum
from txnkafka.testing.simulation.fetch_limits import FetchLimits, broken_limits
from txnkafka.testing.simulation.history import Poll, Progress

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txnkafka.client.consumer.record_reader import RecordReader
    from txnkafka.client.consumer.subscription import AssignedPartition
    from txnkafka.testing.simulation.program import Program

_VALUE: Final = struct.Struct(">qI")
Found = dict[TopicPartition, list[tuple[int, int]]]
"""Offsets and numbers of records."""


class Reading:
    """``ends`` gets the end of the last read of each partition."""

    def __init__(self, program: Program, ends: dict[TopicPartition, int], **settings: Any) -> None:
        random = program.random
        small = random.random() < program.world.swarm.small_fetches
        program.world.counts["small fetch"] += small
        drawn: dict[str, Any] = {
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.min.bytes": 1 if small else random.choice((1, 1, 300)),
            "fetch.max.wait.ms": random.choice((10, 100, 100)),
            "fetch.max.bytes": random.choice((1, 300, 1_000)) if small else 16_384,
            "max.partition.fetch.bytes": random.choice((200, 4_096)),
            "metadata.max.age.ms": random.choice((500, 300_000)),
            "default.api.timeout.ms": 3_000,
        }
        if drawn["fetch.min.bytes"] > 1:  # otherwise each Fetch of a partition waits for others
            drawn["max.partition.fetch.bytes"] = 4_096
        config = read_config(ConsumerConfig, program.settings(**{**drawn, **settings}))
        self.core = ConsumerCore(program.transport(), config, None, None)
        self._program = program
        self._world = program.world
        self._ends = ends
        self._new: set[TopicPartition] = set()  # partitions after a seek or lookup
        self._states: dict[TopicPartition, AssignedPartition] = {}
        self._seen: dict[TopicPartition, tuple[int, int, int]] = {}

    async def poll(self, limit: int, timeout_ms: int) -> Found:
        """Return the next records; the calls of the listener are made on the way."""
        found: Found = {}

        def read(reader: RecordReader) -> list[int]:
            found.clear()
            return self._read(reader, limit, found)

        while isinstance(call := await self.core.poll(read, timeout_ms), ListenerCall):
            self.core.called(call)
        return found

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Set the position of a partition that is still assigned."""
        if partition in self.core.subscription.assigned:
            self.core.seek(partition, offset)
            self._new.add(partition)

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The positions of the assigned partitions."""
        return {key: offset for key, (offset, _) in self.core.subscription.positions().items()}

    def _read(self, reader: RecordReader, limit: int, found: Found) -> list[int]:
        """Take records, and keep how far that has moved each position."""
        assigned = self.core.subscription.assigned
        before = [(key, state, state.position) for key, state in assigned.items() if state.place is None]
        for partition, state in assigned.items():
            if state.place is not None or self._states.get(partition) is not state:
                self._states[partition] = state
                self._new.add(partition)
        numbers = []
        try:
            for record in reader.records(limit):
                partition = TopicPartition(record.topic, record.partition)
                number, check = _VALUE.unpack(record.value)
                if checksum(number, *partition) != check:
                    raise ValueError(f"{partition}: offset {record.offset} has a record of another partition")
                found.setdefault(partition, []).append((record.offset, number))
                numbers.append(number)
        finally:
            for partition, state, position in before:
                self._moved(partition, position, state.position, found.get(partition, []))
        self._world.counts["records read"] += len(numbers)
        return numbers

    def _moved(
        self, partition: TopicPartition, position: int, end: int, values: list[tuple[int, int]]
    ) -> None:
        if end == position and not values:
            return
        is_new = partition in self._new
        self._new.discard(partition)
        self._ends[partition] = end
        self._world.history.polls.append(
            Poll(
                self._program.name, partition, bool(self.core.config.isolation), position, end, values,
                self._world.scheduler.now_us, is_new,
            )
        )  # fmt: skip

    def fetched(self, message: Any, response: Any, sent_us: int) -> None:
        """Check the limits of a Fetch, and keep the offsets of the logs in its response."""
        world, names = self._world, self.core.cluster.names
        if not response.error_code:
            self._check_limits(message, response, sent_us)
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id)
            if name is None:
                continue
            for data in topic.partitions:
                if data.error_code:
                    code = ErrorCode.of(data.error_code)
                    world.counts[f"Fetch: {code.name}"] += 1
                    world.counts["offset out of range"] += code is ErrorCode.OFFSET_OUT_OF_RANGE
                    continue
                partition = TopicPartition(name, data.partition_index)
                offsets = data.high_watermark, data.last_stable_offset, data.log_start_offset
                if self._seen.get(partition) != offsets and data.last_stable_offset >= 0:
                    self._seen[partition] = offsets
                    world.history.progress.append(
                        Progress(self._program.name, partition, *offsets, world.scheduler.now_us)
                    )

    def _check_limits(self, message: Any, response: Any, sent_us: int) -> None:
        world, most = self._world, self.core.config.max_partition_fetch_bytes
        rows = [row for topic in response.responses for row in topic.partitions]
        rows.sort(key=lambda row: -len(row.records or b""))  # the response groups by topic: any was the first
        broken = broken_limits(
            FetchLimits(message.max_bytes, most, message.min_bytes, message.max_wait_ms),
            [(f"partition {row.partition_index}", memoryview(row.records or b"")) for row in rows],
            world.scheduler.now_us - sent_us,
            has_errors=any(row.error_code or row.diverging_epoch.epoch >= 0 for row in rows),
        )
        world.complaints.extend(f"fetch of {self._program.name}: {each}" for each in broken)


def all_partitions(topics: Iterable[Any]) -> list[TopicPartition]:
    """Return the partitions of topics."""
    return [TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)]

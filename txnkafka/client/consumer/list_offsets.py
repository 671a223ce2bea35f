"""Lookups of offsets by time, and of the first and last offset, at the leaders (ListOffsets).

Source: ``OffsetFetcher``, ``OffsetsRequestManager``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError, error_for
from txnkafka.model import TopicPartition
from txnkafka.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txnkafka.client.cluster import Cluster
    from txnkafka.wire.messages.list_offsets import ListOffsetsResponse

LATEST: Final = -1
EARLIEST: Final = -2
"""The timestamps that mean the end and the beginning of a log."""


class OffsetAndTimestamp(NamedTuple):
    """The first record at a time or later: its offset, its timestamp in milliseconds, and the epoch of its
    leader, None if it is unknown."""

    offset: int
    timestamp: int
    leader_epoch: int | None = None


class OffsetLookup:
    """``isolation`` is that of requests: for read_committed the end is the last stable offset."""

    def __init__(self, cluster: Cluster, isolation: int) -> None:
        self._cluster = cluster
        self._isolation = isolation

    async def all(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Look up an offset in each partition, with retries; a time after the last record gives offset -1.
        Raises KafkaTimeoutError, and errors that do not pass."""
        left = dict(timestamps)
        found: dict[TopicPartition, OffsetAndTimestamp] = {}

        async def attempt() -> None:
            some, errors = await self.some(left)
            found.update(some)
            for partition in some:
                del left[partition]
            if errors:
                fatal = (each for each in errors.values() if not each.retriable)
                raise next(fatal, next(iter(errors.values())))

        names = ", ".join(sorted(map(str, timestamps)))
        await self._cluster.retried(attempt, timeout_ms, f"the lookup of offsets of {names}")
        return {partition: found[partition] for partition in timestamps}

    async def some(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, OffsetAndTimestamp], dict[TopicPartition, KafkaError]]:
        """Look up once. Returns the offsets that were found, and the errors of the other partitions."""
        by_node: dict[int, dict[TopicPartition, int]] = {}
        errors: dict[TopicPartition, KafkaError] = {}
        for partition, timestamp in timestamps.items():
            try:
                node_id = (await self._cluster.leader(partition)).node.node_id
            except KafkaError as error:
                errors[partition] = error
            else:
                by_node.setdefault(node_id, {})[partition] = timestamp
        found: dict[TopicPartition, OffsetAndTimestamp] = {}
        spawn = self._cluster.reactor.spawn
        tasks = [(wanted, spawn(self._ask(node_id, wanted))) for node_id, wanted in by_node.items()]
        for wanted, task in tasks:
            try:
                some, failed = await task
            except KafkaError as error:
                some, failed = {}, dict.fromkeys(wanted, error)
            found.update(some)
            errors.update(failed)
        return found, errors

    async def _ask(
        self, node_id: int, wanted: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, OffsetAndTimestamp], dict[TopicPartition, KafkaError]]:
        cluster = self._cluster
        connection = await cluster.connection(node_id)
        version = connection.versions.pick("ListOffsets", at_least=2 if self._isolation else 1)
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for partition, timestamp in wanted.items():
            row = ListOffsetsPartition(
                partition_index=partition.partition,
                current_leader_epoch=self._leader_epoch(partition),
                timestamp=timestamp,
            )
            topics.setdefault(partition.topic, []).append(row)
        message = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=self._isolation,
            topics=tuple(
                ListOffsetsTopic(name=name, partitions=tuple(rows)) for name, rows in topics.items()
            ),
            timeout_ms=cluster.config.request_timeout_ms,
        )
        return _read(await cluster.request(connection, "ListOffsets", version, message), wanted)

    def _leader_epoch(self, partition: TopicPartition) -> int:
        """Return the epoch of the leader, -1 if the metadata have lost the partition meanwhile."""
        topic = self._cluster.topics.get(partition.topic)
        found = None if topic is None else topic.partitions.get(partition.partition)
        return -1 if found is None else found.leader_epoch


def _read(
    response: ListOffsetsResponse, wanted: Mapping[TopicPartition, int]
) -> tuple[dict[TopicPartition, OffsetAndTimestamp], dict[TopicPartition, KafkaError]]:
    found: dict[TopicPartition, OffsetAndTimestamp] = {}
    errors: dict[TopicPartition, KafkaError] = {}
    for topic in response.topics:
        for row in topic.partitions:
            partition = TopicPartition(topic.name, row.partition_index)
            code = ErrorCode.of(row.error_code)
            if code != ErrorCode.NONE:
                errors[partition] = error_for(code, f"{partition}: {code.name}")
            elif partition in wanted:
                epoch = None if row.leader_epoch < 0 else row.leader_epoch
                found[partition] = OffsetAndTimestamp(row.offset, row.timestamp, epoch)
    for partition in wanted:
        if partition not in found and partition not in errors:
            errors[partition] = error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{partition}: no answer")
    return found, errors

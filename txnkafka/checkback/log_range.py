"""Reads a range of offsets of one partition, as a coroutine beside a producer's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from txnkafka._core.consumer_record import ConsumerRecord, consumer_records
from txnkafka.client.consumer.fetched_data import FetchedData
from txnkafka.client.consumer.list_offsets import EARLIEST, LATEST, OffsetLookup
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaTimeoutError, error_for
from txnkafka.record.batch import header_key
from txnkafka.record.chunk import ChunkDecoder
from txnkafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from txnkafka.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from txnkafka.client.cluster import Cluster
    from txnkafka.model import TopicPartition
    from txnkafka.wire.messages.fetch import PartitionData

_FIRST_WITH_IDS: Final = 13
_LAST_WITH_NAMES: Final = 12
_MOST_BYTES: Final = 1 << 20
_WAIT_MS: Final = 200


class LogRange:
    """Reads partitions. ``is_committed``: as a read_committed consumer, which stops at the last stable
    offset."""

    def __init__(self, cluster: Cluster, *, is_committed: bool) -> None:
        self._cluster = cluster
        self._isolation = int(is_committed)

    async def limits(self, partition: TopicPartition) -> tuple[int, int]:
        """Return the first offset, and the offset after the last record that can be read."""
        lookup = OffsetLookup(self._cluster, self._isolation)
        limit_ms = self._cluster.config.request_timeout_ms
        first = await lookup.all({partition: EARLIEST}, limit_ms)
        end = await lookup.all({partition: LATEST}, limit_ms)
        return first[partition].offset, end[partition].offset

    async def records(
        self, partition: TopicPartition, start: int, stop: int
    ) -> AsyncIterator[list[ConsumerRecord]]:
        """Yield the records of offsets ``start`` to ``stop`` - 1, in lists. Waits for records that cannot be
        read yet. Raises KafkaTimeoutError if nothing new came for ``request.timeout.ms``, and the error of
        the broker."""
        cluster, position = self._cluster, start
        decoder = ChunkDecoder(headers=True)
        limit_ms = cluster.config.request_timeout_ms
        last_ms = cluster.reactor.now_ms()
        while position < stop:
            answer = await cluster.retried(
                partial(self._fetch, partition, position), limit_ms, f"the read of {partition}"
            )
            data = FetchedData(position, -1, answer, is_committed=bool(self._isolation))
            if data.end_offset > position:
                for columns in decoder.chunks(data.batches(position, stop)):
                    yield consumer_records(
                        columns, partition.topic, partition.partition, 0, len(columns), header_key=header_key
                    )
                position, last_ms = data.end_offset, cluster.reactor.now_ms()
            if data.damage is not None:
                raise data.damage
            if position < stop and cluster.reactor.now_ms() - last_ms > limit_ms:
                raise KafkaTimeoutError(
                    f"{partition}: offset {position} could not be read within request.timeout.ms "
                    f"({limit_ms}): a transaction of the resolver may be open; retry later"
                )

    async def _fetch(self, partition: TopicPartition, offset: int) -> PartitionData:
        cluster = self._cluster
        connection = await cluster.leader(partition)
        topic = cluster.topics[partition.topic]
        version = connection.versions.pick("Fetch", at_least=4)
        has_ids = version >= _FIRST_WITH_IDS and topic.topic_id != ZERO_UUID
        if version >= _FIRST_WITH_IDS and not has_ids:
            version = connection.versions.pick("Fetch", at_most=_LAST_WITH_NAMES, at_least=4)
        wanted = FetchPartition(
            partition=partition.partition,
            current_leader_epoch=topic.partitions[partition.partition].leader_epoch,
            fetch_offset=offset,
            partition_max_bytes=_MOST_BYTES,
        )
        name = {"topic_id": topic.topic_id} if has_ids else {"topic": partition.topic}
        message = FetchRequest(
            max_wait_ms=_WAIT_MS, min_bytes=1, max_bytes=_MOST_BYTES, isolation_level=self._isolation,
            topics=(FetchTopic(**name, partitions=(wanted,)),),
        )  # fmt: skip
        response = await cluster.request(connection, "Fetch", version, message)
        rows = [row for each in response.responses for row in each.partitions]
        code = ErrorCode.of(response.error_code or (rows[0].error_code if rows else 0))
        if code != ErrorCode.NONE or not rows:
            raise error_for(code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{partition}: {code.name}")
        answer: PartitionData = rows[0]
        return answer

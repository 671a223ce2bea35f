"""``RangeFetch``: requests the batches of a fixed range of offsets from the leader of its partition.

A range ends at or below the offset that readers of its isolation level get, so a broker has all of it, and
nothing waits for new records. Its last offsets may be markers, or compacted: then the range ends without
records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.client.consumer.fetched_data import FetchedData
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import NetworkError, OffsetOutOfRangeError, error_for
from txnkafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from txnkafka.wire.schema import ZERO_UUID

if TYPE_CHECKING:
    from txnkafka.client.cluster import Cluster
    from txnkafka.spark.broker.source_config import SourceConfig
    from txnkafka.spark.log_bounds import OffsetRange

_FIRST_WITH_IDS: Final = 13
_WITHOUT_SESSION: Final = -1  # an epoch


class RangeFetch:
    """Runs under the lock of the cluster's reactor."""

    def __init__(self, cluster: Cluster, config: SourceConfig, part: OffsetRange, *, committed: bool) -> None:
        self._cluster = cluster
        self._config = config
        self._part = part
        self._committed = committed

    async def at(self, offset: int) -> FetchedData | None:
        """Return the batches from an offset of the range on; None if no record is left. Raises
        OffsetOutOfRangeError, KafkaTimeoutError, and errors of the broker that do not pass."""

        async def attempt() -> FetchedData | None:
            return await self._fetch(offset)

        name = self._part.topic_partition
        what = f"the fetch of offset {offset} of {name}"
        return await self._cluster.retried(attempt, self._config.default_api_timeout_ms, what)

    async def _fetch(self, offset: int) -> FetchedData | None:
        cluster, name = self._cluster, self._part.topic_partition
        connection = await cluster.leader(name)
        topic = await cluster.topic(name.topic)
        has_id = topic.topic_id != ZERO_UUID
        limit = 1 << 15 if has_id else _FIRST_WITH_IDS - 1
        version = connection.versions.pick("Fetch", at_most=limit, at_least=4)
        key = {"topic_id": topic.topic_id} if version >= _FIRST_WITH_IDS else {"topic": name.topic}
        size = self._config.max_partition_fetch_bytes
        wanted = FetchPartition(
            partition=name.partition,
            current_leader_epoch=topic.partitions[name.partition].leader_epoch,
            fetch_offset=offset,
            partition_max_bytes=size,
        )
        message = FetchRequest(
            max_wait_ms=self._config.fetch_max_wait_ms,
            min_bytes=1,
            max_bytes=size,
            isolation_level=int(self._committed),
            session_epoch=_WITHOUT_SESSION,
            topics=(FetchTopic(**key, partitions=(wanted,)),),
        )
        return self._data(offset, await cluster.request(connection, "Fetch", version, message))

    def _data(self, offset: int, response: Any) -> FetchedData | None:
        name = self._part.topic_partition
        if response.error_code:
            raise error_for(response.error_code, f"{name}: {ErrorCode.of(response.error_code).name}")
        rows = [each for topic in response.responses for each in topic.partitions]
        if len(rows) != 1:
            raise NetworkError(f"{name}: the response to Fetch does not have the partition")
        (data,) = rows
        code = ErrorCode.of(data.error_code)
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise OffsetOutOfRangeError(
                f"{name}: offset {offset} is not in the log; offsets {self._part.start} to "
                f"{self._part.end - 1} were to be read"
            )
        if code != ErrorCode.NONE:
            raise error_for(code, f"{name}: {code.name}")
        if data.records:
            return FetchedData(offset, -1, data, is_committed=self._committed)
        end = data.last_stable_offset if self._committed else data.high_watermark
        if end >= self._part.end:
            return None
        # a new leader may not know yet how far its log may be read
        code = ErrorCode.OFFSET_NOT_AVAILABLE
        raise error_for(code, f"{name} can be read up to offset {end}, not up to {self._part.end}")

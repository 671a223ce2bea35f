"""``SourceClient``: the client of the source, in the driver for offsets, in the executors for records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from txnkafka.client.admin.transactions import TransactionCalls
from txnkafka.client.client import Client
from txnkafka.client.cluster import Cluster
from txnkafka.client.consumer.list_offsets import EARLIEST, LATEST, OffsetLookup
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import error_for
from txnkafka.model import TopicPartition
from txnkafka.spark.broker.range_fetch import RangeFetch
from txnkafka.spark.broker.source_config import SourceConfig
from txnkafka.spark.log_bounds import LogBounds, OffsetRange

if TYPE_CHECKING:
    from txnkafka.client.admin.transaction_types import ProducerState, TransactionDescription
    from txnkafka.client.consumer.fetched_data import FetchedData


class SourceClient(Client[SourceConfig]):
    """Calls wait for the result, with retries up to ``default.api.timeout.ms``, and raise KafkaTimeoutError
    and the errors of the brokers that do not pass."""

    kind = "source"
    config_class = SourceConfig

    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__(settings)
        self._cluster = Cluster(self._transport, self.config, allow_auto_creation=False)
        self._lookups = [OffsetLookup(self._cluster, isolation) for isolation in (0, 1)]
        self._transactions = TransactionCalls(self._cluster, self.config)

    def partitions(self, topics: Iterable[str] | None) -> list[TopicPartition]:
        """Return the existing partitions of these topics, or of all topics."""
        if topics is None:
            self._cluster.wants_all = True
        else:
            self._cluster.want(topics)
        self._reactor.run(self._refreshed())
        for topic, code in self._cluster.errors.items():
            if code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
                raise error_for(code, f"topic {topic}: {code.name}")
        return [
            TopicPartition(name, number)
            for name, topic in self._cluster.topics.items()
            for number in topic.partitions
        ]

    def bounds(self, names: Iterable[TopicPartition], *, committed: bool) -> dict[TopicPartition, LogBounds]:
        """Return the offsets of partitions, as they are now."""
        names = list(names)
        starts = self.offsets(dict.fromkeys(names, EARLIEST), committed=False)
        log_ends = self.offsets(dict.fromkeys(names, LATEST), committed=False)
        ends = self.offsets(dict.fromkeys(names, LATEST), committed=True) if committed else log_ends
        topics = self._cluster.topics
        return {
            name: LogBounds(
                starts[name],
                ends[name],
                max(log_ends[name], ends[name]),  # the log may have grown between the two requests
                topic_id=topics[name.topic].topic_id if name.topic in topics else None,
            )
            for name in names
        }

    def offsets(
        self, timestamps: Mapping[TopicPartition, int], *, committed: bool
    ) -> dict[TopicPartition, int]:
        """Return the offsets of ListOffsets: of the first record at a time in milliseconds or later, or -1;
        and for ``EARLIEST`` and ``LATEST``."""
        if not timestamps:
            return {}
        found = self._reactor.run(self._lookups[committed].all(timestamps, self._timeout_ms))
        return {name: each.offset for name, each in found.items()}

    def fetch(self, part: OffsetRange, *, committed: bool) -> Iterator[FetchedData]:
        """Yield the batches of a range, response by response. The next response is requested while the caller
        uses one. Raises OffsetOutOfRangeError if the offsets were deleted."""
        reactor = self._reactor
        fetch = RangeFetch(self._cluster, self.config, part, committed=committed)
        with reactor:
            coming = reactor.spawn(fetch.at(part.start))
        while (data := reactor.wait(coming)) is not None:
            if data.end_offset < part.end and data.damage is None:
                with reactor:
                    coming = reactor.spawn(fetch.at(data.end_offset))
            yield data
            if data.damage is not None:
                raise data.damage
            if data.end_offset >= part.end:
                return

    def producers(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        """Return the producers of partitions, with their open transactions."""
        return self._reactor.run(self._transactions.describe_producers(names))

    def transactions(self, producer_ids: Iterable[int]) -> dict[int, TransactionDescription]:
        """Return the transactions of producers, as their coordinators know them."""

        async def described() -> dict[int, TransactionDescription]:
            listed = await self._transactions.list_transactions(producer_ids=producer_ids)
            ids = [each.transactional_id for each in listed]
            found = await self._transactions.describe_transactions(ids)
            return {each.producer_id: each for each in found.values()}

        return self._reactor.run(described())

    async def _refreshed(self) -> None:
        await self._cluster.retried(self._cluster.refresh, self._timeout_ms, "the lookup of topics")

    @property
    def _timeout_ms(self) -> int:
        return self.config.default_api_timeout_ms

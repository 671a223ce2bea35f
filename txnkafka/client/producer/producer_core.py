"""``ProducerCore``: the producer without threads. Its methods are called under the reactor's lock."""

from __future__ import annotations

import logging
from operator import index
from typing import TYPE_CHECKING, Any, Final

from txnkafka._core.key_partition import partition_of
from txnkafka._core.record_list import RecordAppender
from txnkafka.client.cluster import Cluster
from txnkafka.client.producer.accumulator import Accumulator, TopicBatches
from txnkafka.client.producer.columns import by_partition, key_partitions
from txnkafka.client.producer.sender import Sender
from txnkafka.client.producer.sent_batches import SentBatches
from txnkafka.client.producer.transactions import ProducerTransactions
from txnkafka.client.producer.txn_manager import TransactionManager
from txnkafka.client.producer.txn_requests import TxnRequests
from txnkafka.client.producer.txn_state import State
from txnkafka.env import SystemClock, this_process
from txnkafka.errors import (
    BufferExhaustedError,
    ClosedError,
    KafkaError,
    KafkaTimeoutError,
    UnknownTopicOrPartitionError,
)
from txnkafka.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from txnkafka._core.record_list import RecordFuture
    from txnkafka.client.cluster import Partition
    from txnkafka.client.producer.batch_content import Content
    from txnkafka.client.producer.columns import SendColumns
    from txnkafka.client.producer.producer_batch import ProducerBatch
    from txnkafka.client.producer.producer_config import ProducerConfig
    from txnkafka.client.producer.record_metadata import RecordMetadata
    from txnkafka.client.promise import Task
    from txnkafka.client.transport import Transport

_LARGEST_BATCH: Final = 1 << 20  # max.message.bytes of a topic is a little more
LOG = logging.getLogger("txnkafka.client")


class ProducerCore(ProducerTransactions):
    """``topics`` has the topics that were looked up."""

    def __init__(self, transport: Transport, config: ProducerConfig) -> None:
        self.config = config
        self.reactor = transport.reactor
        self.cluster = Cluster(transport, config)
        self.topics: dict[str, TopicBatches] = {}
        clock = self.reactor.clock
        self.appender = RecordAppender(
            self.topics, this_process(), None if type(clock) is SystemClock else clock.now_ms,
            accepts=config.transactional_id is None, hashes=not config.partitioner_ignore_keys,
        )  # fmt: skip
        self.is_closed = False
        self._pending: tuple[str, Task[None]] | None = None
        self.txn: TransactionManager | None = None
        if config.is_idempotent:
            self.txn = TransactionManager(config.transactional_id, self._changed)
        self.sender = Sender(self.cluster, config, self.txn)
        self.accumulator = Accumulator(self.reactor, config, self.sender.wake, self._opened)
        self.sender.accumulator = self.accumulator
        self.sender.on_metadata = self._count_partitions
        if self.txn is not None:
            self._requests = self.sender.requests = TxnRequests(
                self.cluster, self.txn, config.transaction_ms, self.sender.drained,
                two_phase=config.transaction_two_phase_commit_enable,
            )  # fmt: skip

    # Records

    async def send(
        self, topic: str, key: Any, value: Any, *, partition: int | None, timestamp: int | None, headers: Any
    ) -> RecordFuture[RecordMetadata]:
        """Add a record to its batch; wait for metadata and memory, at most ``max.block.ms``."""
        if timestamp is None:
            timestamp = self.reactor.clock.now_ms()
        if headers is not None:
            headers = tuple(headers)
        if partition is not None:
            partition = index(partition)

        def add() -> RecordFuture[RecordMetadata] | None:
            batches = self.topics[topic]
            number = self._partition(batches, key, partition)
            return self.accumulator.add(batches, number, key, value, timestamp=timestamp, headers=headers)

        future: RecordFuture[RecordMetadata] = await self._added(topic, partition, add)
        return future

    async def send_columns(
        self, topic: str, columns: SendColumns, partition: int | None, partitions: memoryview | None
    ) -> SentBatches:
        """Cut columns into batches of up to ``max.request.size``, and add these."""
        self.check_send()
        if not self._knows(topic, partition):
            await self._look_up(topic, partition)
        count = self.topics[topic].count
        parts: Sequence[tuple[int | None, int, int]] = [(partition, 0, columns.count)]
        has_keys = columns.keys is not None and not self.config.partitioner_ignore_keys
        if partition is None and (partitions is not None or has_keys):
            if partitions is None:
                partitions = key_partitions(columns, count, self.topics[topic].sticky.number)
            columns, parts = by_partition(columns, partitions, count)
        source = columns.input()
        limit = max(self.config.batch_size, min(self.config.max_request_size, _LARGEST_BATCH))
        contents = [
            (number, content)
            for number, start, stop in parts
            for content in columns.cut(source, start, stop, limit)
        ]
        batches = [await self.send_content(topic, number, content) for number, content in contents]
        return SentBatches(self.reactor, batches)

    async def send_batch(self, topic: str, partition: int, content: Content) -> SentBatches:
        """Add a finished batch."""
        self.accumulator.check_size(content.size, TopicPartition(topic, partition))
        return SentBatches(self.reactor, [await self.send_content(topic, partition, content)])

    async def send_content(self, topic: str, number: int | None, content: Content) -> ProducerBatch:
        """Add a whole batch, by default to the partition that records without keys go to."""

        def add() -> ProducerBatch | None:
            batches = self.topics[topic]
            to = batches.sticky.number if number is None else number
            batch = self.accumulator.add_content(batches, to, content)
            if batch is not None and number is None:
                batches.sticky.filled(content.size)
            return batch

        batch: ProducerBatch = await self._added(topic, number, add)
        return batch

    async def _added(self, topic: str, partition: int | None, add: Callable[[], Any]) -> Any:
        """Return the result of ``add``, once it is not None."""
        until_ms = self.reactor.now_ms() + self.config.max_block_ms
        self.check_send()
        try:
            if not self._knows(topic, partition):
                await self._look_up(topic, partition)
            while (added := add()) is None:
                waiting = self.reactor.spawn(self.accumulator.room())
                await self.reactor.first(waiting, until_ms - self.reactor.now_ms())
                if not waiting.is_done:
                    raise BufferExhaustedError(
                        f"the records that wait fill buffer.memory ({self.config.buffer_memory}), and no "
                        f"room came within max.block.ms ({self.config.max_block_ms})"
                    )
                self.check_send()
        except KafkaError as error:
            if self.txn is not None and self.txn.state is State.IN_TRANSACTION:
                self.txn.fail_batch(error)
            raise
        return added

    def check_send(self) -> None:
        """Raise ClosedError, IllegalStateError, or the error of the producer, unless it takes records."""
        self.check_open()
        if self.txn is not None:
            self.txn.check()
            self._check_pending("send")
            if self.txn.is_transactional:
                self.txn.check_in_transaction("send")

    async def partitions_for(self, topic: str) -> list[Partition]:
        """Return the partitions of a topic."""
        self.check_open()
        await self._look_up(topic, None)
        return list(self.cluster.topics[topic].partitions.values())

    async def flush(self, timeout_ms: float | None) -> None:
        """Send all records, and wait for their results."""
        self.check_open()
        waiting = self.reactor.spawn(self.sender.drained())
        if timeout_ms is None:
            await waiting
        else:
            await self.reactor.first(waiting, int(timeout_ms))
            if not waiting.is_done:
                count = len(self.accumulator.incomplete)
                raise KafkaTimeoutError(f"{count} batches were not acknowledged within {timeout_ms:.0f} ms")

    async def close(self, timeout_ms: float | None) -> None:
        """Send what waits, abort an open transaction that is not prepared, and stop."""
        if self.is_closed:
            return
        self.is_closed, self.accepts = True, False
        finishing = self.reactor.spawn(self._finish())
        if timeout_ms is None:
            await finishing
        else:
            await self.reactor.first(finishing, int(timeout_ms))
        error = ClosedError(f"the producer {self.config.client_id!r} was closed before the records were sent")
        finishing.cancel(error)
        self.sender.close(error)

    async def _finish(self) -> None:
        txn = self.txn
        try:
            await self.sender.drained()
            if self._pending is not None:
                await self._in_time(*self._pending)
            if txn is not None and txn.state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR):
                LOG.warning("%s is closed within a transaction, which is aborted", txn.name)
                txn.new_partitions.clear()
                txn.transition(State.ABORTING_TRANSACTION)
                ending = self.reactor.spawn(self._requests.end(commit=False))
                await self._in_time("the abort", ending)
        except KafkaError as error:
            LOG.info("while the producer %r was closed: %s", self.config.client_id, error)

    def _opened(self, partition: TopicPartition) -> None:
        if self.txn is not None:
            self.txn.add_partition(partition)

    def _partition(self, batches: TopicBatches, key: Any, partition: int | None) -> int:
        if partition is not None:
            return partition
        if key is None or self.config.partitioner_ignore_keys:
            return batches.sticky.number
        return partition_of(key, batches.count)

    def _knows(self, topic: str, partition: int | None) -> bool:
        batches = self.topics.get(topic)
        return batches is not None and (partition is None or 0 <= partition < batches.count)

    async def _look_up(self, topic: str, partition: int | None) -> None:
        """Look up a topic, which a broker may create. Raises UnknownTopicOrPartitionError for a
        partition that it does not have."""
        cluster, limit = self.cluster, self.config.max_block_ms
        if topic in self.topics:
            await cluster.refresh()
        found = await cluster.retried(lambda: cluster.topic(topic), limit, f"the lookup of topic {topic}")
        if topic not in self.topics:
            config = self.config
            self.topics[topic] = TopicBatches(
                topic, len(found.partitions), config.batch_size, self._available,
                adaptive=config.partitioner_adaptive_partitioning_enable,
            )  # fmt: skip
        self._count_partitions()
        if not self._knows(topic, partition):
            raise UnknownTopicOrPartitionError(
                f"{topic} has no partition {partition}: it has 0 to {self.topics[topic].count - 1}"
            )

    def _count_partitions(self) -> None:
        for name, batches in self.topics.items():
            found = self.cluster.topics.get(name)
            if found is not None:
                batches.count = len(found.partitions)

    def _available(self, topic: str) -> Iterable[int]:
        found = self.cluster.topics.get(topic)
        rows = () if found is None else found.partitions.values()
        return [row.number for row in rows if row.leader_id in self.cluster.nodes]

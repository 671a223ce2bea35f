"""``Accumulator``: the batches of a producer, from the first record to the acknowledgement.

Each partition has at most one open batch, which takes records, and a queue of closed batches that wait to be
sent. A batch is closed when it is full, by ``close_all``, and when it can be sent after ``linger.ms``: until
then it takes more records.
Source: ``RecordAccumulator``, ``BufferPool``.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from txnkafka._core.record_list import RecordList, record_size
from txnkafka.client.producer.batch_content import Records
from txnkafka.client.producer.partitioner import StickyPartition
from txnkafka.client.producer.producer_batch import ProducerBatch
from txnkafka.client.promise import Promise
from txnkafka.errors import KafkaError, MessageTooLargeError
from txnkafka.model import NO_SEQUENCE, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from txnkafka._core.record_list import RecordFuture
    from txnkafka.client.producer.batch_content import Content
    from txnkafka.client.producer.producer_config import ProducerConfig
    from txnkafka.client.producer.record_metadata import RecordMetadata
    from txnkafka.client.reactor import Reactor, Timer


class PartitionQueue:
    """The batches of one partition. ``closed`` is in the order of the records. ``is_due``: the open batch has
    waited ``linger.ms``. ``stale_at``: the leader of that number of metadata changes is not the leader."""

    __slots__ = ("closed", "is_due", "is_muted", "open", "partition", "stale_at", "topic")

    def __init__(self, topic: TopicBatches, number: int) -> None:
        self.topic = topic
        self.partition = TopicPartition(topic.name, number)
        self.open: ProducerBatch | None = None
        self.closed: deque[ProducerBatch] = deque()
        self.is_due = False
        self.stale_at = -1
        self.is_muted = False  # while a batch is sent, if only one request may be in flight


class TopicBatches:
    """The batches of one topic, and the choice of partitions for its records. ``open`` has the lists of the
    open batches by partition."""

    __slots__ = ("count", "name", "open", "queues", "sticky")

    def __init__(
        self,
        name: str,
        count: int,
        batch_size: int,
        available: Callable[[str], Iterable[int]],
        *,
        adaptive: bool,
    ) -> None:
        self.name = name
        self.count = count
        self.open: dict[int, RecordList] = {}
        self.queues: dict[int, PartitionQueue] = {}

        def lengths() -> list[tuple[int, int]]:
            numbers = list(available(name)) or range(self.count)
            found = ((number, self.queues.get(number)) for number in numbers)
            return [(number, len(queue.closed) if adaptive and queue else 0) for number, queue in found]

        self.sticky = StickyPartition(batch_size, lengths)

    def queue(self, number: int) -> PartitionQueue:
        """Return the queue of a partition."""
        found = self.queues.get(number)
        if found is None:
            found = self.queues[number] = PartitionQueue(self, number)
        return found


class Accumulator:
    """``on_ready`` is called when a batch was closed, ``on_open`` with the partition of a new batch.
    ``incomplete`` has all batches without a final result, in the order of their creation."""

    def __init__(
        self, reactor: Reactor, config: ProducerConfig, on_ready: Callable[[], None],
        on_open: Callable[[TopicPartition], None],
    ) -> None:  # fmt: skip
        self.reactor = reactor
        self.batch_size = max(1, config.batch_size)
        self.linger_ms = config.linger_ms
        self.ready: dict[PartitionQueue, None] = {}
        self.incomplete: dict[ProducerBatch, None] = {}
        self._max_size = config.max_request_size
        self._memory = config.buffer_memory
        self._free = config.buffer_memory
        self._on_ready = on_ready
        self._on_open = on_open
        self._open: dict[PartitionQueue, None] = {}  # with open batches, the oldest first
        self._timer: Timer | None = None
        self._waiters: deque[Promise[None]] = deque()

    # Records

    def add(
        self, topic: TopicBatches, number: int, key: Any, value: Any, *, timestamp: int, headers: Any
    ) -> RecordFuture[RecordMetadata] | None:
        """Add a record to the open batch of a partition, or to a new one; None while memory is full.
        Raises MessageTooLargeError, and TypeError and ValueError for wrong records."""
        queue = topic.queue(number)
        if queue.open is not None:
            future = topic.open[number].add(key, value, timestamp, headers)
            if future is not None:
                return future
        size = record_size(key, value, headers)
        self.check_size(size, queue.partition)
        if not self._reserve(max(size, self.batch_size)):
            return None
        if queue.open is not None:
            self._close(queue)
        records = self._opened(queue, max(size, self.batch_size))
        return records.add(key, value, timestamp, headers)

    def add_content(self, topic: TopicBatches, number: int, content: Content) -> ProducerBatch | None:
        """Add a whole batch to a partition, after the records that it has; None while memory is full."""
        queue = topic.queue(number)
        if not self._reserve(content.size):
            return None
        if queue.open is not None:
            self._close(queue)
        batch = ProducerBatch(queue.partition, self.reactor, self.reactor.now_ms(), content)
        self._track(batch, content.size)
        self._on_open(queue.partition)
        queue.closed.append(batch)
        self._is_ready(queue)
        return batch

    def check_size(self, size: int, partition: TopicPartition) -> None:
        """Raise MessageTooLargeError for a batch that cannot be sent."""
        if size > self._max_size:
            raise MessageTooLargeError(
                f"{partition}: record and batch have {size} bytes; max.request.size is {self._max_size}"
            )
        if size > self._memory:
            raise MessageTooLargeError(
                f"{partition}: record and batch have {size} bytes; buffer.memory is {self._memory}"
            )

    # Memory

    async def room(self) -> None:
        """Send all open batches, and wait until a batch has ended."""
        self.close_all()
        waiter: Promise[None] = Promise()
        self._waiters.append(waiter)
        await waiter

    def _reserve(self, size: int) -> bool:
        size = min(size, self._memory)
        if self._free < size:
            return False
        self._free -= size
        return True

    def _track(self, batch: ProducerBatch, size: int) -> None:
        batch.reserved = min(size, self._memory)
        self.incomplete[batch] = None
        batch.done.on_done(lambda: self._ended(batch))

    def _ended(self, batch: ProducerBatch) -> None:
        self.incomplete.pop(batch, None)
        self._free += batch.reserved
        waiters, self._waiters = self._waiters, deque()
        for waiter in waiters:
            waiter.set(None)

    # Batches

    def _opened(self, queue: PartitionQueue, size: int) -> RecordList:
        now_ms = self.reactor.now_ms()
        batch = queue.open = ProducerBatch(queue.partition, self.reactor, now_ms)
        records = queue.topic.open[queue.partition.partition] = RecordList(batch, self.batch_size)
        self._track(batch, size)
        self._open[queue] = None
        if not self.linger_ms:
            queue.is_due = True
            self._is_ready(queue)
        elif self._timer is None:
            self._timer = self.reactor.call_at(now_ms + self.linger_ms, self._linger_over)
        self._on_open(queue.partition)
        return records

    def _close(self, queue: PartitionQueue) -> None:
        batch, queue.open, queue.is_due = queue.open, None, False
        assert batch is not None
        self._open.pop(queue)
        topic, number = queue.topic, queue.partition.partition
        records = topic.open.pop(number)
        records.is_open = False
        batch.content, batch.count = Records(records), len(records)
        queue.closed.append(batch)
        if topic.sticky.number == number:
            topic.sticky.filled(records.size)
        self._is_ready(queue)

    def _is_ready(self, queue: PartitionQueue) -> None:
        self.ready[queue] = None
        self._on_ready()

    def close_all(self) -> None:
        """Close all open batches."""
        for queue in list(self._open):
            self._close(queue)

    def _linger_over(self) -> None:
        self._timer = None
        now_ms = self.reactor.now_ms()
        for queue in self._open:
            assert queue.open is not None
            if queue.is_due:
                continue
            due_ms = queue.open.created_ms + self.linger_ms
            if due_ms > now_ms:
                self._timer = self.reactor.call_at(due_ms, self._linger_over)
                return
            queue.is_due = True
            self._is_ready(queue)

    # For the sender

    def first(self, queue: PartitionQueue) -> ProducerBatch | None:
        """Return the first batch to send; an open one is closed for it, if it is due."""
        if not queue.closed and queue.is_due:
            self._close(queue)
        return queue.closed[0] if queue.closed else None

    def take(self, queue: PartitionQueue) -> None:
        """Take the first batch from its queue; the other queues of its broker come first next time."""
        queue.closed.popleft()
        del self.ready[queue]
        if queue.closed or queue.is_due:
            self.ready[queue] = None

    def put_back(self, queue: PartitionQueue, batch: ProducerBatch, place: int = 0) -> None:
        """Put a batch back for a retry, at a place of the queue."""
        queue.closed.insert(place, batch)
        self._is_ready(queue)

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Track the parts of a batch instead of the batch."""
        self.incomplete.pop(batch, None)
        for part in parts:
            self._track(part, 0)

    def abort(self, error: KafkaError, *, also_sent: bool) -> None:
        """Fail the batches that were never sent, or all."""
        self.close_all()
        for queue in list(self.ready):
            kept = deque(each for each in queue.closed if _is_numbered(each) and not also_sent)
            queue.closed = kept
            if not kept:
                del self.ready[queue]
        for batch in list(self.incomplete):
            if also_sent or not _is_numbered(batch):
                batch.fail(error)

    def expired(self, before_ms: int) -> list[ProducerBatch]:
        """Return the batches without a result that were created at or before a time."""
        return [
            batch for batch in self.incomplete if batch.created_ms <= before_ms and not batch.done.is_done
        ]

    def remove(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Take a batch that has failed out of its queue."""
        if batch in queue.closed:
            queue.closed.remove(batch)
        if not queue.closed and not queue.is_due:
            self.ready.pop(queue, None)

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _is_numbered(batch: ProducerBatch) -> bool:
    return batch.base_sequence != NO_SEQUENCE

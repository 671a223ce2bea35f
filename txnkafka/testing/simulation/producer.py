"""``Producer``: sends several batches with sequence numbers at once, and retries until all are decided."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from txnkafka.broker.requests import ProduceRequest, ProduceResult
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.testing.simulation import batches
from txnkafka.testing.simulation.client import BACKOFF_US, MOST_ATTEMPTS, RETRIABLE, Client
from txnkafka.testing.simulation.history import Ack
from txnkafka.testing.simulation.network import Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.env import Random
    from txnkafka.testing.simulation.client import Steps, World
    from txnkafka.testing.simulation.history import Send, Topic

SEQUENCES: Final = 2**31
UNANSWERED: Final = ProduceResult(ErrorCode.REQUEST_TIMED_OUT)
IMPLICIT_ADD: Final = 12  # the first version of Produce with transaction version 2
KEYS: Final = [f"k{i:03}".encode() for i in range(8)]


class Outgoing(NamedTuple):
    """A batch and its records."""

    partition: TopicPartition
    sequence: int
    sends: list[Send]
    content: memoryview


class Producer(Client):
    """``producer_id`` and ``producer_epoch`` come from the broker; ``sequences`` are the next ones by
    partition, ``start_sequence`` the first one."""

    transactional_id: str | None = None
    version = 13  # of Produce
    can_be_late = True  # a copy of a request may arrive after later requests
    is_upgraded = False  # in the present epoch, which version 1 requests also have

    def __init__(self, world: World, name: str, random: Random, topics: Sequence[Topic]) -> None:
        self.producer_id = self.producer_epoch = -1
        self.sequences: dict[TopicPartition, int] = {}
        self.start_sequence = 0
        self.may_repeat = False  # see Send
        self._kept = {topic.name for topic in topics if not (topic.is_deletable or topic.loses_old)}
        self._partitions = [
            TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)
        ]
        super().__init__(world, name, random)

    def some_partitions(self) -> list[TopicPartition]:
        """Return at least one partition."""
        count = self.random.randrange(1, min(4, len(self._partitions) + 1))
        return self.random.sample(self._partitions, count)

    def batch(self, partition: TopicPartition, transaction: int) -> Outgoing:
        """Return a new batch, with the next sequence numbers of its partition."""
        random, now_us = self.random, self.world.scheduler.now_us
        count = 1 if random.random() < 0.7 else random.randrange(1, 6)
        keys = random.choices(KEYS, k=count)
        new = self.world.history.send
        return self.batch_of(partition, [new(self.name, partition, key, transaction, now_us) for key in keys])

    def batch_of(self, partition: TopicPartition, sends: list[Send]) -> Outgoing:
        """Return a batch of these records, all of one transaction or of none."""
        world, count = self.world, len(sends)
        topic, number = partition
        for send in sends:
            send.may_repeat = self.may_repeat
        sequence = self.sequences.get(partition, self.start_sequence)
        self.sequences[partition] = (sequence + count) % SEQUENCES
        world.counts["sequence wrapped"] += sequence + count >= SEQUENCES
        content = batches.encode(
            [(send.key, send.number, batches.checksum(send.number, topic, number)) for send in sends],
            timestamp=world.now_ms(), producer_id=self.producer_id, producer_epoch=self.producer_epoch,
            base_sequence=sequence, is_transactional=sends[0].transaction >= 0,
        )  # fmt: skip
        return Outgoing(partition, sequence, sends, content)

    def produce(self, outgoing: Sequence[Outgoing]) -> Steps:
        """Send batches, in order per partition, until each is acknowledged or refused. Returns the first
        error that needs a reaction, or NONE."""
        left = list(outgoing)
        backoff = 1_000  # first backoff of a client after a broken connection
        for _ in range(MOST_ATTEMPTS):
            requests, sent = self._requests(left)
            answers = yield requests
            left, failure = self._judge(sent, answers, requests)
            if failure != ErrorCode.NONE or not left or self.gives_up(left, requests):
                return failure
            yield self.random.randrange(backoff // 2, backoff * 2)
            backoff = BACKOFF_US
        self.world.gave_up += 1
        return ErrorCode.REQUEST_TIMED_OUT

    def gives_up(self, left: list[Outgoing], requests: list[Request]) -> bool:
        """Return True if batches without a response, in the last of these requests, are not retried."""
        return False

    def _requests(self, left: list[Outgoing]) -> tuple[list[Request], list[list[Outgoing]]]:
        """Return requests with at most one batch per partition, in the order of the batches; or one request
        per batch, sent while the coordinator still writes its records for the previous ones."""
        random, requests = self.random, list[Request]()
        if len(left) > 1 and random.random() < 0.3:
            one_by_one = self._mixed(left)
            requests = [self._request([batch]) for batch in one_by_one]
            for request in requests[1:]:
                request.delay_us = 1 + int(random.random() * self.world.swarm.sync_us)
            return requests, [[batch] for batch in one_by_one]
        groups: list[list[Outgoing]] = []
        depth: dict[TopicPartition, int] = {}
        for batch in left:
            at = depth.get(batch.partition, 0)
            depth[batch.partition] = at + 1
            if at == len(groups):
                groups.append([])
            groups[at].append(batch)
        return [self._request(group) for group in groups], groups

    def _mixed(self, left: list[Outgoing]) -> list[Outgoing]:
        """Shuffle the partitions, keeping the order of each partition's batches."""
        order = [batch.partition for batch in left]
        self.random.shuffle(order)
        queues = {partition: deque[Outgoing]() for partition in order}
        for batch in left:
            queues[batch.partition].append(batch)
        return [queues[partition].popleft() for partition in order]

    def _request(self, group: list[Outgoing]) -> Request:
        wanted = {batch.partition: batch.content for batch in group}
        request = ProduceRequest(wanted, self.transactional_id, version=self.version)

        def perform(broker: Any, reply: Any) -> None:
            broker.produce(request, reply)

        return Request("Produce", perform, can_be_late=self.can_be_late)

    def _judge(
        self, sent: list[list[Outgoing]], answers: list[Any], requests: list[Request]
    ) -> tuple[list[Outgoing], ErrorCode]:
        """Return the batches to retry, in order, and the first error that ends the sending."""
        left: list[Outgoing] = []
        waiting: set[TopicPartition] = set()  # partitions with an earlier batch to retry
        failure = ErrorCode.NONE
        for group, answer, request in zip(sent, answers, requests, strict=True):
            for batch in group:
                result = UNANSWERED if answer is None else answer[batch.partition]
                error = result.error
                if error in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                    self._acknowledge(batch, -1 if error else result.base_offset, request)
                    continue
                self.world.counts[f"Produce: {error.name}"] += 1
                is_behind = batch.partition in waiting
                if error in RETRIABLE or (is_behind and error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
                    left.append(batch)
                    waiting.add(batch.partition)
                elif failure == ErrorCode.NONE:
                    failure = error
                    if error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                        self.complain(batch, result)
        return left, failure

    def complain(self, batch: Outgoing, result: ProduceResult) -> None:
        """Record that a batch sent in order was refused as out of order. In transaction version 2, a late
        request cannot be the cause: it has another epoch, and every epoch begins with sequence 0; except in
        the epoch of the upgrade, where a late version 1 request may be."""
        is_kept = batch.partition.topic in self._kept and not self.world.swarm.forgets_producers
        may_be_late = self.is_upgraded and self.world.swarm.has_late_requests
        has_own_epoch = self.version >= IMPLICIT_ADD and not may_be_late
        if is_kept and has_own_epoch and self.transactional_id is not None:
            self.world.complaints.append(f"out-of-order: {self.name} sent it in order: {result.message}")

    def _acknowledge(self, batch: Outgoing, base_offset: int, request: Request) -> None:
        world = self.world
        for i, send in enumerate(batch.sends):
            send.acked_us = world.scheduler.now_us
            send.offset = base_offset + i if base_offset >= 0 else -1
        world.counts["batch acknowledged"] += 1
        if self.transactional_id is not None:
            world.history.acks.append(Ack("Produce", self.producer_id, self.producer_epoch, request.sent_us))

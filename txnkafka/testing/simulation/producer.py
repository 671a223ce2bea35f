"""``Producer``: sends batches with sequence numbers, several at once, again and again until all are
decided."""

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

__all__ = ["SEQUENCES", "Outgoing", "Producer"]

SEQUENCES: Final = 2**31
UNANSWERED: Final = ProduceResult(ErrorCode.REQUEST_TIMED_OUT)
IMPLICIT_ADD: Final = 12  # the first version of Produce with transaction version 2
KEYS: Final = [f"k{i:03}".encode() for i in range(8)]


class Outgoing(NamedTuple):
    """A batch, and the records in it."""

    partition: TopicPartition
    sequence: int
    sends: list[Send]
    content: memoryview


class Producer(Client):
    """``producer_id`` and ``producer_epoch`` as the broker gave them; ``sequences`` are the next ones of each
    partition, ``start_sequence`` where they begin."""

    transactional_id: str | None = None
    version = 13  # of Produce
    can_be_late = True  # a copy of a request may arrive after the next ones
    is_upgraded = False  # in the epoch under way, which requests of version 1 have, too

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
        """One partition at least."""
        count = self.random.randrange(1, min(4, len(self._partitions) + 1))
        return self.random.sample(self._partitions, count)

    def batch(self, partition: TopicPartition, transaction: int) -> Outgoing:
        """A new batch, with the next sequence numbers of its partition."""
        random, now_us = self.random, self.world.scheduler.now_us
        count = 1 if random.random() < 0.7 else random.randrange(1, 6)
        keys = random.choices(KEYS, k=count)
        new = self.world.history.send
        return self.batch_of(partition, [new(self.name, partition, key, transaction, now_us) for key in keys])

    def batch_of(self, partition: TopicPartition, sends: list[Send]) -> Outgoing:
        """A batch of these records, all of one transaction or of none."""
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
        """Send batches, those of one partition in their order, until each is acknowledged or refused. Returns
        the first error that is to be reacted to, or NONE."""
        left = list(outgoing)
        backoff = 1_000  # at first, as a client has it that finds its connection cut
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
        """Whether batches are not sent again that have no answer, of the last of these requests."""
        return False

    def _requests(self, left: list[Outgoing]) -> tuple[list[Request], list[list[Outgoing]]]:
        """Requests with one batch at most of each partition, in the order of the batches; or one of each,
        while the coordinator's records about those before are written."""
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
        """In any order of partitions; the batches of each stay in theirs."""
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
        """What is to be sent again, in order, and the first error that ends this."""
        left: list[Outgoing] = []
        waiting: set[TopicPartition] = set()  # an earlier batch there is sent again
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
        """A batch that was sent in order is refused as if it was not. In transaction version 2 a late request
        cannot be the reason: it has another epoch, and sequence 0 is the first in each; but in the epoch in
        which the producer has gone on from version 1, one of version 1 may."""
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

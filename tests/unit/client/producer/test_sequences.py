"""Sequences and epochs of an idempotent producer: retries, gaps, expired batches, the last epoch."""

from __future__ import annotations

from collections import deque

from tests.unit.client.fakes import Request
from tests.unit.client.producer.fake_broker import held, producer_over, sent, sequences
from txnkafka.client.producer.sequences import Sequences
from txnkafka.model import ProducerIdAndEpoch, TopicPartition
from txnkafka.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

ORDERS = TopicPartition("orders", 0)


def test_batches_keep_their_order_when_the_first_of_them_fails() -> None:
    producer, broker = producer_over(linger_ms=1000)
    producer.send("orders", b"0")
    producer.flush()
    _, answer = held(broker)
    sent(producer, b"1", b"2", b"3")
    broker.failures["Produce"] = deque([19])
    for number in range(3):
        answer(number)  # the first is refused for now, the others are out of order
    assert broker.values("orders") == [b"0"]
    broker.transport.answers["Produce"] = broker.produce
    producer.flush()
    assert broker.values("orders") == [b"0", b"1", b"2", b"3"]
    assert [row[:2] for row in sequences(broker)] == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 1), (0, 2), (0, 3)]


def test_a_repeated_batch_waits_for_those_before_it() -> None:
    producer, broker = producer_over(linger_ms=1000)
    kept, answer = held(broker)
    sent(producer, b"1", b"2")
    first = kept[0]
    kept[1].reply(broker.answer(kept[1], [(ORDERS, 45, -1)]))
    broker.transport.reactor.settle(2000)
    assert len(kept) == 2
    first.reply(broker.produce(first))
    broker.transport.reactor.settle()
    assert len(kept) == 3
    answer(2)
    assert broker.values("orders") == [b"1", b"2"]


def test_new_batches_wait_for_a_repeated_one() -> None:
    producer, broker = producer_over(linger_ms=1000)
    kept, answer = held(broker)
    sent(producer, b"0")
    broker.produce(kept[0])
    kept[0].fail()  # the answer is lost
    sent(producer, *(b"%d" % number for number in range(1, 7)))
    broker.transport.reactor.settle(200)
    assert len(kept) == 2  # the first batch again
    broker.failures["Produce"] = deque([7])
    answer(1)
    broker.transport.reactor.settle(300)
    assert len(kept) == 3
    answer(2)
    assert len(kept) == 8
    broker.transport.answers["Produce"] = broker.produce
    for number in range(3, 8):
        answer(number)
    producer.flush()
    assert broker.values("orders") == [b"%d" % number for number in range(7)]


def test_a_gap_in_the_log_gets_a_new_epoch() -> None:
    producer, broker = producer_over(linger_ms=1000)
    futures = [producer.send("orders", b"1")]
    producer.flush()
    broker.failures["Produce"] = deque([45])
    futures += sent(producer, b"2", b"3")
    producer.flush()
    assert broker.values("orders") == [b"1", b"2", b"3"]
    assert sequences(broker)[-2:] == [(1, 0, 1), (1, 1, 1)]
    assert [future.result().offset for future in futures] == [0, 1, 2]


def test_a_new_epoch_waits_for_the_batches_in_flight_of_other_partitions() -> None:
    producer, broker = producer_over(topics={"stock": 2}, linger_ms=1000)
    kept, answer = held(broker)

    def send(partition: int) -> None:
        producer.send("stock", b"x", partition=partition)
        with producer._reactor:
            producer._core.accumulator.close_all()

    send(1)
    send(0)
    zero = kept[1]
    zero.reply(broker.answer(zero, [(TopicPartition("stock", 0), 45, -1)]))  # a gap: the epoch is raised
    send(1)
    broker.transport.reactor.settle(2000)
    sent_to = [batch.partition.partition for request in kept for batch in broker.batches(request)]
    assert sent_to == [1, 0, 0]
    answer(0)
    answer(2)
    answer(3)
    assert [row[:2] for row in sequences(broker)] == [(0, 0), (0, 0), (1, 0), (1, 0)]
    assert (broker.values("stock", 0), broker.values("stock", 1)) == ([b"x"], [b"x", b"x"])


def test_no_batch_follows_one_that_may_or_may_not_be_written() -> None:
    producer, broker = producer_over(delivery_timeout_ms=3000, request_timeout_ms=2000, linger_ms=1000)
    kept, _ = held(broker)
    sent(producer, b"1")
    broker.transport.reactor.settle(1500)
    sent(producer, b"2")
    kept[0].fail()
    broker.transport.reactor.settle(1500)  # the first batch expires, the second is in flight
    sent(producer, b"3")
    broker.transport.reactor.settle()
    assert [batch.values for request in kept[2:] for batch in broker.batches(request)] == [[b"1"]] * (
        len(kept) - 2
    )


def test_lost_state_of_the_producer_gets_a_new_epoch() -> None:
    producer, broker = producer_over()
    producer.send("orders", b"1").result()
    produce = broker.transport.answers["Produce"]

    def unknown(request: Request) -> ProduceResponse:
        broker.transport.answers["Produce"] = produce
        row = PartitionProduceResponse(error_code=59, log_start_offset=9)
        topic = TopicProduceResponse(topic_id=broker.transport.topic_id("orders"), partition_responses=(row,))
        return ProduceResponse(responses=(topic,))

    broker.transport.answers["Produce"] = unknown
    producer.send("orders", b"2").result()
    assert sequences(broker) == [(0, 0, 1), (0, 1, 1), (1, 0, 1)]


def test_the_last_epoch_is_followed_by_a_new_producer_id() -> None:
    producer, broker = producer_over()
    broker.producer = (7, 32_766)
    producer.send("orders", b"1").result()
    broker.failures["Produce"] = deque([45])
    broker.producer = (8, -1)
    producer.send("orders", b"2").result()
    assert broker.values("orders") == [b"1", b"2"]
    headers = [batch.header for batch in broker.all_batches()]
    assert [(each.producer_id, each.producer_epoch, each.base_sequence) for each in headers] == [
        (7, 32_767, 0), (7, 32_767, 1), (8, 0, 0),
    ]  # fmt: skip


class Batch:
    """A batch of ``count`` records."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.producer, self.base_sequence = ProducerIdAndEpoch(-1, -1), -1

    @property
    def last_sequence(self) -> int:
        return (self.base_sequence + self.count - 1) % 2**31

    def assign(self, producer: ProducerIdAndEpoch, sequence: int) -> None:
        self.producer, self.base_sequence = producer, sequence


def test_sequences_continue_with_0_after_the_largest() -> None:
    found, batches = Sequences(), [Batch(3), Batch(2), Batch(1)]
    found.restart(ProducerIdAndEpoch(7, 0))
    found.next = 2**31 - 2
    for batch in batches:
        found.number(batch)
    assert [batch.base_sequence for batch in batches] == [2**31 - 2, 1, 3]
    for batch in batches:
        found.acknowledged(batch, -1)
    assert (found.next, found.last_acked, found.is_next(4)) == (4, 3, True)

"""Sending: batches, retries, sequences, limits in flight, timeouts, and the answers of one record."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import Any

import pytest

from tests.unit.client.fakes import Request
from tests.unit.client.producer.fake_broker import held, producer_over, sent, sequences
from txnkafka.client.producer import RecordMetadata
from txnkafka.errors import (
    BufferExhaustedError,
    InvalidRecordError,
    KafkaError,
    KafkaTimeoutError,
    MessageTooLargeError,
    ProduceError,
    UnknownTopicOrPartitionError,
)
from txnkafka.model import TopicPartition
from txnkafka.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

ORDERS = TopicPartition("orders", 0)


def test_records_wait_for_others_in_their_batch() -> None:
    producer, broker = producer_over(linger_ms=5)
    futures = [producer.send("orders", b"%d" % number) for number in range(3)]
    reactor = broker.transport.reactor
    reactor.settle(4)
    assert broker.transport.sent("Produce") == []
    reactor.settle(1)
    (batch,) = broker.all_batches()
    assert batch.values == [b"0", b"1", b"2"]
    assert [future.result().offset for future in futures] == [0, 1, 2]


def test_a_full_batch_does_not_wait() -> None:
    producer, broker = producer_over(batch_size=200)
    for _ in range(3):
        producer.send("orders", b"x" * 70)
    broker.transport.reactor.settle()
    assert [(batch.header.count, batch.header.size <= 200) for batch in broker.all_batches()] == [
        (1, True)
    ] * 2


def test_a_batch_takes_records_until_it_can_be_sent() -> None:
    producer, broker = producer_over(linger_ms=0, max_in_flight_requests_per_connection=1)
    kept, answer = held(broker)
    for number in range(4):
        producer.send("orders", b"%d" % number)
    assert len(kept) == 1
    answer(0)
    answer(1)
    assert [batch.values for batch in broker.all_batches()] == [[b"0"], [b"1", b"2", b"3"]]


def test_at_most_five_requests_are_in_flight() -> None:
    producer, broker = producer_over(linger_ms=1000)
    kept, answer = held(broker)
    sent(producer, *(b"%d" % number for number in range(7)))
    assert len(kept) == 5
    answer(0)
    assert len(kept) == 6


def test_one_request_has_a_batch_of_each_partition_of_its_broker() -> None:
    producer, broker = producer_over(topics={"orders": 1, "stock": 3}, nodes=2)
    broker.transport.leaders[TopicPartition("stock", 2)] = 1
    for number in range(3):
        producer.send("stock", b"%d" % number, partition=number)
    producer.send("orders", b"3")
    producer.flush()
    found = {
        request.node_id: sorted(str(batch.partition) for batch in broker.batches(request))
        for request in broker.transport.sent("Produce")
    }
    assert found == {0: ["orders-0", "stock-0", "stock-1"], 1: ["stock-2"]}


def test_a_request_is_not_larger_than_its_limit() -> None:
    producer, broker = producer_over(topics={"stock": 3}, max_request_size=1000)
    for number in range(3):
        producer.send("stock", b"x" * 600, partition=number)
    producer.flush()
    assert [len(list(broker.batches(request))) for request in broker.transport.sent("Produce")] == [1, 1, 1]


@pytest.mark.parametrize("code", [2, 3, 5, 6, 7, 13, 19, 20, 56, 74, 100, 103])
def test_retriable_errors_are_repeated_with_the_same_sequence(code: int) -> None:
    producer, broker = producer_over()
    broker.failures["Produce"] = deque([code, code])
    assert producer.send("orders", b"1").result().offset == 0
    assert sequences(broker) == [(0, 0, 1)] * 3


def test_pauses_between_repetitions_grow() -> None:
    producer, broker = producer_over()
    times: list[int] = []
    produce, clock = broker.transport.answers["Produce"], broker.transport.reactor.fake_clock

    def timed(request: Request) -> Any:
        times.append(clock.ms)
        return produce(request)

    broker.transport.answers["Produce"] = timed
    broker.failures["Produce"] = deque([7] * 6)
    producer.send("orders", b"1").result()
    pauses = [after - before for before, after in pairwise(times)]
    for expected, pause in zip([100, 200, 400, 800, 1000, 1000], pauses, strict=True):
        assert 0.8 * expected <= pause <= 1.2 * expected


def test_a_new_leader_is_looked_up() -> None:
    producer, broker = producer_over(nodes=2)
    producer.send("orders", b"1").result()
    broker.transport.leaders[ORDERS] = 1
    broker.failures["Produce"] = deque([6])
    producer.send("orders", b"2").result()
    assert [each.node_id for each in broker.transport.sent("Produce")] == [0, 0, 1]
    assert broker.values("orders") == [b"1", b"2"]


def test_a_lost_response_is_repeated_and_the_record_written_once() -> None:
    producer, broker = producer_over()

    def lost(request: Request) -> None:
        broker.produce(request)
        broker.transport.answers["Produce"] = broker.produce
        request.fail()

    broker.transport.answers["Produce"] = lost
    assert producer.send("orders", b"1").result().offset == 0
    assert broker.values("orders") == [b"1"]


def test_a_repeated_batch_that_the_broker_has_forgotten_is_a_success() -> None:
    producer, broker = producer_over()
    broker.failures["Produce"] = deque([46])
    future = producer.send("orders", b"1", timestamp=5)
    assert future.result() == RecordMetadata("orders", 0, -1, 5)


def test_a_batch_that_is_too_large_is_split() -> None:
    producer, broker = producer_over(batch_size=2000, linger_ms=1000)
    futures = [producer.send("orders", b"%d" % number * 100) for number in range(8)]
    broker.failures["Produce"] = deque([10, 10])
    futures += sent(producer, b"last")
    producer.flush()
    values = [b"%d" % number * 100 for number in range(8)] + [b"last"]
    assert broker.values("orders") == values
    assert [future.result().offset for future in futures] == list(range(9))


def test_one_record_that_is_too_large_fails() -> None:
    producer, broker = producer_over()
    broker.failures["Produce"] = deque([10])
    future = producer.send("orders", b"1")
    assert isinstance(future.exception(), MessageTooLargeError)
    with pytest.raises(MessageTooLargeError, match="orders-0: MESSAGE_TOO_LARGE"):
        future.result()
    assert producer.send("orders", b"2").result().offset == 0
    assert sequences(broker)[-1] == (1, 0, 1)


def test_refused_records_have_their_own_errors() -> None:
    producer, broker = producer_over()

    def refused(request: Request) -> ProduceResponse:
        row = PartitionProduceResponse(
            error_code=87, error_message="one is wrong",
            record_errors=(BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no key"),),
        )  # fmt: skip
        topic = TopicProduceResponse(topic_id=broker.transport.topic_id("orders"), partition_responses=(row,))
        return ProduceResponse(responses=(topic,))

    broker.transport.answers["Produce"] = refused
    first, second = producer.send("orders", b"1"), producer.send("orders", b"2")
    assert isinstance(second.exception(), InvalidRecordError)
    assert str(second.exception()) == "no key"
    error = first.exception()
    assert isinstance(error, ProduceError)
    assert "because of other records" in str(error)


def test_a_broker_that_never_answers_fails_the_record_in_time() -> None:
    producer, broker = producer_over(delivery_timeout_ms=3000, request_timeout_ms=1000)
    broker.transport.answers["Produce"] = lambda _: None
    clock = broker.transport.reactor.fake_clock
    before = clock.ms
    future = producer.send("orders", b"1")
    with pytest.raises(KafkaTimeoutError, match=r"1 records were sent, but not acknowledged within delivery"):
        future.result()
    assert clock.ms - before == 3000


def test_a_partition_without_leader_fails_the_record_in_time() -> None:
    producer, broker = producer_over(delivery_timeout_ms=3000, request_timeout_ms=1000)
    broker.transport.leaders[ORDERS] = -1
    with pytest.raises(KafkaTimeoutError, match="1 records were not sent within"):
        producer.send("orders", b"1").result()


def test_after_an_expired_batch_the_epoch_tells_later_batches_from_it() -> None:
    producer, broker = producer_over(delivery_timeout_ms=3000, request_timeout_ms=1000, linger_ms=0)
    producer.send("orders", b"1").result()
    broker.transport.answers["Produce"] = lambda _: None
    lost = producer.send("orders", b"2")
    assert isinstance(lost.exception(), KafkaTimeoutError)
    broker.transport.answers["Produce"] = broker.produce
    assert producer.send("orders", b"3").result().offset == 1
    assert sequences(broker)[-1] == (1, 0, 1)


def test_an_expired_batch_aborts_its_transaction() -> None:
    producer, broker = producer_over(
        transactional_id="shop", delivery_timeout_ms=3000, request_timeout_ms=1000
    )
    broker.transport.answers["Produce"] = lambda _: None
    with pytest.raises(KafkaError, match="not acknowledged within"), producer.transaction():
        producer.send("orders", b"1")
    broker.transport.answers["Produce"] = broker.produce
    with producer.transaction():
        producer.send("orders", b"2")
    assert broker.values("orders") == [b"2"]


def test_full_memory_makes_the_caller_wait() -> None:
    producer, broker = producer_over(buffer_memory=1000, batch_size=400, max_block_ms=500, linger_ms=100_000)
    for number in range(30):
        producer.send("orders", b"%d" % number * 50)
    assert len(broker.values("orders")) >= 24
    broker.transport.answers["Produce"] = lambda _: None
    with pytest.raises(BufferExhaustedError, match=r"buffer\.memory \(1000\)"):
        sent(producer, *[b"x" * 100] * 30)


def test_an_unknown_topic_is_looked_up_until_it_exists() -> None:
    producer, broker = producer_over()
    broker.transport.reactor.call_at(
        broker.transport.reactor.now_ms() + 1000, lambda: broker.transport.topics.update(later=1)
    )
    assert producer.send("later", b"1").result().topic == "later"


def test_a_topic_that_does_not_exist_fails_after_max_block_ms() -> None:
    producer, _ = producer_over(max_block_ms=1000)
    with pytest.raises(KafkaTimeoutError, match="the lookup of topic nowhere failed for 1000 ms"):
        producer.send("nowhere", b"1")


def test_a_partition_that_does_not_exist_is_refused() -> None:
    producer, broker = producer_over()
    with pytest.raises(UnknownTopicOrPartitionError, match="stock has no partition 2: it has 0 to 1"):
        producer.send("stock", b"1", partition=2)
    broker.transport.topics["stock"] = 3
    assert producer.send("stock", b"1", partition=2).result().partition == 2
    with pytest.raises(UnknownTopicOrPartitionError):
        producer.send("stock", b"1", partition=-1)


@pytest.mark.parametrize(("acks", "offset"), [("0", -1), ("1", 0)])
def test_fewer_acknowledgements_have_no_sequences(acks: str, offset: int) -> None:
    producer, broker = producer_over(acks=acks)
    future = producer.send("orders", b"1")
    if acks == "0":
        broker.transport.answers["Produce"] = lambda request: request.promise.set(None)
    assert future.result().offset == offset
    assert [batch.header.producer_id for batch in broker.all_batches()] == [-1]
    assert "InitProducerId" not in broker.transport.names()


def test_one_request_in_flight_keeps_the_order_without_sequences() -> None:
    producer, broker = producer_over(acks="1", max_in_flight_requests_per_connection=1, linger_ms=1000)
    broker.failures["Produce"] = deque([7, 0, 7])
    sent(producer, b"1", b"2", b"3")
    producer.flush()
    assert broker.values("orders") == [b"1", b"2", b"3"]


def test_an_answer_that_no_broker_should_send_fails_the_records() -> None:
    producer, broker = producer_over()
    producer.send("orders", b"0").result()
    kept, _ = held(broker)
    broker.transport.answers["Metadata"] = lambda request: object()  # without any field
    future = producer.send("orders", b"1")
    broker.transport.reactor.settle(10)
    kept[0].reply(broker.answer(kept[0], [(ORDERS, 6, -1)]))  # NOT_LEADER_OR_FOLLOWER: metadata are looked up
    broker.transport.reactor.settle(2_000)
    assert future.done()
    with pytest.raises(KafkaError, match="the producer failed in metadata: AttributeError"):
        future.result()

"""Producers of an embedded broker: records, columns, transactions, fencing, and threads beside each other."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from txnkafka import Broker, TopicPartition
from txnkafka._core.key_partition import partition_of
from txnkafka.client.producer import Producer
from txnkafka.errors import (
    ClosedError,
    InvalidProducerEpochError,
    ProducerFencedError,
    TransactionAbortableError,
)
from txnkafka.record.builder import build_batch


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.in_memory(num_partitions=3) as opened:
        yield opened


def read(broker: Broker, topic: str) -> list[Any]:
    """Return the committed records of a topic, by partition and offset."""
    with broker.consumer() as consumer:
        partitions = [TopicPartition(topic, number) for number in range(3)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends = consumer.end_offsets(partitions)
        found: list[Any] = []
        while any(consumer.position(each) < end for each, end in ends.items()):
            found += consumer.poll(1.0)
    return sorted(found, key=lambda record: (record.partition, record.offset))


def values(broker: Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in read(broker, topic)]


def test_committed_records_are_read_and_aborted_ones_are_not(broker: Broker) -> None:
    with broker.producer(transactional_id="shop") as producer:
        with producer.transaction():
            future = producer.send("orders", b"1", key=b"anna", headers=[("h", b"v")], timestamp=5)
        producer.begin_transaction()
        assert producer.send("orders", b"2", key=b"anna").result().offset == 2
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("orders", b"never sent", key=b"anna")
        producer.abort_transaction()
        with producer.transaction():
            producer.send("orders", b"3", key=b"anna")
        (record, last) = read(broker, "orders")
    assert future.result() == ("orders", partition_of(b"anna", 3), 0, 5)
    assert (record.value, record.key, record.timestamp, record.offset) == (b"1", b"anna", 5, 0)
    assert [tuple(header) for header in record.headers] == [("h", b"v")]
    assert (last.value, last.offset) == (b"3", 4)  # after two records and two markers


def test_a_second_producer_fences_the_first(broker: Broker) -> None:
    first, second = broker.producer(transactional_id="shop"), broker.producer(transactional_id="shop")
    first.init_transactions()
    first.begin_transaction()
    first.send("orders", b"zombie").result()
    second.init_transactions()
    future = first.send("orders", b"zombie")
    assert isinstance(future.exception(), InvalidProducerEpochError)
    with pytest.raises(TransactionAbortableError, match="INVALID_PRODUCER_EPOCH"):
        first.commit_transaction()
    with pytest.raises(ProducerFencedError, match=r"another producer uses the same transactional\.id"):
        first.abort_transaction()
    for call in (first.begin_transaction, first.abort_transaction, lambda: first.send("orders", b"x")):
        with pytest.raises(ProducerFencedError, match="was fenced"):
            call()
    with second.transaction():
        second.send("orders", b"1")
    assert values(broker, "orders") == [b"1"]
    first.close()
    second.close()


def test_offsets_and_records_move_together(broker: Broker) -> None:
    partition = TopicPartition("in", 0)
    with broker.producer() as source:
        source.send("in", b"1", partition=0).result()
    with (
        broker.consumer("in", group_id="copy") as consumer,
        broker.producer(transactional_id="copy") as producer,
    ):
        while not consumer.poll(1):
            pass
        with producer.transaction():
            producer.send("out", b"1")
            producer.send_offsets_to_transaction({partition: 1}, consumer.group_metadata())
        assert consumer.committed([partition])[partition].offset == 1
        with pytest.raises(ZeroDivisionError), producer.transaction():
            producer.send_offsets_to_transaction({partition: 1 // 0}, consumer.group_metadata())
    assert values(broker, "out") == [b"1"]


def test_columns_go_to_the_partitions_of_their_keys(broker: Broker) -> None:
    keys = [b"%d" % number for number in range(200)] + [None]
    with broker.producer(transactional_id="shop") as producer:
        with producer.transaction():
            result = producer.send_columns("orders", keys=keys, values=[key or b"none" for key in keys])
        places = result.result()
    assert (result.count, sum(place.record_count for place in places)) == (201, 201)
    for record in read(broker, "orders"):
        if record.key is not None:
            assert record.partition == partition_of(record.key, 3)
            assert record.value == record.key


def test_columns_go_to_given_partitions_in_order(broker: Broker) -> None:
    numbers = array("i", [2, 0, 1, 0, 2, 0])
    with broker.producer() as producer:
        producer.send_columns(
            "orders", values=[b"%d" % i for i in range(6)], partitions=numbers, timestamps=range(6)
        ).result()
        producer.send_columns("orders", values=[b"6", None], partition=1).result()
    found = [(record.partition, record.value) for record in read(broker, "orders")]
    assert found == [
        (0, b"1"), (0, b"3"), (0, b"5"), (1, b"2"), (1, b"6"), (1, None), (2, b"0"), (2, b"4"),
    ]  # fmt: skip


def test_records_before_and_after_columns_keep_their_order(broker: Broker) -> None:
    with broker.producer(linger_ms=10_000) as producer:
        producer.send("orders", b"1", partition=0)
        producer.send_columns("orders", values=[b"2", b"3"], partition=0)
        producer.send_batch("orders", 0, build_batch([(None, b"4", 1)]))
        producer.send("orders", b"5", partition=0)
    assert values(broker, "orders") == [b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records_are_the_same(broker: Broker, codec: str) -> None:
    with broker.producer(compression_type=codec) as producer:
        for number in range(100):
            producer.send("orders", b"%d" % number * 20, partition=0)
        producer.send_columns("orders", values=[b"last"] * 50, partition=0)
    assert values(broker, "orders") == [b"%d" % number * 20 for number in range(100)] + [b"last"] * 50


def test_more_records_than_memory_holds_are_all_sent(broker: Broker) -> None:
    with broker.producer(buffer_memory=5000, batch_size=1000) as producer:
        for number in range(500):
            producer.send("orders", b"%d" % number, partition=0)
        producer.send_columns("orders", values=[b"x" * 100] * 200, partition=0)
    assert values(broker, "orders") == [b"%d" % number for number in range(500)] + [b"x" * 100] * 200


def test_eight_threads_send_beside_each_other(broker: Broker) -> None:
    with broker.producer(batch_size=500, linger_ms=1) as producer:

        def send(thread: int) -> None:
            for number in range(300):
                producer.send("orders", b"%d %d" % (thread, number), partition=thread % 3)

        threads = [Thread(target=send, args=(number,)) for number in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        producer.flush()
        found = values(broker, "orders")
    assert len(found) == 2400
    for thread in range(8):
        own = [value for value in found if value and value.startswith(b"%d " % thread)]
        assert own == [b"%d %d" % (thread, number) for number in range(300)]


def test_eight_threads_share_a_transaction(broker: Broker) -> None:
    with broker.producer(transactional_id="shop") as producer:
        for _ in range(3):
            with producer.transaction():
                threads = [
                    Thread(target=producer.send, args=("orders", b"%d" % number)) for number in range(8)
                ]
                for each in threads:
                    each.start()
                for each in threads:
                    each.join()
    assert sorted(str(value) for value in values(broker, "orders")) == sorted(
        str(b"%d" % number) for number in range(8) for _ in range(3)
    )


def test_a_producer_of_a_closed_broker_is_closed() -> None:
    with Broker.in_memory() as opened:
        producer = opened.producer()
        producer.send("orders", b"1").result()
    with pytest.raises(ClosedError):
        producer.send("orders", b"2")
    producer.close()


def test_a_result_is_known_after_the_end_of_the_producer(broker: Broker) -> None:
    with broker.producer() as producer:
        future = producer.send("orders", b"1", partition=0)
    assert future.done()
    assert future.result().offset == 0
    assert repr(producer) == "<Producer 'txnkafka'>"
    assert repr(Producer(transactional_id="a", transport=broker._transport)) == (
        "<Producer 'txnkafka' transactional_id='a'>"
    )

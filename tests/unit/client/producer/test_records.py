"""Records and batches of one call, wrong arguments, results, callbacks, and the end of a producer."""

from __future__ import annotations

from array import array
from collections import deque
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.unit.client.producer.fake_broker import FakeBroker, producer_over
from txnkafka.client.producer import Producer
from txnkafka.client.transport import Versions
from txnkafka.errors import (
    ClosedError,
    InvalidRecordError,
    KafkaTimeoutError,
    error_for,
)
from txnkafka.model import TopicPartition
from txnkafka.record.builder import build_batch
from txnkafka.wire.schema import ZERO_UUID

ORDERS = TopicPartition("orders", 0)


def test_topics_without_ids_are_sent_by_name() -> None:
    producer, broker = producer_over()
    broker.transport.topic_id = lambda _: ZERO_UUID  # type: ignore[method-assign]
    producer.send("orders", b"1").result()
    assert [each.version for each in broker.transport.sent("Produce")] == [12]


def test_an_old_broker_is_sent_its_version() -> None:
    producer, broker = producer_over()
    broker.transport.versions = Versions({**broker.transport.versions.ranges, "Produce": (0, 7)}, {}, 1)
    producer.send("orders", b"1").result()
    assert [each.version for each in broker.transport.sent("Produce")] == [7]


def test_a_finished_batch_is_sent_with_the_identity_of_the_producer() -> None:
    producer, broker = producer_over(transactional_id="shop")
    given = build_batch(
        [(b"k", b"v", 5)] * 3, compression="gzip", producer_id=1, producer_epoch=1, base_sequence=9
    )
    before = bytes(given)
    with producer.transaction():
        producer.send("orders", b"before")
        result = producer.send_batch("orders", 0, given)
        producer.send("orders", b"after")
    assert result.result() == [("orders", 0, 1, 3)]
    assert bytes(given) == before
    headers = [batch.header for batch in broker.all_batches()]
    assert [(each.producer_id, each.base_sequence) for each in headers] == [(7, 0), (7, 1), (7, 4)]
    assert all(batch.is_transactional for batch in broker.all_batches())
    assert broker.values("orders") == [b"before", b"v", b"v", b"v", b"after"]


def test_other_bytes_are_no_finished_batch() -> None:
    producer, _ = producer_over()
    batch = build_batch([(b"k", b"v", 5)])
    for wrong in (b"", b"x" * 100, batch + b"x", batch[:-1]):
        with pytest.raises(InvalidRecordError, match="not one record batch"):
            producer.send_batch("orders", 0, wrong)
    with pytest.raises(InvalidRecordError, match="only a coordinator"):
        producer.send_batch(
            "orders", 0, build_batch([(b"k", b"v", 5)], control=True, producer_id=1, producer_epoch=1)
        )


def test_callbacks_are_called_once_each() -> None:
    producer, _ = producer_over()
    called: list[Any] = []
    future = producer.send("orders", b"1")
    future.add_done_callback(called.append)
    future.add_done_callback(lambda _: 1 // 0)  # is logged
    assert not future.done()
    producer.flush()
    future.add_done_callback(called.append)
    assert called == [future, future]
    assert future.done()


def test_a_result_that_does_not_come_in_time() -> None:
    producer, broker = producer_over()
    broker.transport.answers["Produce"] = lambda _: None
    with pytest.raises(KafkaTimeoutError, match="the answer for orders-0 did not come within 500 ms"):
        producer.send("orders", b"1").result(timeout=0.5)
    with pytest.raises(KafkaTimeoutError, match="1 batches were not acknowledged within 500 ms"):
        producer.flush(timeout=0.5)


def test_serializers_are_called_for_keys_and_values() -> None:
    transport = producer_over()[1].transport
    broker = FakeBroker(transport)
    producer = Producer(
        key_serializer=str.encode,
        value_serializer=lambda value: b"%d" % value,
        transport=transport.for_client,
    )
    producer.send("orders", 5, key="five", headers=[("h", None)], timestamp=3).result()
    (record,) = broker.logs[ORDERS]
    assert (record.key, record.value, record.timestamp, record.headers) == (b"five", b"5", 3, [("h", None)])


def test_headers_of_any_iterable_are_kept_by_a_record_that_opens_a_batch() -> None:
    producer, broker = producer_over(batch_size=100)
    for number in range(3):
        producer.send("orders", b"x" * 60, headers=((name, b"%d" % number) for name in ("a", "b")))
    producer.flush()
    assert [record.headers for record in broker.logs[ORDERS]] == [
        [("a", b"%d" % number), ("b", b"%d" % number)] for number in range(3)
    ]


def test_wrong_arguments_are_refused_by_the_call() -> None:
    producer, broker = producer_over()
    producer.send("orders", b"1").result()
    wrong: list[dict[str, Any]] = [
        {"key": "anna"}, {"value": "book"}, {"partition": 0.5}, {"timestamp": "now"},
        {"headers": {"a": b"b"}},
    ]  # fmt: skip
    for arguments in wrong:
        with pytest.raises(TypeError):
            producer.send("orders", **arguments)
    number: Any = np.int64(0)
    assert producer.send("orders", b"2", partition=number).result().offset == 1
    assert broker.values("orders") == [b"1", b"2"]


def test_closing_gives_up_an_abort_that_is_not_answered() -> None:
    producer, broker = producer_over(transactional_id="shop", max_block_ms=500)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"1").result()
    broker.transport.answers["EndTxn"] = lambda _: None
    producer.close()
    assert len(broker.transport.sent("EndTxn")) == 1


def test_a_closed_producer_refuses_all_calls() -> None:
    producer, _ = producer_over(transactional_id="shop")
    producer.init_transactions()
    producer.close()
    producer.close()
    for call in (
        producer.flush, producer.init_transactions, producer.begin_transaction, producer.commit_transaction,
        lambda: producer.send("orders", b"1"), lambda: producer.partitions_for("orders"),
    ):  # fmt: skip
        with pytest.raises(ClosedError):
            call()


def test_records_that_were_not_sent_before_the_end_fail() -> None:
    producer, broker = producer_over()
    broker.transport.answers["Produce"] = lambda _: None
    future = producer.send("orders", b"1")
    producer.close(timeout=0.1)
    error = future.exception()
    assert isinstance(error, ClosedError)
    assert "closed before the records were sent" in str(error)


def test_a_cluster_that_gives_no_producer_id_fails_the_records() -> None:
    producer, broker = producer_over()
    broker.failures["InitProducerId"] = deque([31])
    error = producer.send("orders", b"1").exception()
    assert isinstance(error, type(error_for(31)))
    assert producer.send("orders", b"2").result().offset == 0


def test_partitions_of_a_topic() -> None:
    producer, _ = producer_over()
    assert [(row.number, row.leader_id) for row in producer.partitions_for("stock")] == [(0, 0), (1, 0)]


def test_columns_that_cannot_be_encoded_fail_alone() -> None:
    producer, broker = producer_over()
    offsets = pa.py_buffer(array("i", [0, 3, 1]))
    wrong = pa.Array.from_buffers(pa.binary(), 2, [None, offsets, pa.py_buffer(b"abc")])
    result = producer.send_columns("orders", values=wrong)
    error = result.exception()
    assert isinstance(error, InvalidRecordError)
    assert "offsets of a column at record 1" in str(error)
    assert producer.send("orders", b"1").result().offset == 0
    assert [batch.header.base_sequence for batch in broker.all_batches()] == [0]

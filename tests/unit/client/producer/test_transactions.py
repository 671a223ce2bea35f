"""Transactions over a fake transport: requests of each transaction version, epochs, sequences, timeouts."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from tests.unit.client.producer.fake_broker import FakeBroker, producer_over
from txnkafka.client.group_metadata import ConsumerGroupMetadata
from txnkafka.client.producer import Producer
from txnkafka.client.producer.txn_state import State
from txnkafka.client.transport import Versions
from txnkafka.errors import (
    ClientError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    TransactionAbortableError,
    UnsupportedVersionError,
)
from txnkafka.model import TopicPartition

GROUP = ConsumerGroupMetadata("readers", 3, "member", "static")


def begun(version: int = 2, **settings: Any) -> tuple[Producer, FakeBroker]:
    producer, broker = producer_over(version=version, transactional_id="shop", **settings)
    producer.init_transactions()
    producer.begin_transaction()
    return producer, broker


def identities(broker: FakeBroker) -> list[tuple[int, int, int]]:
    """Return partition, epoch and sequence of the sent batches."""
    return [
        (batch.partition.partition, batch.header.producer_epoch, batch.header.base_sequence)
        for batch in broker.all_batches()
    ]


def test_version_2_adds_partitions_by_sending_to_them() -> None:
    producer, broker = begun()
    future = producer.send("orders", b"1")
    producer.commit_transaction()
    assert broker.transport.names() == ["FindCoordinator", "InitProducerId", "Produce", "EndTxn"]
    (produce,), (end,) = broker.transport.sent("Produce"), broker.transport.sent("EndTxn")
    assert (produce.version, end.version) == (13, 5)
    assert (produce.message.transactional_id, produce.message.acks) == ("shop", -1)
    assert all(batch.is_transactional for batch in broker.all_batches())
    assert future.result() == ("orders", 0, 0, future.timestamp)
    assert broker.transport.waits_visible == [(TopicPartition("orders", 0),)]


def test_version_2_raises_the_epoch_with_every_transaction() -> None:
    producer, broker = begun()
    for value in (b"1", b"2"):
        producer.send("orders", value)
        producer.commit_transaction()
        producer.begin_transaction()
    producer.send("orders", b"3")
    producer.send("orders", b"4", partition=0)
    producer.abort_transaction()
    assert identities(broker) == [(0, 0, 0), (0, 1, 0)]
    with producer.transaction():
        producer.send("orders", b"5")
    assert identities(broker)[-1] == (0, 3, 0)


@pytest.mark.parametrize("version", [0, 1])
def test_versions_0_and_1_add_partitions_before_they_send(version: int) -> None:
    producer, broker = begun(version)
    producer.send("stock", b"1", partition=0)
    producer.send("stock", b"2", partition=1)
    producer.commit_transaction()
    names = broker.transport.names()[2:]
    assert names == ["AddPartitionsToTxn", "Produce", "EndTxn"]
    (add,), (produce,), (end,) = (broker.transport.sent(name) for name in names)
    assert (add.version, produce.version, end.version) == (3, 11, 4)
    (topic,) = add.message.v3_and_below_topics
    assert (topic.name, topic.partitions) == ("stock", (0, 1))


def test_versions_0_and_1_keep_the_epoch_and_continue_the_sequences() -> None:
    producer, broker = begun(1)
    producer.send("orders", b"1")
    producer.commit_transaction()
    for value in (b"2", b"3"):
        with producer.transaction():
            producer.send("orders", value)
    assert identities(broker) == [(0, 0, 0), (0, 0, 1), (0, 0, 2)]
    assert len(broker.transport.sent("AddPartitionsToTxn")) == 3


def test_an_abort_without_error_in_version_1_keeps_the_epoch() -> None:
    producer, broker = begun(1)
    producer.send("orders", b"1")
    producer.flush()
    producer.abort_transaction()
    with producer.transaction():
        producer.send("orders", b"2")
    assert identities(broker) == [(0, 0, 0), (0, 0, 1)]
    assert len(broker.transport.sent("InitProducerId")) == 1


def test_an_error_in_version_1_gets_a_new_epoch_from_the_coordinator() -> None:
    producer, broker = begun(1)
    broker.failures["Produce"] = deque([10])
    producer.send("orders", b"1")
    producer.flush()
    with pytest.raises(TransactionAbortableError):
        producer.commit_transaction()
    producer.abort_transaction()
    first, second = broker.transport.sent("InitProducerId")
    assert (first.message.producer_id, first.message.producer_epoch) == (-1, -1)
    assert (second.message.producer_id, second.message.producer_epoch) == (7, 0)
    assert broker.transport.names()[-2:] == ["EndTxn", "InitProducerId"]
    with producer.transaction():
        producer.send("orders", b"2")
    assert identities(broker)[-1] == (0, 1, 0)


def test_an_old_coordinator_that_cannot_raise_epochs_makes_lost_state_fatal() -> None:
    producer, broker = producer_over(version=1, transactional_id="shop")
    ranges = {**broker.transport.versions.ranges, "InitProducerId": (0, 2)}
    broker.transport.versions = Versions(ranges, {"transaction.version": 1}, 1)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"1")
    broker.failures["EndTxn"] = deque([59])
    with pytest.raises(KafkaError, match="UNKNOWN_PRODUCER_ID"):
        producer.commit_transaction()
    with pytest.raises(KafkaError, match="has failed, close it"):
        producer.abort_transaction()


def test_the_change_to_version_2_begins_with_a_new_epoch() -> None:
    producer, broker = begun(1)
    producer.send("orders", b"1")
    producer._core.cluster.features = {"transaction.version": 2}
    producer.commit_transaction()
    assert broker.transport.sent("EndTxn")[0].version == 4
    assert broker.transport.names()[-2:] == ["EndTxn", "InitProducerId"]
    with producer.transaction():
        producer.send("orders", b"2")
    assert broker.transport.sent("EndTxn")[1].version == 5
    assert len(broker.transport.sent("AddPartitionsToTxn")) == 1
    assert identities(broker) == [(0, 0, 0), (0, 1, 0)]


def test_the_change_back_to_version_1_adds_partitions_again() -> None:
    producer, broker = begun(2)
    producer.send("orders", b"1")
    producer._core.cluster.features = {}
    producer.commit_transaction()
    with producer.transaction():
        producer.send("orders", b"2")
    assert [each.version for each in broker.transport.sent("EndTxn")] == [5, 4]
    assert len(broker.transport.sent("AddPartitionsToTxn")) == 1


@pytest.mark.parametrize("version", [1, 2])
def test_an_empty_transaction_sends_nothing(version: int) -> None:
    producer, broker = begun(version)
    producer.commit_transaction()
    producer.begin_transaction()
    producer.abort_transaction()
    with producer.transaction():
        pass
    assert broker.transport.names() == ["FindCoordinator", "InitProducerId"]


def test_an_abort_sends_no_record_that_waits() -> None:
    producer, broker = begun()
    future = producer.send("orders", b"1")
    producer.abort_transaction()
    error = future.exception()
    assert isinstance(error, ClientError)
    assert "was aborted before the record was sent" in str(error)
    assert broker.transport.sent("Produce") == []
    assert not broker.transport.sent("EndTxn")[0].message.committed


def test_the_first_partition_of_a_transaction_is_added_again_soon() -> None:
    producer, broker = begun(1)
    broker.failures["AddPartitionsToTxn"] = deque([51, 51])
    producer.send("orders", b"1")
    clock = broker.transport.reactor.fake_clock
    before = clock.ms
    producer.commit_transaction()
    assert clock.ms - before == 40


@pytest.mark.parametrize("version", [1, 2])
def test_offsets_are_sent_with_the_transaction(version: int) -> None:
    producer, broker = begun(version)
    producer.send_offsets_to_transaction({TopicPartition("stock", 1): 5}, GROUP)
    producer.commit_transaction()
    names = broker.transport.names()[2:]
    added = ["AddOffsetsToTxn"] if version == 1 else []
    assert names == [*added, "FindCoordinator", "TxnOffsetCommit", "EndTxn"]
    (commit,) = broker.transport.sent("TxnOffsetCommit")
    assert commit.version == (5 if version == 2 else 4)
    message = commit.message
    assert (message.group_id, message.generation_id_or_member_epoch) == ("readers", 3)
    assert (message.member_id, message.group_instance_id) == ("member", "static")
    (topic,) = message.topics
    (row,) = topic.partitions
    assert (topic.name, row.partition_index, row.committed_offset) == ("stock", 1, 5)
    assert (row.committed_metadata, row.committed_leader_epoch) == ("", -1)


def test_no_offsets_send_nothing() -> None:
    producer, broker = begun()
    producer.send_offsets_to_transaction({}, GROUP)
    producer.commit_transaction()
    assert broker.transport.names() == ["FindCoordinator", "InitProducerId"]


def test_a_commit_that_timed_out_is_continued_by_the_same_call() -> None:
    producer, broker = begun(max_block_ms=100)
    future = producer.send("orders", b"1")
    answer, kept = broker.transport.answers["EndTxn"], []
    broker.transport.answers["EndTxn"] = kept.append  # no answer
    with pytest.raises(KafkaTimeoutError, match=r"commit_transaction did not finish within max.block.ms"):
        producer.commit_transaction()
    for call in (producer.abort_transaction, producer.begin_transaction, producer.init_transactions):
        with pytest.raises(IllegalStateError, match="commit_transaction has not finished: call it again"):
            call()
    with pytest.raises(IllegalStateError, match="commit_transaction has not finished"):
        producer.send("orders", b"2")
    (request,) = kept
    request.reply(answer(request))
    producer.commit_transaction()
    assert len(broker.transport.sent("EndTxn")) == 1
    assert future.result().offset == 0
    producer.begin_transaction()


def test_an_init_that_timed_out_is_continued_by_the_same_call() -> None:
    producer, broker = producer_over(transactional_id="shop", max_block_ms=100)
    broker.failures["InitProducerId"] = deque([14] * 4)
    with pytest.raises(KafkaTimeoutError, match="init_transactions did not finish"):
        producer.init_transactions()
    with pytest.raises(IllegalStateError, match="init_transactions has not finished"):
        producer.begin_transaction()
    broker.transport.reactor.settle(5000)
    with producer.transaction():
        producer.send("orders", b"1")
    assert broker.values("orders") == [b"1"]


def test_the_block_commits_at_its_end_and_aborts_after_an_exception() -> None:
    producer, broker = producer_over(transactional_id="shop")
    with producer.transaction() as same:
        same.send("orders", b"1")

    def fails() -> None:
        producer.send("orders", b"2")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), producer.transaction():
        fails()
    assert [each.message.committed for each in broker.transport.sent("EndTxn")] == [True, False]
    assert len(broker.transport.sent("InitProducerId")) == 1


def test_the_block_aborts_after_a_commit_that_failed() -> None:
    producer, broker = producer_over(transactional_id="shop")
    broker.failures["Produce"] = deque([10])
    with pytest.raises(TransactionAbortableError, match="MESSAGE_TOO_LARGE"), producer.transaction():
        producer.send("orders", b"1")
    assert [each.message.committed for each in broker.transport.sent("EndTxn")] == [False]
    with producer.transaction():
        producer.send("orders", b"2")
    assert broker.values("orders") == [b"2"]


def test_the_block_sends_nothing_after_it_was_fenced() -> None:
    producer, broker = producer_over(transactional_id="shop")
    broker.failures["EndTxn"] = deque([90])
    with pytest.raises(ProducerFencedError), producer.transaction():
        producer.send("orders", b"1")
    assert len(broker.transport.sent("EndTxn")) == 1
    with pytest.raises(ProducerFencedError), producer.transaction():
        raise AssertionError("the block must not be entered")


def test_an_abort_that_fails_is_noted_on_the_exception() -> None:
    producer, broker = producer_over(transactional_id="shop")
    broker.failures["EndTxn"] = deque([53])

    def fails() -> None:
        producer.send("orders", b"1").result()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as raised, producer.transaction():
        fails()
    (note,) = raised.value.__notes__
    assert "the transaction was not aborted" in note
    assert "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" in note


def test_a_broker_without_version_2_of_produce_is_refused() -> None:
    producer, broker = producer_over(transactional_id="shop")
    ranges = {**broker.transport.versions.ranges, "Produce": (0, 11)}
    broker.transport.versions = Versions(ranges, {"transaction.version": 2}, 1)
    producer.init_transactions()
    producer.begin_transaction()
    future = producer.send("orders", b"1")
    assert isinstance(future.exception(), UnsupportedVersionError)
    assert producer._core.txn is not None
    assert producer._core.txn.state is State.FATAL_ERROR


def test_closing_sends_the_records_and_aborts_the_transaction() -> None:
    producer, broker = begun()
    future = producer.send("orders", b"1")
    producer.close()
    assert future.result().offset == 0
    assert [each.message.committed for each in broker.transport.sent("EndTxn")] == [False]


def test_a_record_that_is_too_large_fails_the_transaction() -> None:
    producer, broker = begun(max_request_size=1000)
    with pytest.raises(
        KafkaError, match=r"orders-0: record and batch have 1\d\d\d bytes; max.request.size is"
    ):
        producer.send("orders", b"x" * 1000)
    with pytest.raises(TransactionAbortableError, match=r"max\.request\.size"):
        producer.commit_transaction()
    producer.abort_transaction()
    assert "EndTxn" not in broker.transport.names()


def test_the_block_of_a_fenced_producer_says_so() -> None:
    producer, broker = producer_over(transactional_id="shop")
    broker.failures["Produce"], broker.failures["EndTxn"] = deque([47]), deque([90])
    with pytest.raises(ProducerFencedError), producer.transaction():
        producer.send("orders", b"1").result()
    assert [each.message.committed for each in broker.transport.sent("EndTxn")] == [False]

"""Transactions on a broker without sockets, of clients of both versions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.broker.node import NOW, UNCOMMITTED, Node, Producer, batch_of
from txnkafka.broker.broker import open_broker
from txnkafka.broker.coordinators.marker_writer import WritableMarker
from txnkafka.broker.requests import NewTopic, ProduceRequest
from txnkafka.coordinator.txn.txn_events import Answer
from txnkafka.coordinator.txn.txn_listing import Filters
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import LogDirError
from txnkafka.model import TopicPartition
from txnkafka.testing.memory_files import MemoryFiles

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NONE = ErrorCode.NONE


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_over_two_partitions(version: int, commit: bool) -> None:
    node = Node()
    node.create("t", 2)
    producer = Producer(node, version=version)
    for turn in (b"1", b"2"):
        if version == 1:
            assert producer.add(0, 1) == {NONE}
        assert producer.send(turn, 0, 1) == [NONE, NONE]
        assert producer.send(turn + b"more") == [NONE]
        seen = [[b"1", b"1more"], [b"1"]] if turn == b"2" and commit else [[], []]
        assert [node.values(0), node.values(1)] == seen
        assert producer.end(commit=commit) == NONE
    expected = [[b"1", b"1more", b"2", b"2more"], [b"1", b"2"]] if commit else [[], []]
    assert [node.values(0), node.values(1)] == expected
    assert [len(node.values(each, UNCOMMITTED)) for each in (0, 1)] == [4, 2]
    state = node.broker.transactions.describe("x").state
    assert state == ("CompleteCommit" if commit else "CompleteAbort")
    node.restart()
    assert [node.values(0), node.values(1)] == expected
    assert node.broker.transactions.describe("x").state == state


def test_the_end_of_a_transaction_becomes_durable_with_what_follows_or_soon() -> None:
    node = Node()
    node.create()
    producer, broker = Producer(node), node.broker
    assert producer.send(b"a") == [NONE]

    def flush_while_awaited() -> None:
        while broker.is_flush_awaited:
            flush = broker.begin_flush()
            assert flush is not None
            broker.finish_flush(flush, flush.run(), now_ms=node.now_ms)

    node.settle = flush_while_awaited  # type: ignore[method-assign]
    assert producer.end() == NONE
    assert node.values() == [b"a"]
    assert broker.transactions.describe("x").state == "PrepareCommit"
    flush_at = broker.advance(node.now_ms)
    assert 0 < flush_at - node.now_ms <= 100
    assert not broker.is_flush_awaited
    assert producer.send(b"b") == [NONE]  # both records, of one partition, share a flush
    assert broker.transactions.describe("x").state == "Ongoing"
    assert producer.end() == NONE
    node.wait(0)
    assert broker.transactions.describe("x").state == "PrepareCommit"
    node.wait(100)
    assert broker.transactions.describe("x").state == "CompleteCommit"


def test_a_commit_that_does_not_wait_for_its_data_syncs_three_times() -> None:
    """The data; Ongoing and PREPARE_COMMIT; the marker."""
    node = Node(transaction_state_log_num_partitions=1)
    node.create()
    producer, flushed = Producer(node), list[list[str]]()
    assert producer.send(b"a") == [NONE]
    assert producer.end() == NONE
    node.settle()
    settle, begin_flush = node.settle, node.broker.begin_flush

    def counted() -> object:
        flush = begin_flush()
        if flush is not None:
            flushed.append([log.topic_partition.topic for log, _ in flush.logs])
        return flush

    node.broker.begin_flush = counted  # type: ignore[method-assign, assignment]
    assert producer.send_and_commit(b"b", 0) == NONE
    settle()
    assert flushed == [["t"], ["__transaction_state"], ["t"], ["__transaction_state"]]
    assert node.values() == [b"a", b"b"]


def test_batches_that_wait_for_the_end_of_a_transaction_are_not_overtaken() -> None:
    """Clients have several requests under way on a connection; what waits is appended in their order."""
    node = Node()
    node.create()
    producer = Producer(node)
    assert producer.send(b"a") == [NONE]
    ended: list[Answer] = []
    node.request(
        node.broker.transactions.end_txn, "x", producer.identity.producer_id,
        producer.identity.producer_epoch, True, ended.append, client_transaction_version=2,
    )  # fmt: skip

    def flush() -> None:
        flushing = node.broker.begin_flush()
        assert flushing is not None
        node.broker.finish_flush(flushing, flushing.run(), now_ms=node.now_ms)

    flush()
    producer.identity, producer.sequences = ended[0], {}  # answered, the markers are not durable
    results: list[Any] = []

    def send(value: bytes) -> None:
        request = ProduceRequest({T0: producer.batch(0, value)}, transactional_id="x")
        node.request(node.broker.produce, request, results.append)

    for value in (b"0", b"1", b"2"):
        send(value)
    flush()  # the next transaction begins, and its record is not durable
    send(b"3")
    node.settle()
    assert [result[T0].error for result in results] == [NONE] * 4
    assert producer.end() == NONE
    assert node.values() == [b"a", b"0", b"1", b"2", b"3"]


def test_a_second_instance_fences_the_first() -> None:
    node = Node()
    node.create()
    first = Producer(node)
    assert first.send(b"never") == [NONE]
    second = Producer(node)
    assert second.identity.error == NONE
    assert second.identity.producer_epoch > first.identity.producer_epoch
    assert first.send(b"zombie") == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert first.end() == ErrorCode.PRODUCER_FENCED
    assert second.send(b"a") == [NONE]
    assert second.end() == NONE
    assert node.values() == [b"a"]


def test_a_transaction_that_takes_too_long_is_aborted() -> None:
    node = Node()
    node.create()
    producer = Producer(node)
    producer.send(b"late")
    node.wait(59_000)
    assert node.broker.transactions.describe("x").state == "Ongoing"
    node.wait(12_000)
    assert node.broker.transactions.describe("x").state == "CompleteAbort"
    assert producer.send(b"later") == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert producer.end() == ErrorCode.INVALID_TXN_STATE
    assert producer.end(commit=False) == NONE
    assert producer.send(b"again") == [NONE]
    assert producer.end() == NONE
    assert node.values() == [b"again"]


def test_a_partition_that_was_not_added() -> None:
    node = Node()
    node.create("t", 2)
    producer = Producer(node, version=1)
    producer.add(0)
    assert producer.send(b"a", 0, 1) == [NONE, ErrorCode.TRANSACTION_ABORTABLE]
    old = node.append(producer.batch(1, b"b"), 1, transactional_id="x", version=10)
    assert old.error == ErrorCode.INVALID_TXN_STATE
    assert node.broker.logs[T1].log_end_offset == 0


def test_partitions_that_cannot_join_keep_the_others_out() -> None:
    node = Node()
    node.create()
    producer = Producer(node, version=1)
    transactions = node.broker.transactions
    unknown, internal = TopicPartition("no", 0), TopicPartition("__consumer_offsets", 0)
    added = node.call(lambda reply: transactions.add_partitions(
        "x", producer.identity.producer_id, 0, [T0, unknown, internal], reply))  # fmt: skip
    assert added == {
        T0: ErrorCode.OPERATION_NOT_ATTEMPTED,
        unknown: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        internal: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
    assert transactions.describe("x").state == "Empty"


def test_a_deleted_topic_does_not_hold_up_a_transaction() -> None:
    node = Node()
    node.create("t")
    node.create("u")
    producer = Producer(node)
    producer.send(b"a")
    where = TopicPartition("u", 0)
    records = producer.batch(9, b"b")
    assert node.produce({where: records}, transactional_id="x")[where].error == NONE
    node.call(node.broker.topics.delete, ["u"], [])
    assert producer.end() == NONE
    assert node.values() == [b"a"]
    assert node.broker.transactions.describe("x").state == "CompleteCommit"


@pytest.mark.parametrize("is_created_again", [False, True])
def test_a_topic_is_deleted_while_its_first_batch_waits_for_the_coordinator(is_created_again: bool) -> None:
    node = Node()
    node.create()
    node.create("other")
    producer = Producer(node)
    assert producer.send(b"a") == [NONE]
    identity = producer.identity
    node.request(
        node.broker.transactions.end_txn, "x", identity.producer_id, identity.producer_epoch, True,
        lambda _: None, client_transaction_version=2,
    )  # fmt: skip
    batch = batch_of(
        b"b", producer_id=identity.producer_id, producer_epoch=identity.producer_epoch + 1, base_sequence=0,
        transactional=True,
    )  # fmt: skip
    results: list[Any] = []
    t0, other = TopicPartition("t", 0), TopicPartition("other", 0)
    request = ProduceRequest({t0: batch, other: batch}, transactional_id="x")
    node.request(node.broker.produce, request, results.append)  # parked until all markers are written
    assert not results
    node.request(node.broker.topics.delete, ["t"], [], lambda _: None)
    if is_created_again:
        node.request(node.broker.topics.create, [NewTopic("t", 1)], lambda _: None)
    node.settle()
    assert len(results) == 1
    errors = {partition: result.error for partition, result in results[0].items()}
    assert errors[other] == NONE
    assert errors[t0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node.close()


def test_a_directory_that_is_created_late_loads_no_other_partition_again() -> None:
    """The decision that is in flight is not durable: what is loaded would be taken for durable."""
    node = Node()
    node.create()
    producer = Producer(node)
    assert producer.send(b"a") == [NONE]
    identity, transactions, log = producer.identity, node.broker.transactions, node.broker.logs[T0]
    ended: list[Any] = []
    node.request(
        transactions.end_txn, "x", identity.producer_id, identity.producer_epoch, True, ended.append,
        client_transaction_version=2,
    )  # fmt: skip
    end = log.log_end_offset
    transactions.on_created()  # as ``MissingLogs`` calls it
    assert (log.log_end_offset, transactions.describe("x").state, ended) == (end, "Ongoing", [])
    node.settle()
    assert [answer.error for answer in ended] == [NONE]
    assert node.values() == [b"a"]
    assert transactions.describe("x").state == "CompleteCommit"


def test_a_file_of_the_coordinator_that_cannot_be_read_is_told_as_an_error_that_clients_retry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = Node()
    node.create()
    producer = Producer(node)

    def unreadable(*_: object, **__: object) -> None:
        raise LogDirError("cannot read")

    number = node.broker.transactions.coordinator.partition_of("x")
    monkeypatch.setattr(node.broker.logs[TopicPartition("__transaction_state", number)], "append", unreadable)
    assert producer.send(b"a") == [ErrorCode.NOT_ENOUGH_REPLICAS]
    monkeypatch.undo()
    producer.sequences.clear()
    assert producer.send(b"a") == [NONE]


def test_an_administrator_ends_a_transaction_in_one_partition() -> None:
    node = Node()
    node.create("t", 2)
    producer = Producer(node)
    producer.send(b"a", 0, 1)
    (entry,) = node.broker.describe_producers(T0)[1]
    marker = WritableMarker(entry.producer_id, entry.producer_epoch, False, [T0, TopicPartition("no", 0)], 0)
    (results,) = node.call(node.broker.transactions.write_markers, [marker])
    assert results == {T0: NONE, TopicPartition("no", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert node.broker.logs[T0].last_stable_offset == 2
    assert node.broker.logs[T1].last_stable_offset == 0
    listing = node.broker.transactions.list(Filters())
    assert [each.state for each in listing.transactions] == ["Ongoing"]


def test_producer_ids_are_never_given_out_twice() -> None:
    node = Node()
    ids = []
    for _ in range(3):
        for _ in range(1100):
            node.broker.call(
                node.broker.transactions.init_producer_id,
                None,
                0,
                -1,
                -1,
                lambda answer: ids.append(answer.producer_id),
                now_ms=NOW,
            )
            node.settle()
        node.restart()
    given = [each for each in ids if each >= 0]
    assert len(given) == len(set(given)) >= 3290
    assert node.broker.image.next_producer_id > max(given)


def test_no_producer_id_is_given_out_before_its_block_is_durable() -> None:
    """What is not durable, the next owner of the directory gives out again."""
    files = MemoryFiles()
    answers: list[Answer] = []
    broker = open_broker(files, "/data", now_ms=NOW)
    for _ in range(3):
        broker.call(broker.transactions.init_producer_id, None, 0, -1, -1, answers.append, now_ms=NOW)
    assert [answer.error for answer in answers] == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 3
    flush = broker.begin_flush()
    assert flush is not None
    failed = flush.run()
    broker.call(broker.transactions.init_producer_id, None, 0, -1, -1, answers.append, now_ms=NOW)
    assert answers[-1].error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.finish_flush(flush, failed, now_ms=NOW)
    broker.call(broker.transactions.init_producer_id, None, 0, -1, -1, answers.append, now_ms=NOW)
    assert answers[-1] == Answer(NONE, 0, 0)


def test_the_settings_of_the_broker_are_those_of_its_transactions() -> None:
    node = Node(
        transaction_max_timeout_ms=60_000,
        transactional_id_expiration_ms=3_600_000,
        transaction_abort_timed_out_transaction_cleanup_interval_ms=500,
        transaction_remove_expired_transaction_cleanup_interval_ms=1_000,
    )
    node.create()
    producer = Producer(node)
    transactions = node.broker.transactions
    for timeout_ms, error in ((60_000, NONE), (60_001, ErrorCode.INVALID_TRANSACTION_TIMEOUT)):
        answer = node.call(
            lambda reply, timeout_ms=timeout_ms: transactions.init_producer_id("y", timeout_ms, -1, -1, reply)
        )
        assert answer.error == error
    producer.send(b"slow")
    node.wait(60_000)
    node.wait(500)
    assert transactions.describe("x").state == "CompleteAbort"
    node.wait(3_539_000)
    assert transactions.describe("y").state == "Empty"
    node.wait(1_000)
    assert transactions.describe("y").error == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

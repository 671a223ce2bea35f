"""A broker that acknowledges from the page cache: when it is flushed, and what consumers see before."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.broker.node import COMMITTED, NOW, Node, batch_of
from tests.unit.storage.client import what_is_synced
from txnkafka.broker.records.records_deletion import Deleted, delete_records
from txnkafka.broker.requests import FetchPartition, FetchRequest, ProduceRequest
from txnkafka.coordinator.txn.txn_events import Answer
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.testing.memory_files import MemoryFiles

T0 = TopicPartition("t", 0)
NONE = ErrorCode.NONE


def test_the_page_cache_is_flushed_when_settings_want_it() -> None:
    node = Node(durability="page_cache")
    node.create(flush_messages="3")
    log = node.broker.logs[T0]
    assert node.append(batch_of(b"a")).error == NONE
    assert node.append(batch_of(b"b")).error == NONE
    assert (log.recovery_point, log.high_watermark) == (0, 2)
    assert node.broker.begin_flush() is None
    answers: list[Any] = []
    node.broker.call(node.broker.produce, ProduceRequest({T0: batch_of(b"c")}), answers.append, now_ms=NOW)
    assert not answers
    node.settle()
    assert (len(answers), log.recovery_point) == (1, 3)


def waits_for_flush_ms(node: Node) -> int:
    """How long a record is not on the disk."""
    log, begin = node.broker.logs[T0], node.broker.ticks.now
    while log.recovery_point < log.log_end_offset and node.broker.ticks.now < begin + 60_000:
        node.wait(1_000)
    return node.broker.ticks.now - begin


@pytest.mark.parametrize("by_ms", [0, -3_600_000, 3_600_000])
def test_flush_ms_is_not_put_off_by_a_clock_that_is_set(by_ms: int) -> None:
    node = Node(durability="page_cache")
    node.create(flush_ms="10000")
    assert node.append(batch_of(b"a")).error == NONE
    node.wait(4_000)
    node.set_clock(by_ms)
    assert waits_for_flush_ms(node) <= 9_000
    assert node.append(batch_of(b"b")).error == NONE
    assert 9_000 < waits_for_flush_ms(node) <= 13_000


def test_nothing_is_flushed_by_its_age_where_no_topic_wants_it() -> None:
    node = Node(durability="page_cache")
    node.create()
    assert node.append(batch_of(b"a")).error == NONE
    node.set_clock(-3_600_000)
    assert waits_for_flush_ms(node) == 60_000


def test_a_consumer_of_the_page_cache_does_not_wait_for_a_flush() -> None:
    node = Node(durability="page_cache")
    node.create()
    answers: list[Any] = []
    wanted = FetchRequest([FetchPartition(T0, 0, 1 << 20)], COMMITTED, max_wait_ms=500)
    node.request(node.broker.fetch, wanted, answers.append)
    node.broker.call(node.broker.produce, ProduceRequest({T0: batch_of(b"a")}), lambda _: None, now_ms=NOW)
    assert len(answers) == 1
    ((_, fetched),) = answers.pop()
    with fetched.records as records:
        assert len(records) == len(batch_of(b"a"))
    assert node.broker.begin_flush() is None


def test_no_producer_id_is_given_out_twice_when_the_machine_stops() -> None:
    """Data of the second producer would be taken for duplicates: acknowledged, and never appended."""
    node = Node(durability="page_cache")
    node.create(flush_messages="1")
    node.restart()
    first = new_producer_id(node)
    identity = {"producer_id": first, "producer_epoch": 0, "base_sequence": 0}
    assert node.append(batch_of(b"a", **identity)).error == NONE
    assert isinstance(node.files, MemoryFiles)
    node = Node(MemoryFiles(base=what_is_synced(node.files)), durability="page_cache")
    assert node.values() == [b"a"]
    assert new_producer_id(node) > first


def test_a_topic_that_was_created_is_there_when_the_machine_has_stopped() -> None:
    node = Node(durability="page_cache")
    node.create()
    assert isinstance(node.files, MemoryFiles)
    node = Node(MemoryFiles(base=what_is_synced(node.files)), durability="page_cache")
    assert node.append(batch_of(b"a")).error == NONE


def test_records_were_deleted_that_the_machine_then_loses() -> None:
    """The log ends before its start, without anything in it that was not deleted: it goes on at the start."""
    node = Node(durability="page_cache")
    node.create(flush_messages="4")
    for _ in range(4):
        assert node.append(batch_of(b"flushed")).error == NONE
    node.broker.data.checkpoint()
    for _ in range(3):
        assert node.append(batch_of(b"not flushed")).error == NONE
    answers: list[Any] = []
    delete_records(node.broker, {T0: -1}, answers.append)
    node.settle()
    assert answers == [{T0: Deleted(NONE, 7)}]
    assert isinstance(node.files, MemoryFiles)
    node = Node(MemoryFiles(base=what_is_synced(node.files)), durability="page_cache")
    log = node.broker.logs[T0]
    assert log.repairs
    assert (log.log_start_offset, log.log_end_offset) == (7, 7)


def new_producer_id(node: Node) -> int:
    answer: Answer = node.call(
        lambda reply: node.broker.transactions.init_producer_id(None, 60_000, -1, -1, reply)
    )
    return answer.producer_id


def test_the_coordinator_s_topic_is_created() -> None:
    node = Node(durability="page_cache")
    assert node.request(node.broker.transactions.find, "x") == ErrorCode.COORDINATOR_NOT_AVAILABLE
    node.settle()
    assert node.request(node.broker.transactions.find, "x") == NONE

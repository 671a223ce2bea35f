"""A broker that acknowledges from the page cache: when it is flushed, and what consumers see before."""

from __future__ import annotations

from typing import Any

from tests.unit.broker.node import COMMITTED, NOW, Node, batch_of
from txnkafka.broker.requests import FetchPartition, FetchRequest, ProduceRequest
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

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
    node.broker.produce(ProduceRequest({T0: batch_of(b"c")}), answers.append, now_ms=NOW)
    assert not answers
    node.settle()
    assert (len(answers), log.recovery_point) == (1, 3)


def test_a_consumer_of_the_page_cache_does_not_wait_for_a_flush() -> None:
    node = Node(durability="page_cache")
    node.create()
    answers: list[Any] = []
    wanted = FetchRequest([FetchPartition(T0, 0, 1 << 20)], COMMITTED, max_wait_ms=500)
    node.broker.fetch(wanted, answers.append, now_ms=node.now_ms)
    node.broker.produce(ProduceRequest({T0: batch_of(b"a")}), lambda _: None, now_ms=NOW)
    assert len(answers) == 1
    ((_, fetched),) = answers.pop()
    with fetched.records as records:
        assert len(records) == len(batch_of(b"a"))
    assert node.broker.begin_flush() is None


def test_the_coordinator_s_topic_is_created_without_a_flush() -> None:
    node = Node(durability="page_cache")
    assert node.broker.transactions.find("x") == ErrorCode.COORDINATOR_NOT_AVAILABLE
    node.settle()
    assert node.broker.transactions.find("x") == NONE

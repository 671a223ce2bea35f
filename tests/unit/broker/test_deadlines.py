"""A host takes no turn behind a request while nothing is due, and is never told so when something is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.broker.node import NOW, Node, Producer, batch_of
from txnkafka.broker.requests import FetchPartition, FetchRequest, NewTopic, ProduceRequest
from txnkafka.coordinator.group.group_requests import Identity, JoinGroup, Protocol
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition

T0 = TopicPartition("t", 0)


class Host:
    """Asks behind each request, as that of the server does, and looks whether the answer is true."""

    def __init__(self, **configs: Any) -> None:
        self.node = Node(durability="page_cache", **configs)
        self.node.create(segment_bytes="1000")
        self.producer = Producer(self.node)
        self.producer.send(b"first")
        self.producer.end()
        self.deadline = 0
        self.turn()

    def turn(self) -> None:
        """Turns until nothing is left to do at this time."""
        for _ in range(5):
            self.deadline = self.node.broker.advance(self.node.now_ms)
            self.node.settle()

    def is_quiet(self) -> bool:
        broker, now_ms = self.node.broker, self.node.now_ms
        if not broker.is_quiet(now_ms):
            return False
        assert broker.ticks.now < self.deadline
        broker.services.look_again()
        assert broker.advance(now_ms) >= self.deadline
        assert broker.begin_flush() is None
        assert broker.begin_work() is None
        return True


def test_a_transaction_in_the_page_cache_needs_no_turn() -> None:
    host = Host()
    assert host.is_quiet()
    for number in range(3):
        assert host.producer.send(b"%d" % number) == [ErrorCode.NONE]
        assert host.is_quiet()
        assert host.producer.end(commit=number % 2 == 0) == ErrorCode.NONE
        assert host.is_quiet()


def test_a_turn_is_due_at_the_deadline_and_not_before() -> None:
    host = Host()
    host.node.now_ms = host.deadline - 1
    assert host.is_quiet()
    host.node.now_ms += 1
    assert not host.is_quiet()
    host.turn()
    assert host.is_quiet()


def waiting_fetch(host: Host, max_wait_ms: int = 7) -> None:
    end = host.node.broker.logs[T0].log_end_offset
    wanted = FetchRequest([FetchPartition(T0, end, 1 << 20)], max_wait_ms=max_wait_ms)
    host.node.request(host.node.broker.fetch, wanted, lambda _: None)


def joining_member(host: Host) -> None:
    join = JoinGroup(Identity("g"), "consumer", (Protocol("range", b""),), 6000, 6000, needs_known_id=False)
    host.node.request(host.node.broker.groups.join, join, lambda _: None)


def new_topic(host: Host) -> None:
    host.node.request(host.node.broker.topics.create, [NewTopic("u", 1)], lambda _: None)


def append_to_a_new_segment(host: Host) -> None:
    value = bytes(900)  # more than is left in the segment
    host.node.request(host.node.broker.produce, ProduceRequest({T0: batch_of(value)}), lambda _: None)


def failed_creation(host: Host) -> None:
    host.node.broker.topics.missing_logs.creation_failed()


def grown_metadata_log(host: Host) -> None:
    host.node.broker.metadata.size_since_snapshot += 1


@pytest.mark.parametrize(
    "event",
    [
        waiting_fetch,
        joining_member,
        new_topic,
        append_to_a_new_segment,
        failed_creation,
        grown_metadata_log,
    ],
)
def test_what_may_be_due_earlier_is_seen(event: Callable[[Host], None]) -> None:
    host = Host()
    if event is joining_member:
        host.node.request(host.node.broker.groups.find, "g")
        host.turn()
    assert host.is_quiet()
    event(host)
    assert not host.is_quiet()


@pytest.mark.parametrize("by_ms", [-3_600_000, 3_600_000])
def test_nothing_is_due_because_the_clock_is_set(by_ms: int) -> None:
    host = Host()
    assert host.is_quiet()
    host.node.set_clock(by_ms)
    assert host.is_quiet()


def test_a_fetch_that_waits_longer_than_others_changes_nothing() -> None:
    host = Host()
    waiting_fetch(host, 500)
    host.turn()
    assert host.deadline == NOW + 500
    waiting_fetch(host, 600)
    assert host.is_quiet()
    waiting_fetch(host, 499)
    assert not host.is_quiet()


def test_a_request_that_is_parked_is_looked_after() -> None:
    host = Host()
    node, producer = host.node, host.producer
    node.request(
        node.broker.produce,
        ProduceRequest({T0: producer.batch(0, b"a")}, transactional_id="x"),
        lambda _: None,
    )
    node.broker.transactions.coordinator.markers.begin = lambda *_: None  # type: ignore[method-assign]
    producer.end()
    answers: list[Any] = []
    node.request(node.broker.transactions.init_producer_id, "x", 60_000, -1, -1, answers.append)
    begin_ms, longest_ms = node.now_ms, node.broker.transactions.coordinator.config.max_parked_ms
    while not answers:
        assert node.now_ms < begin_ms + longest_ms
        host.turn()
        if host.is_quiet():
            node.now_ms = host.deadline
            host.turn()
    assert answers[0].error == ErrorCode.CONCURRENT_TRANSACTIONS
    assert node.now_ms == begin_ms + longest_ms


def test_nothing_is_begun_while_the_flush_that_is_awaited_has_another_before_it() -> None:
    node = Node()
    node.create()
    for _ in range(5):
        node.wait(0)
    node.request(node.broker.produce, ProduceRequest({T0: batch_of(b"a")}), lambda _: None)
    assert not node.broker.is_quiet(node.now_ms)
    flush = node.broker.begin_flush()
    assert flush is not None
    node.request(node.broker.produce, ProduceRequest({T0: batch_of(b"b")}), lambda _: None)
    assert node.broker.is_quiet(node.now_ms)
    node.broker.finish_flush(flush, flush.run(), now_ms=node.now_ms)
    assert not node.broker.is_quiet(node.now_ms)

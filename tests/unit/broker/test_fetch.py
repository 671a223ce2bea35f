"""Fetches from a broker without sockets, and where offsets, times and epochs are in its logs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.broker.node import COMMITTED, NOW, UNCOMMITTED, Node, Producer, batch_of
from txnkafka.broker.requests import FetchPartition, FetchRequest, OffsetQuery
from txnkafka.error_codes import ErrorCode
from txnkafka.model import IsolationLevel, TopicPartition
from txnkafka.storage.log.log_slice import LogSlice

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NONE = ErrorCode.NONE


def sizes(answer: Any) -> list[int]:
    """Bytes of the slices, which are released."""
    found = []
    for _, fetched in answer:
        with fetched.records as records:
            found.append(len(records))
    return found


def test_a_consumer_waits_until_there_is_enough_or_its_time_is_over() -> None:
    node = Node()
    node.create()
    answers: list[Any] = []
    size = len(batch_of(b"a"))
    wanted = FetchRequest([FetchPartition(T0, 0, 1 << 20)], min_bytes=2 * size, max_wait_ms=500)
    node.request(node.broker.fetch, wanted, answers.append)
    node.append(batch_of(b"a"))
    assert not answers
    node.append(batch_of(b"b"))
    assert sizes(answers.pop()) == [2 * size]
    more = FetchRequest([FetchPartition(T0, 2, 1 << 20)], min_bytes=2 * size, max_wait_ms=500)
    node.request(node.broker.fetch, more, answers.append)
    node.append(batch_of(b"c"))
    node.wait(499)
    assert not answers
    node.wait(1)
    assert sizes(answers.pop()) == [size]
    withdraw = node.request(
        node.broker.fetch, FetchRequest([FetchPartition(T0, 3, 1)], max_wait_ms=500), answers.append
    )
    withdraw()
    node.append(batch_of(b"d"))
    node.wait(10_000)
    assert not answers


def test_consumers_are_answered_in_the_order_of_their_deadlines() -> None:
    node = Node()
    node.create()
    answers: list[int] = []
    withdrawn: list[Any] = []
    for number in range(400):  # most of them go before their time
        wanted = FetchRequest([FetchPartition(T0, 0, 1 << 20)], max_wait_ms=1000 - number)
        call = node.request(node.broker.fetch, wanted, lambda _, number=number: answers.append(number))
        if number % 100:
            withdrawn.append(call)
        if number % 10 == 9:
            for each in withdrawn:
                each()
            withdrawn.clear()
    assert node.broker.advance(node.now_ms) == node.now_ms + 700
    node.wait(800)
    assert answers == [300, 200]
    assert node.broker.advance(node.now_ms) == node.now_ms + 100
    node.wait(200)
    assert answers == [300, 200, 100, 0]


def test_a_consumer_of_committed_records_waits_for_the_marker() -> None:
    node = Node()
    node.create()
    producer = Producer(node)
    answers: list[Any] = []
    wanted = FetchRequest([FetchPartition(T0, 0, 1 << 20)], COMMITTED, max_wait_ms=500)
    node.request(node.broker.fetch, wanted, answers.append)
    producer.send(b"a")
    assert not answers
    producer.end()
    ((_, fetched),) = answers[0]
    assert fetched.last_stable_offset == 2
    fetched.records.release()


def test_a_waiting_fetch_keeps_no_file() -> None:
    """It reads again when there is more: until then, nothing is held."""
    node = Node()
    node.create()
    node.append(batch_of(b"a"))
    answers: list[Any] = []
    slices: list[Any] = []
    wanted = FetchRequest([FetchPartition(T0, 0, 1 << 20)], min_bytes=10_000, max_wait_ms=500)
    with pytest.MonkeyPatch.context() as patch:
        initialize = LogSlice.__init__

        def noted(self: LogSlice, *arguments: Any) -> None:
            initialize(self, *arguments)
            slices.append(self)

        patch.setattr(LogSlice, "__init__", noted)
        node.broker.call(node.broker.fetch, wanted, answers.append, now_ms=NOW)
        node.append(batch_of(b"b"))
    held = [each for each in slices if each._held is not None]
    for each in held:
        each.release()
    assert (len(answers), len(slices), held) == (0, 2, [])


def test_the_first_batch_is_whole_whatever_its_size() -> None:
    node = Node()
    node.create("t", 2)
    for partition in (0, 1):
        for _ in range(2):
            node.append(batch_of(b"v" * 100), partition)
    size = len(batch_of(b"v" * 100))
    answers: list[Any] = []
    for max_bytes in (1, size + 1, 3 * size, 4 * size):
        wanted = [FetchPartition(T0, 0, 1 << 20), FetchPartition(T1, 0, 1 << 20)]
        node.broker.call(
            node.broker.fetch, FetchRequest(wanted, max_bytes=max_bytes), answers.append, now_ms=NOW
        )
    found = [sizes(answer) for answer in answers]
    assert found == [[size, 0], [size + 1, 0], [2 * size, size], [2 * size, 2 * size]]


def test_a_part_of_a_first_batch_is_not_answered() -> None:
    node = Node()
    node.create("t", 2)
    for partition in (0, 1):
        node.append(batch_of(b"v" * 100), partition)
    size = len(batch_of(b"v" * 100))
    answers: list[Any] = []
    for max_bytes in (size + 5, 2 * size - 1, 2 * size):
        wanted = [FetchPartition(T0, 0, 1 << 20), FetchPartition(T1, 0, 1 << 20)]
        node.broker.call(
            node.broker.fetch, FetchRequest(wanted, max_bytes=max_bytes), answers.append, now_ms=NOW
        )
    assert [sizes(answer) for answer in answers] == [[size, 0], [size, 0], [size, size]]
    wanted = [FetchPartition(T0, 0, 1 << 20), FetchPartition(T1, 0, 1 << 20)]
    request = FetchRequest(wanted, COMMITTED, max_bytes=size + 5)
    node.broker.call(node.broker.fetch, request, answers.append, now_ms=NOW)
    assert [fetched.aborted_transactions for _, fetched in answers[-1]] == [[], None]
    assert sizes(answers[-1]) == [size, 0]
    request = FetchRequest(wanted, COMMITTED, max_bytes=size)
    node.broker.call(node.broker.fetch, request, answers.append, now_ms=NOW)
    assert [fetched.aborted_transactions for _, fetched in answers[-1]] == [[], []]
    assert sizes(answers[-1]) == [size, 0]


@pytest.mark.parametrize("isolation_level", [UNCOMMITTED, COMMITTED])
def test_a_consumer_behind_does_not_wait_at_the_end_of_each_segment(isolation_level: IsolationLevel) -> None:
    """Its answers end there: more bytes never come into them, whatever it waits for."""
    node = Node()
    node.create("t", 1, segment_bytes="300")
    for _ in range(6):
        node.append(batch_of(b"v" * 100))
    answers: list[Any] = []
    for offset in range(6):
        wanted = [FetchPartition(T0, offset, 1 << 20)]
        request = FetchRequest(wanted, isolation_level, min_bytes=1000, max_wait_ms=500)
        node.request(node.broker.fetch, request, answers.append)
    assert [len(sizes(answer)) for answer in answers] == [1] * 5  # the last batch is in the newest segment


@pytest.mark.parametrize(("max_bytes", "configured"), [(300, 1 << 20), (1 << 20, 1024)])
def test_a_consumer_waits_for_no_more_bytes_than_it_takes(max_bytes: int, configured: int) -> None:
    """Neither beyond its own limit nor beyond that of the broker, nor where the rest is a part of a batch."""
    node = Node(fetch_max_bytes=configured)
    node.create("t", 2)
    for partition in (0, 1):
        for _ in range(10):
            node.append(batch_of(b"v" * 100), partition)
    answers: list[Any] = []
    wanted = [FetchPartition(T0, 8, 1 << 20), FetchPartition(T1, 0, 1 << 20)]
    request = FetchRequest(wanted, min_bytes=1 << 20, max_bytes=max_bytes, max_wait_ms=500)
    node.request(node.broker.fetch, request, answers.append)
    assert len(answers) == 1
    sizes(answers[0])


@pytest.mark.parametrize(
    ("partition", "offset", "epoch", "error"),
    [
        (T0, 2, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        (T0, -1, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        (TopicPartition("no", 0), 0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (T0, 0, 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_an_error_is_answered_at_once(
    partition: TopicPartition, offset: int, epoch: int, error: ErrorCode
) -> None:
    node = Node()
    node.create()
    node.append(batch_of(b"a"))
    answers: list[Any] = []
    wanted = FetchRequest([FetchPartition(partition, offset, 100, epoch)], max_wait_ms=10_000)
    node.broker.call(node.broker.fetch, wanted, answers.append, now_ms=NOW)
    assert [fetched.error for _, fetched in answers[0]] == [error]


def test_where_times_are_in_a_log() -> None:
    node = Node()
    node.create()
    producer = Producer(node)
    node.append(batch_of(b"a"))
    node.append(batch_of(b"b"))
    producer.send(b"c")
    wanted = [-1, -2, -3, -4, -5, NOW, NOW + 1]
    found = {}
    for level in (UNCOMMITTED, COMMITTED):
        found[level] = [node.broker.list_offsets([OffsetQuery(T0, time)], level)[T0][:3] for time in wanted]
    nowhere = (NONE, -1, -1)
    assert found[UNCOMMITTED] == [
        (NONE, -1, 3), (NONE, -1, 0), (NONE, NOW, 0), (NONE, -1, 0), nowhere, (NONE, NOW, 0), nowhere
    ]  # fmt: skip
    assert found[COMMITTED][0] == (NONE, -1, 2)
    twice = node.broker.list_offsets([OffsetQuery(T0, -1), OffsetQuery(T0, -2)], UNCOMMITTED)
    assert twice[T0].error == ErrorCode.INVALID_REQUEST
    assert node.broker.end_offset_for_epoch(T0, 0) == (NONE, 0, 3)
    assert node.broker.end_offset_for_epoch(T0, 7) == (NONE, -1, -1)


def test_the_leader_epoch_of_an_empty_log_ends_at_its_beginning() -> None:
    node = Node()
    node.create()
    assert node.broker.end_offset_for_epoch(T0, 0) == (NONE, 0, 0)
    assert node.broker.list_offsets([OffsetQuery(T0, -2)], COMMITTED)[T0].leader_epoch == 0
    assert node.broker.end_offset_for_epoch(T0, 1) == (NONE, -1, -1)


def test_a_fetch_waits_no_longer_when_the_clock_is_put_back() -> None:
    node = Node()
    node.create()
    answers: list[Any] = []
    request = FetchRequest([FetchPartition(T0, 0, 1 << 20)], max_wait_ms=500)
    node.broker.call(node.broker.fetch, request, answers.append, now_ms=NOW)
    node.set_clock(-3_600_000)
    assert node.broker.advance(node.now_ms) <= NOW + 500
    node.wait(499)
    assert not answers
    node.wait(1)
    assert len(answers) == 1


def test_a_fetch_waits_as_long_when_the_clock_is_set_forward() -> None:
    node = Node()
    node.create()
    answers: list[Any] = []
    request = FetchRequest([FetchPartition(T0, 0, 1 << 20)], max_wait_ms=500)
    node.broker.call(node.broker.fetch, request, answers.append, now_ms=NOW)
    node.set_clock(3_600_000)
    node.wait(499)
    assert not answers
    node.wait(1)
    assert len(answers) == 1

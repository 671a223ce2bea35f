"""When a broker deletes old segments, and when it removes their files."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.broker.node import Node, batch_of
from txnkafka.broker.requests import FetchPartition, FetchRequest
from txnkafka.error_codes import ErrorCode
from txnkafka.model import TopicPartition
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.work import Work
from txnkafka.testing.memory_files import MemoryFiles

T0 = TopicPartition("t", 0)
HOUR_MS = 3_600_000


class Files(MemoryFiles):
    """Removal fails while it is told to. ``read_in_call`` counts the indexes that a call of the broker has
    read while its host, and everybody else, waited."""

    fails = False
    is_work = False
    read_in_call = read_by_work = 0

    def read(self, path: str, limit: int) -> bytes:
        if path.endswith("index"):
            self.read_by_work += self.is_work
            self.read_in_call += not self.is_work
        return super().read(path, limit)

    def remove(self, path: str) -> None:
        if self.fails and path.endswith(".deleted"):
            raise OSError(errno.EIO, "a bad disk", path)
        super().remove(path)


def made(*, delay_ms: int = 1_000, **configs: Any) -> Node:
    """A topic whose records are old after a second."""
    node = Node(Files(), **configs)
    settings = {"segment_bytes": "300", "retention_ms": "1000", "file_delete_delay_ms": str(delay_ms)}
    assert node.create("t", **settings) == ErrorCode.NONE
    for _ in range(5):
        assert node.append(batch_of(b"x" * 100)).error == ErrorCode.NONE
    return node


def run(node: Node, work: Work) -> None:
    """Work, as the thread of a host runs it."""
    files: Any = node.files
    files.is_work = True
    work.run()
    files.is_work = False
    node.broker.finish_work(work, None, now_ms=node.now_ms)


def deleted(node: Node) -> int:
    return sum(each.name.endswith(".deleted") for each in node.files.list("/data/t-0"))


def wait(node: Node, ms: int) -> None:
    """As a host: turn by turn."""
    until = node.broker.ticks.now + ms
    while (due := node.broker.advance(node.now_ms)) <= until:
        node.settle()
        node.wait(max(due - node.broker.ticks.now, 0))
    node.settle()
    node.wait(until - node.broker.ticks.now)


@pytest.mark.parametrize("interval_ms", [300_000, 24 * HOUR_MS])
def test_the_first_look_at_retention_is_soon_after_the_start(interval_ms: int) -> None:
    """A broker that is restarted more often than its interval would never delete anything."""
    node = made(log_retention_check_interval_ms=interval_ms)
    log = node.broker.logs[T0]
    wait(node, 29_000)
    assert log.log_start_offset == 0
    wait(node, 1_000)
    assert log.log_start_offset == 4
    node.append(batch_of(b"x" * 100))
    wait(node, 60_000)
    assert log.log_start_offset == 4


def test_the_first_look_is_not_later_than_the_interval() -> None:
    node = made(log_retention_check_interval_ms=2_000)
    wait(node, 2_000)
    assert node.broker.logs[T0].log_start_offset == 4


@pytest.mark.parametrize("by_ms", [0, -HOUR_MS])
@pytest.mark.parametrize("delay_ms", [1_000, 60_000])
def test_deleted_files_are_removed_after_their_delay(delay_ms: int, by_ms: int) -> None:
    """Whatever the interval of retention is, and also when the clock is put back meanwhile."""
    node = made(delay_ms=delay_ms, log_retention_check_interval_ms=24 * HOUR_MS)
    wait(node, 30_000)
    there = deleted(node)
    assert there > 0
    if by_ms:
        node.set_clock(by_ms)
    wait(node, delay_ms - 1)
    assert deleted(node) == there
    wait(node, 3_001)
    assert deleted(node) == 0


def test_files_of_several_deletions_go_one_after_the_other() -> None:
    node = made(delay_ms=10_000, log_retention_check_interval_ms=4_000)
    wait(node, 4_000)
    there = deleted(node)
    for _ in range(3):
        node.append(batch_of(b"x" * 100))
    wait(node, 4_000)
    assert deleted(node) > there
    wait(node, 7_000)
    assert 0 < deleted(node) < there + 1
    wait(node, 8_000)
    assert deleted(node) == 0


def test_files_that_cannot_be_removed_are_tried_again_at_the_interval(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = made(log_retention_check_interval_ms=60_000)
    files: Any = node.files
    files.fails = True
    with caplog.at_level(logging.ERROR, "txnkafka.broker"):
        wait(node, 30_000)
        there = deleted(node)
        wait(node, 50_000)
    assert len(caplog.records) == 1
    files.fails = False
    assert deleted(node) == there > 0
    wait(node, 60_000)
    assert deleted(node) == 0


def test_what_is_read_stays_until_it_is_released() -> None:
    node = made()
    answers: list[Any] = []
    request = FetchRequest([FetchPartition(T0, 0, 1 << 20)])
    node.request(node.broker.fetch, request, answers.append)
    ((_, fetched),) = answers[0]
    with fetched.records as records:
        before = bytes(records.read())
        wait(node, 40_000)
        assert deleted(node) == 0
        assert node.broker.logs[T0].log_start_offset == 4
        assert bytes(records.read()) == before


def test_the_upkeep_of_many_logs_leaves_room_for_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call of the broker looks after some, and what is asked for meanwhile comes before the rest."""
    node = Node(log_retention_check_interval_ms=1_000)
    assert node.create("t", 500) == ErrorCode.NONE
    kept_up, counts, answers = list[PartitionLog](), list[int](), list[int]()
    upkeep = node.broker.manager.upkeep

    def counted(log: PartitionLog, now_ms: int) -> Iterator[Work]:
        kept_up.append(log)
        return upkeep(log, now_ms)

    monkeypatch.setattr(node.broker.manager, "upkeep", counted)
    node.now_ms += 1_000
    node.broker.advance(node.now_ms)
    while (work := node.broker.begin_work()) is not None:
        counts.append(len(kept_up) - sum(counts))
        if not answers:
            node.broker.jobs.add(lambda: None, lambda _: answers.append(len(kept_up)))
        node.broker.finish_work(work, None, now_ms=node.now_ms)
    assert set(kept_up) == set(node.broker.logs.values())
    assert len(kept_up) == 500
    assert max(counts, default=500) < 100
    assert answers[0] < 100


def test_how_old_segments_are_is_read_while_requests_are_served() -> None:
    """A broker that was just started knows it of none of its logs; then all of them are looked at."""
    node = Node(Files(), log_retention_check_interval_ms=1_000)
    settings = {"segment_bytes": "300", "retention_ms": "60000"}
    assert node.create("t", 10, **settings) == ErrorCode.NONE
    for partition in range(10):
        for _ in range(4):
            assert node.append(batch_of(b"x" * 100), partition).error == ErrorCode.NONE
    node.restart()
    files: Any = node.files
    files.read_in_call = 0
    for ms, starts in ((1_000, {0}), (30_000, {0}), (60_000, {3})):
        node.now_ms += ms
        node.broker.advance(node.now_ms)
        while (work := node.broker.begin_work()) is not None:
            run(node, work)
        assert {log.log_start_offset for log in node.broker.logs.values()} == starts
    assert files.read_in_call == 0
    assert files.read_by_work == 10 * 3 * 2

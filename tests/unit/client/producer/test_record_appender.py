"""Records that are added to open batches without a lock."""

from __future__ import annotations

import sys
from threading import Barrier, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from txnkafka._core.key_partition import partition_of
from txnkafka._core.record_list import RecordAppender, RecordList

PARTITIONS = 4


def topic(limit: int = 1 << 20, sticky: int = 1) -> Any:
    lists = {number: RecordList(f"batch {number}", limit) for number in range(PARTITIONS)}
    return SimpleNamespace(open=lists, sticky=SimpleNamespace(number=sticky), count=PARTITIONS)


def appender(topics: dict[str, Any], *, accepts: bool = True, hashes: bool = True) -> RecordAppender:
    return RecordAppender(topics, SimpleNamespace(is_here=True), lambda: 77, accepts=accepts, hashes=hashes)


@pytest.mark.parametrize("hashes", [True, False])
def test_the_partition_is_the_given_one_or_of_the_key_or_the_sticky_one(*, hashes: bool) -> None:
    lists = topic()
    append = appender({"t": lists}, hashes=hashes).append
    for key, partition in [(b"anna", None), (b"carl", None), (b"anna", 2), (None, 2), (None, None)]:
        future = append("t", key, b"v", partition, None, None)
        assert future is not None
        number = 1 if key is None or not hashes else partition_of(key, PARTITIONS)
        assert future.batch == f"batch {number if partition is None else partition}"


def test_the_time_is_the_given_one_or_that_of_the_clock() -> None:
    append = appender({"t": topic()}).append
    given, now = append("t", None, None, 0, 5, None), append("t", None, None, 0, None, None)
    assert given is not None
    assert now is not None
    assert (given.timestamp, now.timestamp) == (5, 77)


def test_without_an_open_batch_nothing_is_added() -> None:
    lists = topic(limit=100)
    lists.open[1].is_open = False
    found = appender({"t": lists})
    assert found.append("other", None, b"v", 0, None, None) is None
    assert found.append("t", None, b"v", 9, None, None) is None
    assert found.append("t", None, b"v", 1, None, None) is None
    assert found.append("t", None, b"v" * 30, 0, None, None) is not None
    assert found.append("t", None, b"v" * 30, 0, None, None) is None  # full
    found.accepts = False
    assert found.append("t", None, b"v", 2, None, None) is None
    assert [len(each) for each in lists.open.values()] == [1, 0, 0, 0]


def test_a_forked_child_adds_nothing() -> None:
    process = SimpleNamespace(is_here=False)
    lists = topic()
    append = RecordAppender({"t": lists}, process, None, accepts=True, hashes=True).append
    assert append("t", None, b"v", 0, None, None) is None


def test_threads_get_different_records_and_none_is_added_after_the_end() -> None:
    switch, start = sys.getswitchinterval(), Barrier(5)
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            records = RecordList("batch", 1 << 30)
            lists = SimpleNamespace(open={0: records}, sticky=None, count=1)
            append = appender({"t": lists}).append
            futures: list[list[Any]] = [[] for _ in range(4)]

            def add(found: list[Any], thread: int, append: Any = append) -> None:
                start.wait()
                for number in range(10_000):
                    value = b"%d %d" % (thread, number)
                    future = append("t", None, value, 0, None, [("h", b"v")] if number % 3 else None)
                    if future is None:
                        return
                    found.append((future, value))

            threads = [Thread(target=add, args=(found, i)) for i, found in enumerate(futures)]
            for thread in threads:
                thread.start()
            start.wait()
            while len(records) < 1000:
                pass
            records.is_open = False
            count, values = len(records), [row[1] for row in records.records]
            for thread in threads:
                thread.join()
            assert len(records) == count == sum(map(len, futures))
            indexes = {future.index: value for found in futures for future, value in found}
            assert [indexes[i] for i in range(count)] == values
    finally:
        sys.setswitchinterval(switch)

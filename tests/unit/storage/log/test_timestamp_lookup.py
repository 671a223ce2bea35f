"""Offsets by time in a log that this process owns."""

from __future__ import annotations

import errno
from contextlib import suppress

import pytest

from tests.unit.storage.client import NOW, Log
from txnkafka.env import DataFiles
from txnkafka.errors import LogDirError
from txnkafka.storage.log.timestamp_lookup import find_by_timestamp, find_newest
from txnkafka.storage.log.truncation import delete_old_segments
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles


def test_a_segment_that_kafkas_cleaner_has_emptied() -> None:
    """Kafka searches it because its file is young, and finds nothing; here the search goes on."""
    log = Log()
    log.plain(timestamp=NOW)
    log.log.roll(NOW)
    log.plain(timestamp=NOW + 5)
    log.log.close()
    files, directory = log.log.files, log.log.directory
    for ending in ("log", "index", "timeindex"):
        file = files.open_to_write(f"{directory}/{0:020}.{ending}")
        file.truncate(0)
        file.close()
    log.restart()
    assert (log.bases, log.log.segments[0].size) == ([0, 2], 0)
    for timestamp in (NOW - 1, NOW, NOW + 5):
        found = find_by_timestamp(log.log, timestamp)
        assert found is not None
        assert (found.offset, found.timestamp) == (2, NOW + 5)
    assert find_by_timestamp(log.log, NOW + 6) is None
    assert find_newest(log.log) == find_by_timestamp(log.log, NOW)


def rolled(count: int, files: DataFiles | None = None) -> Log:
    """A log of closed segments of two batches each, each a second younger, and an empty active one."""
    log = Log(files=files, index_interval_bytes=0)
    for number in range(count):
        log.plain(timestamp=NOW + 1_000 * number)
        log.plain(timestamp=NOW + 1_000 * number)
        log.log.roll(NOW)
    log.restart()
    return log


def test_indexes_do_not_stay_in_memory() -> None:
    """A log may have thousands of segments, and their indexes several megabytes each."""
    log = rolled(5)
    closed = log.log.segments[:-1]
    newest = find_newest(log.log)
    assert newest is not None
    assert newest.offset == 16
    found = find_by_timestamp(log.log, NOW + 1_500)
    assert found is not None
    assert found.offset == 8
    assert delete_old_segments(log.log, NOW) == 0
    assert [len(segment.offset_index) + len(segment.time_index) for segment in closed] == [0] * 5
    assert log.log.segments.find(0, 0) is not None
    assert find_by_timestamp(log.log, NOW) is not None
    assert len(closed[0].offset_index) > 0, "those that are read stay"


@pytest.mark.parametrize("is_lost", [False, True])
def test_an_index_that_could_not_be_read_is_read_by_the_next_lookup(is_lost: bool) -> None:
    """Without its entries no segment has a timestamp, and records would be left out of the answer."""
    plan = FaultPlan(error=errno.EMFILE)
    log = rolled(3, FaultyFiles(MemoryFiles(), plan))
    if is_lost:
        log.log.files.remove(log.log.segments[0].path("timeindex"))
    for later in range(1, 20):
        plan.fails = plan.counted + later
        with suppress(OSError, LogDirError):
            find_by_timestamp(log.log, NOW)
        if not plan.failed:
            break
        plan.failed.clear()
        found = find_by_timestamp(log.log, NOW)
        assert found is not None
        assert found.offset == 0
        log.restart()
    assert 3 < later < 19

"""Offsets by time in a log that this process owns."""

from __future__ import annotations

import errno
import random
from contextlib import suppress

import pytest

from tests.unit.storage.client import NOW, Log
from txnkafka._core.encode import empty_batch, encode_batch
from txnkafka.env import DataFiles
from txnkafka.errors import LogDirError
from txnkafka.storage.log.timestamp_lookup import find_by_timestamp, find_newest
from txnkafka.storage.log.truncation import delete_old_segments, delete_records
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


def with_records(log: Log, *batches: list[int]) -> list[int]:
    """Append batches of records with these times; the segments are as the log's settings want them."""
    for times in batches:
        log.append(encode_batch([(b"k", b"v", time, []) for time in times]))
    log.log.flush()
    return [time for times in batches for time in times]


def newest_of(times: list[int], start: int) -> tuple[int, int] | None:
    left = [(time, -offset) for offset, time in enumerate(times) if offset >= start]
    time, offset = max(left, default=(None, 0))
    return None if time is None else (time, -offset)


@pytest.mark.parametrize(
    "batches",
    [
        [[100], [50], [60]],
        [[100, 50, 60]],
        [[50, 100, 60, 100], [100], [7]],
        [[100], [50], [200], [60], [55]],
        [[100], [50], [100]],
        [[-1], [-1, -1]],
        [[100], [-1, -1]],
    ],
)
@pytest.mark.parametrize("segment_bytes", [120, 200, 1 << 20])
def test_the_newest_record_is_one_that_exists(batches: list[list[int]], segment_bytes: int) -> None:
    """After ``DeleteRecords`` the times of deleted records are still in the header and the index."""
    log = Log(segment_bytes=segment_bytes, index_interval_bytes=0)
    times = with_records(log, *batches)
    for start in range(len(times) + 1):
        delete_records(log.log, start)
        found = find_newest(log.log)
        assert (found and found[:2]) == newest_of(times, start), start


@pytest.mark.parametrize("seed", range(30))
def test_the_newest_record_of_random_logs(seed: int) -> None:
    chance = random.Random(seed)
    log = Log(segment_bytes=chance.choice([130, 300, 1 << 20]), index_interval_bytes=chance.choice([0, 200]))
    batches = [[chance.randint(-1, 30) for _ in range(chance.randint(1, 5))] for _ in range(12)]
    times = with_records(log, *batches)
    for start in sorted(chance.sample(range(len(times) + 1), 8)):
        delete_records(log.log, start)
        found = find_newest(log.log)
        assert (found and found[:2]) == newest_of(times, start), start


def test_the_newest_record_is_not_in_a_batch_that_the_cleaner_has_emptied() -> None:
    """The batch keeps its largest timestamp; Kafka looks for a record with it, and answers -1."""
    log = Log()
    with_records(log, [50])
    header = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    log.append(encode_batch([(b"k", b"v", 100, [])], **header))
    with_records(log, [60, 70])
    log.log.close()
    files, path = log.log.files, log.log.segments[0].path("log")
    emptied = empty_batch(base_offset=1, last_offset=1, max_timestamp=100, **header)
    content = files.read(path, 1 << 20)
    begin = content.index((1).to_bytes(8, "big") + content[8:12], 12)
    end = content.index((2).to_bytes(8, "big"), begin + 12)
    file = files.open_to_write(path)
    file.truncate(0)
    file.write(0, [content[:begin], emptied, content[end:]])
    file.close()
    for kind in ("index", "timeindex"):
        files.remove(log.log.segments[0].path(kind))
    log.restart()
    found = find_newest(log.log)
    assert found is not None
    assert found[:2] == (70, 3)


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

"""The limit on open ``.log`` files: which are closed, which must stay open; reads and writes work the
same."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.unit.storage.client import NOW, data
from txnkafka.config import LogConfig
from txnkafka.env import DataFiles, LocalDataFiles, make_directories
from txnkafka.model import TopicPartition
from txnkafka.storage.cleaner.compaction import clean
from txnkafka.storage.log.log_read import read
from txnkafka.storage.log.log_resources import LogResources
from txnkafka.storage.log.open_files import OpenFiles
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.log.truncation import delete_old_segments, delete_records, truncate_to
from txnkafka.storage.recovery.log_loader import Start, open_log
from txnkafka.testing.memory_files import MemoryFiles


def logs(count: int, limit: int, files: DataFiles, top: str = "/data") -> list[PartitionLog]:
    """Open the logs of one owner, each with a durable batch."""
    resources = LogResources(max_open_files=limit)
    made = []
    for number in range(count):
        directory = files.join(top, f"t-{number}")
        make_directories(files, directory)
        config = LogConfig(segment_bytes=2000, index_interval_bytes=100)
        partition = TopicPartition("t", number)
        opened = open_log(files, directory, partition, config, Start(), now_ms=NOW, resources=resources)
        opened.log.append(data(), now_ms=NOW)
        opened.log.flush()
        made.append(opened.log)
    return made


def content(log: PartitionLog) -> bytes:
    with read(log, 0, max_bytes=1 << 20, isolation_level=None).records as records:
        return bytes(records.read())


def descriptors() -> int:
    """Return the number of open descriptors of this process."""
    return len(os.listdir("/dev/fd"))


def test_files_at_rest_are_closed_down_to_the_limit(tmp_path: Path) -> None:
    before = descriptors()
    made = logs(5, 2, LocalDataFiles(), str(tmp_path))
    assert descriptors() - before == len(made[0].resources.open_files) == 2
    batch = content(made[4])
    assert [content(log) == batch for log in made] == [True] * 5
    assert descriptors() - before == 2
    for log in made:
        log.close()
    assert descriptors() - before == len(made[0].resources.open_files) == 0


def test_a_file_with_unsynced_bytes_stays_open_until_its_flush_is_finished() -> None:
    """A descriptor that is opened later may not report a write that failed before."""
    made = logs(5, 2, MemoryFiles())
    open_files = made[0].resources.open_files
    for log in made:
        log.append(data(), now_ms=NOW)
    held = [log.active.file("log") for log in made]
    assert len(open_files) == 5
    flushes = [log.begin_flush() for log in made]
    assert [flush.files for flush in flushes] == [[file] for file in held]
    made[0].append(data(), now_ms=NOW)  # the next flush covers it
    for log, flush in zip(made, flushes, strict=True):
        flush.run(log.files)
        log.finish_flush(flush, None)
    assert len(open_files) == 2
    assert made[0].active.file("log") is held[0]
    made[0].flush()
    content(made[1])
    content(made[2])
    assert made[0].active.file("log") is not held[0]


def test_a_file_that_was_used_since_gets_a_second_chance() -> None:
    first, second, third = logs(3, 3, MemoryFiles())
    resources = LogResources(max_open_files=2)
    for log in (first, second):
        log.active.files.limit_by(resources.open_files)
        log.active.files.was_used = False
    held = first.active.file("log")  # a use
    third.active.files.limit_by(resources.open_files)
    assert len(resources.open_files) == 2
    assert first.active.file("log") is held
    assert not second.active.files.has_open(held)


def test_a_slice_keeps_a_file_that_its_segment_closes() -> None:
    made = logs(4, 1, MemoryFiles())
    slices = [read(log, 0, max_bytes=1 << 20).records for log in made]
    expected = content(made[0])
    for records in slices:
        assert bytes(records.read()) == expected
        records.release()
    assert len(made[0].resources.open_files) == 1


@pytest.mark.parametrize("limit", [0, -1])
def test_no_file_at_all_is_too_few(limit: int) -> None:
    with pytest.raises(ValueError, match="too few"):
        OpenFiles(limit)


def test_the_limit_leaves_room_for_other_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system grants 64 descriptors; logs use half of them."""
    monkeypatch.setattr("resource.getrlimit", lambda _: (64, 64))
    made = logs(40, LogResources().open_files.limit, MemoryFiles())
    assert len(made[0].resources.open_files) == 32


def change(log: PartitionLog, rng: random.Random) -> None:
    """Apply one random change."""
    step = rng.randrange(12)
    if step == 0:
        log.flush()
        log.roll(NOW)
    elif step == 1:
        log.flush()
        truncate_to(log, rng.randint(log.log_start_offset, log.log_end_offset), now_ms=NOW)
    elif step == 2:
        delete_records(log, rng.randint(log.log_start_offset, log.high_watermark))
        delete_old_segments(log, NOW)
    elif step == 3:
        log.flush()
        clean(log, now_ms=NOW, dirty_from=log.log_start_offset)
    elif step < 6:
        log.flush()
    elif step == 6:
        flush = log.begin_flush()
        log.append(data(), now_ms=NOW)
        flush.run(log.files)
        log.finish_flush(flush, None)
    else:
        log.append(data(), now_ms=NOW)


@pytest.mark.parametrize("seed", range(8))
def test_logs_are_the_same_with_a_limit_of_one(seed: int) -> None:
    """Appends, rolls, truncations, deletions, compactions and reads in random order over six logs."""
    limited, free = logs(6, 1, MemoryFiles()), logs(6, 1000, MemoryFiles())
    rng = random.Random(seed)
    for _ in range(200):
        number, state = rng.randrange(6), rng.getstate()
        for made in (limited, free):
            rng.setstate(state)
            change(made[number], rng)
        unsynced = sum(segment.has_unsynced_bytes for log in limited for segment in log.segments)
        open_files = limited[0].resources.open_files
        opened = [segment.files for log in limited for segment in log.segments if segment.files.is_open]
        assert len(open_files) == len(opened) <= unsynced + 1  # the most recently used one
        for log, same in zip(limited, free, strict=True):
            for segment, other in zip(log.segments, same.segments, strict=True):
                assert segment.files.is_open or not segment.has_unsynced_bytes
                assert bytes(segment.read(0, segment.size)) == bytes(other.read(0, other.size))

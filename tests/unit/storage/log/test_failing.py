"""A log on a disk that fails or is full."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from itertools import count

import pytest

from tests.unit.storage.logs import append, content, end, opened, restarted
from tests.unit.storage.reads import read
from txnkafka._core.scan import scan
from txnkafka.errors import KafkaStorageError
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.log.transactions import transactions_of
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles

APPENDS: dict[str, Callable[[PartitionLog], object]] = {
    "plain": append,
    "first of a producer": lambda log: append(log, producer_id=9),
    "next of a producer": lambda log: append(log, producer_id=2, sequence=1),
    "in a new segment": lambda log: append(log, producer_id=2, sequence=1, size=150),
    "in a new epoch": lambda log: append(log, leader_epoch=5, size=1),
    "begins a transaction": lambda log: append(log, producer_id=9, transactional=True),
    "aborts": lambda log: end(log, 1, commit=False),
}


def written(files: MemoryFiles, plan: FaultPlan) -> PartitionLog:
    log = opened(FaultyFiles(files, plan))
    append(log, producer_id=1, transactional=True)
    append(log, producer_id=2)
    log.flush()
    return log


def known(log: PartitionLog) -> tuple[object, ...]:
    """Return the complete state of a log, except verifications, and epochs and segments without a batch: a
    failed append may leave these."""
    entries = [entry for segment in log.segments for entry in transactions_of(log, segment).entries]
    return (
        log.log_end_offset, log.last_stable_offset, log.producers.snapshot(), entries,
        [(each.base_offset, each.size) for each in log.segments if each.size],
    )  # fmt: skip


def batches(log: PartitionLog) -> list[int]:
    parts = [
        read(log, each.base_offset, max_bytes=1 << 20, isolation_level=None).records for each in log.segments
    ]
    return [offset for data in parts for offset in scan(data).base_offset]


@pytest.mark.parametrize("kind", APPENDS)
def test_a_full_disk_is_survived(kind: str) -> None:
    """Whichever call fails, nothing is appended, and the same append succeeds when there is space again."""
    for number in count(1):
        files, plan = MemoryFiles(), FaultPlan(error=errno.ENOSPC, short=True)
        log = written(files, plan)
        before = known(log)
        plan.fails = plan.counted + number
        with suppress(KafkaStorageError):
            APPENDS[kind](log)
        plan.fails = 0
        if log.fenced is not None:  # a sync failed
            continue
        if plan.failed:
            assert known(log) == before
            sizes = [len(data) for name, data in content(files).items() if name.endswith(".log")]
            assert sum(sizes) == sum(each.size for each in log.segments)
            APPENDS[kind](log)
        assert batches(log) == [0, 1, 2]
        log.flush()
        assert known(restarted(log, clean=False)) == known(log)
        if not plan.failed:
            break
    assert number > 1


def test_nothing_is_appended_after_an_error() -> None:
    files, plan = MemoryFiles(), FaultPlan()
    log = written(files, plan)
    plan.fails = plan.counted + 1
    with pytest.raises(KafkaStorageError):
        append(log)
    before = content(files)
    with pytest.raises(KafkaStorageError, match="is offline since"):
        append(log)
    with pytest.raises(KafkaStorageError, match="is offline since"):
        log.flush()
    assert content(files) == before


def test_nothing_is_appended_after_a_sync_that_failed() -> None:
    plan = FaultPlan()
    log = written(MemoryFiles(), plan)
    append(log)
    plan.fails = plan.counted + 1
    with pytest.raises(KafkaStorageError):
        log.flush()
    assert (log.recovery_point, log.high_watermark) == (2, 2)
    with pytest.raises(KafkaStorageError, match="is offline since"):
        append(log)

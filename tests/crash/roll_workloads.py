"""Workloads of rolls: many of them without a flush, and rolls that fail at one call before the log
continues."""

from __future__ import annotations

import errno
from contextlib import suppress
from dataclasses import replace

from tests.crash.explore import Promises
from tests.crash.faults import failing, reopened
from tests.crash.partition_promises import CONFIG, Partition, opened
from txnkafka.config import LogConfig
from txnkafka.env import Clock, DataFiles
from txnkafka.errors import KafkaStorageError
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles

__all__ = [
    "full_disk_and_clean_stop",
    "full_disk_before_a_roll",
    "full_disk_preallocated",
    "rolls_and_clean_stop",
    "rolls_that_cannot_create",
    "rolls_that_cannot_keep_epochs",
    "rolls_that_cannot_preallocate",
    "rolls_that_cannot_sync",
    "rolls_that_cannot_sync_names",
    "rolls_that_cannot_write",
    "rolls_without_flush",
]

PREALLOCATED = replace(CONFIG, preallocate=True)
LARGE = 12  # records of a batch that only fits into an empty segment


def rolls_without_flush(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Rolls two partitions several times, and flushes them at the end."""
    directory = opened(files)
    partitions = [Partition(directory, promises, number) for number in range(2)]
    for number in range(4):
        for partition in partitions:
            partition.append(f"w{number}", 7, records=LARGE)
    for partition in partitions:
        partition.flush()
    partitions[0].append("last", 7, records=LARGE)
    partitions[0].append("one more", 7, records=LARGE)


def rolls_and_clean_stop(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Writes several segments with aborted transactions, without a flush, and stops cleanly; twice."""
    directory = opened(files)
    for turn in range(2):
        partition = Partition(directory, promises)
        for number in range(3):
            partition.append(f"{turn} aborted {number}", 1, transactional=True)
            partition.end(1, commit=False)
            partition.append(f"{turn} plain {number}", 7, records=LARGE)
        _stop(partition, promises)
        directory = opened(files)


def rolls_that_cannot_create(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Fails to create each file of a roll in turn: indexes, transaction index, snapshot, log."""
    _failing_rolls(files, promises, "create", 5)


def rolls_that_cannot_write(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Fails to write each file of a roll in turn, and the batch after it."""
    _failing_rolls(files, promises, "write", 5)


def rolls_that_cannot_preallocate(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Fails to trim the old segment, and to preallocate the new one."""
    _failing_rolls(files, promises, "truncate", 2, config=PREALLOCATED, turns=2)


def rolls_that_cannot_sync(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Fails to sync the old segment: the log is taken offline and acknowledges nothing more; another log
    does."""
    plan = FaultPlan()
    directory = opened(FaultyFiles(files, plan))
    other = Partition(directory, promises, 1)
    for number in range(2):
        partition = Partition(directory, promises, 2 * number)
        partition.append("flushed", 7)
        partition.flush()
        partition.append("before", 7)
        with failing(plan, "sync", error=errno.EIO), suppress(KafkaStorageError):
            partition.append("large", 7, records=LARGE)
        with suppress(KafkaStorageError):
            partition.append("fits", 7, records=1)
        other.append(f"other {number}", 7, records=LARGE)
        other.flush()
        partition.flush()


def rolls_that_cannot_sync_names(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Fails to sync the name of the old segment: the log is taken offline, and opened again."""
    _failing_rolls(files, promises, "sync_directory", 1, error=errno.EIO, turns=2)


def rolls_that_cannot_keep_epochs(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Fails each rename of a flush in turn: that of a new epoch file, then that of the new segment."""
    plan = FaultPlan()
    faulty = FaultyFiles(files, plan)
    directory = opened(faulty)
    partition = Partition(directory, promises)
    for turn in range(4):
        partition.append(f"{turn} before", 7, leader_epoch=turn)
        partition.append(f"{turn} large", 7, records=LARGE, leader_epoch=turn)
        with failing(plan, "rename", turn % 2 + 1, error=errno.EIO):
            partition.flush()
        if partition.log.fenced is not None:
            directory = reopened(directory, faulty)
            partition = Partition(directory, promises)
        partition.append(f"{turn} fits", 7, leader_epoch=turn)
        partition.flush()
    _stop(partition, promises)


def _failing_rolls(
    files: DataFiles,
    promises: Promises,
    call: str,
    calls: int,
    *,
    error: int = errno.ENOSPC,
    turns: int = 1,
    config: LogConfig = CONFIG,
) -> None:
    """Appends and flushes a batch that still fits after each failure; then rolls, and stops cleanly."""
    plan = FaultPlan()
    faulty = FaultyFiles(files, plan)
    directory = opened(faulty, config)
    partition = Partition(directory, promises)
    for turn in range(calls * turns):
        partition.append(f"{turn} aborted", 1, transactional=True)
        partition.end(1, commit=False)
        partition.append(f"{turn} before", 7)
        with failing(plan, call, turn % calls + 1, error=error), suppress(KafkaStorageError):
            partition.append(f"{turn} large", 7, records=LARGE)
        if partition.log.fenced is not None:
            directory = reopened(directory, faulty, config)
            partition = Partition(directory, promises)
        partition.append(f"{turn} fits", 7, records=1)
        partition.flush()
        partition.append(f"{turn} large again", 7, records=LARGE)
    _stop(partition, promises)


def full_disk_before_a_roll(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Truncates the bytes of a failed append; the next append goes to a new segment, and is acknowledged."""
    _full_disk(files, promises)


def full_disk_and_clean_stop(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """The same, with a clean stop."""
    _stop(_full_disk(files, promises), promises)


def full_disk_preallocated(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """The same, with preallocated segments."""
    _stop(_full_disk(files, promises, PREALLOCATED), promises)


def _full_disk(files: DataFiles, promises: Promises, config: LogConfig = CONFIG) -> Partition:
    plan = FaultPlan()
    partition = Partition(opened(FaultyFiles(files, plan), config), promises)
    for number in range(3):
        partition.append(f"f{number}", 7, records=6)
        partition.flush()
        with failing(plan, "write"), suppress(KafkaStorageError):
            partition.append(f"full {number}", 7)
        partition.append(f"large {number}", 7, records=LARGE)
        partition.flush()
    return partition


def _stop(partition: Partition, promises: Promises) -> None:
    end = partition.log.log_end_offset
    partition.directory.close()
    promises.acknowledge(("end", partition.key, end))

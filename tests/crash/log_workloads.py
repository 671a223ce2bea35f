"""Workloads on the logs of a data directory. Only the explicit calls of ``flush`` flush."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from tests.crash.explore import Promises
from tests.crash.partition_promises import CONFIG, NOW, Partition, opened
from txnkafka.env import Clock, DataFiles
from txnkafka.errors import KafkaStorageError

PREALLOCATED = replace(CONFIG, preallocate=True)
LARGE = replace(CONFIG, segment_bytes=10_000)
SHORT = replace(CONFIG, retention_ms=1000)

__all__ = [
    "appends",
    "appends_together",
    "clean_restarts",
    "deleted_records",
    "deletions",
    "full_disk",
    "large_batches",
    "preallocated",
    "retention",
    "rolls",
    "transactions",
    "truncations",
]


def appends(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Two partitions share flushes; the last batches are never flushed."""
    directory = opened(files)
    first, second = Partition(directory, promises, 0), Partition(directory, promises, 1)
    for number in range(3):
        first.append(f"a{number}", producer_id=7)
        second.append(f"b{number}")
        first.flush()
        second.flush()
    first.append("unflushed")
    second.append("unflushed")


def appends_together(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Appends several batches per call, across the end of a segment; the last call is never flushed."""
    log = Partition(opened(files), promises)
    log.append_all("a", "b")
    log.flush()
    log.append_all(*(f"c{number}" for number in range(5)))
    log.append("alone", producer_id=7)
    log.flush()
    log.append_all("d", "e", "f")


def large_batches(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Appends batches of several disk sectors."""
    directory = opened(files, LARGE)
    partition = Partition(directory, promises)
    for number in range(4):
        partition.append(f"l{number}", 7, records=80)
        if number % 2:
            partition.flush()


def rolls(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Rolls segments between flushes, and several before one flush."""
    directory = opened(files)
    partition = Partition(directory, promises)
    for number in range(9):
        partition.append(f"r{number}", producer_id=7)
        if number % 4 == 2:
            partition.flush()
    directory.data.checkpoint()
    partition.append("last", producer_id=7)
    partition.flush()


def preallocated(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Preallocates segments, and trims them when they are closed."""
    directory = opened(files, PREALLOCATED)
    partition = Partition(directory, promises)
    for number in range(13):
        partition.append(f"p{number}", producer_id=7)
        if number % 3 == 1:
            partition.flush()
    end = partition.log.log_end_offset
    directory.close()
    promises.acknowledge(("end", partition.key, end))


def transactions(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Runs committed, aborted and open transactions across segments, with a non-transactional producer in
    between."""
    directory = opened(files)
    partition = Partition(directory, promises)
    partition.append("aborted", 1, transactional=True)
    partition.append("committed", 2, transactional=True)
    partition.flush()
    partition.append("aborted too", 1, transactional=True)
    partition.append("plain")
    partition.end(2, commit=True)
    partition.end(1, commit=False)
    partition.flush()
    partition.append("open", 3, transactional=True)
    partition.append("aborted next", 1, transactional=True)
    partition.end(1, commit=False)
    partition.flush()


def truncations(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Truncates inside the active segment, then across several."""
    directory = opened(files)
    partition = Partition(directory, promises)
    for number in range(5):
        partition.append(f"t{number}")
    partition.flush()
    directory.data.checkpoint()
    partition.truncate(8)
    partition.append("new")
    partition.flush()
    partition.append("another", 1, transactional=True)
    partition.flush()
    partition.truncate(2)
    partition.append("after")
    partition.flush()


def deleted_records(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Deletes records up to the middle of an aborted transaction, then of a batch, and the segments below."""
    directory = opened(files)
    partition = Partition(directory, promises)
    for number in range(4):
        partition.append(f"d{number}", 1, transactional=True)
    partition.end(1, commit=False)
    for number in range(3):
        partition.append(f"e{number}")
    partition.flush()
    partition.delete_records(3)
    partition.delete_records(7)
    partition.delete_old_segments()
    partition.append("behind")
    partition.flush()


def retention(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """All segments are too old: the log continues in a new segment, and no offset is assigned twice."""
    directory = opened(files, SHORT)
    partition = Partition(directory, promises)
    for number in range(6):
        partition.append(f"o{number}", producer_id=7)
    partition.flush()
    partition.delete_old_segments(NOW + 100_000)
    partition.append("young")
    partition.flush()


def clean_restarts(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Closes and reopens the directory twice, each time with new data."""
    for number in range(3):
        directory = opened(files)
        partition = Partition(directory, promises)
        partition.append(f"c{number}")
        partition.append(f"c{number} again", number, transactional=True)
        if number:
            partition.end(number, commit=False)
        end = partition.log.log_end_offset
        directory.close()
        promises.acknowledge(("end", partition.key, end))


def full_disk(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Retries a refused append twice, with the same sequence; the log continues across segments and
    transactions."""
    directory = opened(files)
    partition = Partition(directory, promises)

    def insist(append: Callable[[], None]) -> None:
        for _ in range(3):
            with suppress(KafkaStorageError):
                append()
                return

    for number in range(5):
        insist(lambda number=number: partition.append(f"f{number}", 7))
        insist(lambda number=number: partition.append(f"g{number}", 8, transactional=True))
        insist(lambda: partition.end(8, commit=False))
        if number % 2:
            partition.flush()


def deletions(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Deletes a partition, and creates a shorter one of the same name."""
    directory = opened(files)
    partition, other = Partition(directory, promises), Partition(directory, promises, 1)
    for number in range(4):
        partition.append(f"old {number}", 7)
    other.append("other")
    partition.flush()
    other.flush()
    directory.data.checkpoint()
    partition.delete()
    partition = Partition(directory, promises)
    partition.append("new", 7)
    partition.flush()
    partition.append("newer", 7)

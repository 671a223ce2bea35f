"""Workloads with owners that are replaced, flush together, fail and are forked, and retention and truncation
over several owners."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from tests.crash.explore import Promises
from tests.crash.faults import failing, in_a_child, killed
from tests.crash.partition_promises import CONFIG, NOW, TOPIC_ID, Partition, opened
from txnkafka.env import Clock, DataFiles
from txnkafka.errors import KafkaStorageError, LogDirError
from txnkafka.model import TopicPartition
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles

__all__ = [
    "children",
    "creations_that_fail",
    "cuts_to_nothing",
    "delayed_deletions",
    "epochs",
    "failed_syncs",
    "group_commits",
    "kept_by_size",
    "kills",
    "long_transactions",
    "maintained",
    "producers_of_deleted",
    "records_of_all_deleted",
    "retried_changes",
    "timestamps",
]

SMALL = replace(CONFIG, retention_bytes=700)
DELAYED = replace(CONFIG, file_delete_delay_ms=1000)
EAGER = replace(CONFIG, flush_messages=5)


def kills(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Kills three owners that have unflushed data, the last one with an open transaction."""
    directory = opened(files)
    for number in range(3):
        partition = Partition(directory, promises)
        partition.append(f"flushed {number}", 7)
        partition.flush()
        partition.append(f"open {number}", 10 + number, transactional=True)
        partition.append(f"unflushed {number}", 7, records=6)
        if number:
            partition.end(9 + number, commit=False)
        directory = killed(directory, files)


def failed_syncs(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Fails flushes: afterwards these partitions acknowledge nothing, whatever is called; another one is not
    affected. The directory is not opened again: a later sync does not save what a failed sync lost."""
    plan = FaultPlan()
    directory = opened(FaultyFiles(files, plan))
    other = Partition(directory, promises, 1)
    for number in range(2):
        partition = Partition(directory, promises, 2 * number)
        partition.append("flushed", 7)
        partition.flush()
        partition.append("s", 7)
        partition.append("t", 7, records=number * 10 + 2)
        with failing(plan, "sync", error=errno.EIO):
            partition.flush()
        with suppress(KafkaStorageError):
            partition.append("never", 7)
        other.append(f"other {number}")
        other.flush()
        partition.flush()
    with suppress(KafkaStorageError):
        directory.close()


def group_commits(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Two partitions wait for one flush; while it runs, both get appends, the last of them behind the sync of
    the first segment, and roll."""
    directory = opened(files)
    partitions = [Partition(directory, promises, number) for number in range(2)]

    def acknowledge(end: tuple[TopicPartition, int], error: Exception | None) -> None:
        if error is None:
            promises.acknowledge(("end", *end))

    def append(text: str, records: int = 2) -> None:
        for partition in partitions:
            partition.append(text, 7, records=records)
            end = partition.key, partition.log.log_end_offset
            directory.flushes.when_durable(partition.log, partial(acknowledge, end))

    append("first")
    for number in range(3):
        flush = directory.flushes.begin()
        assert flush is not None
        append(f"during {number}")
        failed = flush.run()
        append(f"behind {number}", records=1)
        append(f"rolls {number}", records=10)
        directory.flushes.finish(flush, failed)


def maintained(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Flushes three partitions after a number of appends, with checkpoints in between."""
    directory = opened(files, EAGER)
    partitions = [Partition(directory, promises, number) for number in range(3)]
    for number in range(4):
        for each in partitions[: number + 1]:
            each.append(f"m{number}", 7)
        directory.maintain(NOW)
        for each in partitions:
            promises.acknowledge(("end", each.key, each.log.recovery_point))


def timestamps(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Appends timestamps that go up and down within a segment and between segments; stops cleanly."""
    directory = opened(files)
    partition = Partition(directory, promises)
    for number, late in enumerate((0, 50, 20, 90, 80, 10, 200, 100)):
        partition.append(f"t{number}", timestamp=NOW + late, records=1 + number % 2)
        if number % 3 == 2:
            partition.flush()
    end = partition.log.log_end_offset
    directory.close()
    promises.acknowledge(("end", partition.key, end))


def epochs(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Changes leaders within and between segments; a truncation removes some epochs; then the process is
    killed."""
    directory = opened(files)
    partition = Partition(directory, promises)
    for number in range(5):
        partition.append(f"e{number}", 7, leader_epoch=number // 2)
    partition.flush()
    partition.truncate(5)
    partition.append("of a later leader", leader_epoch=4)
    partition.flush()
    directory = killed(directory, files)
    partition = Partition(directory, promises)
    partition.append("later still", leader_epoch=5, records=10)
    partition.flush()


def long_transactions(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Runs overlapping transactions over many segments: the next owner aborts one, one stays open."""
    directory = opened(files)
    partition = Partition(directory, promises)
    for number in range(3):
        for producer_id in (1, 2, 3):
            partition.append(f"{producer_id} {number}", producer_id, transactional=True)
        partition.flush()
    partition.end(2, commit=True)
    directory = killed(directory, files)
    partition = Partition(directory, promises)
    partition.end(1, commit=False)
    partition.append("plain", 7, records=10)
    partition.flush()
    partition.append("again", 1, transactional=True)
    partition.end(1, commit=False)
    partition.flush()


def kept_by_size(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Applies retention by size repeatedly; one transaction ends after its data was deleted."""
    directory = opened(files, SMALL)
    partition = Partition(directory, promises)
    partition.append("soon deleted", 1, transactional=True)
    for number in range(8):
        partition.append(f"k{number}", 7, records=3)
        if number % 2:
            partition.flush()
            partition.delete_old_segments()
    partition.end(1, commit=False)
    partition.append("behind", 7)
    partition.flush()


def producers_of_deleted(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Deletes several segments at once; two producers wrote to the first of them only, one in a transaction
    that stays open, and nothing but snapshots knows them then. The recovery point on the disk stays 0."""
    directory = opened(files)
    partition = Partition(directory, promises)
    partition.append("first only", 1)
    partition.append("open", 2, transactional=True)
    for number in range(3):
        partition.log.roll(NOW)
        partition.append(f"p{number}", 7 + number)
    partition.log.roll(NOW)
    partition.append("kept", 7)
    partition.flush()
    partition.delete_records(partition.log.active.base_offset)
    partition.delete_old_segments()
    partition.append("behind", 8)
    partition.flush()


def records_of_all_deleted(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Deletes all records up to the log end; the owner is killed, and the log continues."""
    directory = opened(files)
    partition = Partition(directory, promises)
    for number in range(5):
        partition.append(f"d{number}", 7)
    partition.flush()
    partition.delete_records(-1)
    partition.delete_old_segments()
    directory = killed(directory, files)
    partition = Partition(directory, promises)
    partition.append("next", 7)
    partition.flush()
    partition.delete_records(-1)
    partition.append("last", 7)
    partition.flush()


def cuts_to_nothing(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Truncates to offset 0 with open transactions, appends again, and truncates in the second segment."""
    directory = opened(files)
    partition = Partition(directory, promises)
    for number in range(4):
        partition.append(f"n{number}", 1 + number % 2, transactional=True)
    partition.flush()
    partition.truncate(0)
    for number in range(4):
        partition.append(f"o{number}", 1, transactional=True)
    partition.end(1, commit=False)
    partition.flush()
    partition.truncate(7)
    partition.append("plain", 7)
    partition.flush()


def delayed_deletions(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Keeps deleted files for a while; the next owner finds some of them."""
    directory = opened(files, DELAYED)
    partition = Partition(directory, promises)
    for number in range(8):
        partition.append(f"d{number}", 7)
    partition.flush()
    partition.delete_records(5)
    partition.delete_old_segments()
    partition.log.local.remove_deleted(NOW + 1000)
    partition.delete_records(12)
    partition.delete_old_segments()
    directory = killed(directory, files, DELAYED)
    partition = Partition(directory, promises)
    partition.append("behind", 7)
    partition.flush()


def retried_changes(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Fails to write a checkpoint, so a truncation and a deletion fail, and are repeated."""
    plan = FaultPlan()
    directory = opened(FaultyFiles(files, plan))
    partition = Partition(directory, promises)
    for number in range(6):
        partition.append(f"r{number}", 7)
    partition.flush()
    directory.data.checkpoint()
    with failing(plan, "create"), suppress(OSError):
        partition.truncate(6)
    partition.truncate(6, is_retry=True)
    partition.append("behind the cut", 7)
    partition.flush()
    with failing(plan, "rename"), suppress(OSError):
        partition.delete_records(4)
    partition.delete_records(4)
    partition.append("behind the deletion", 7)
    partition.flush()


def creations_that_fail(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Fails to create a partition, and succeeds at the second try; another partition stays in use."""
    plan = FaultPlan()
    directory = opened(FaultyFiles(files, plan))
    other = Partition(directory, promises, 1)
    other.append("before")
    other.flush()
    for call in ("create", "write", "sync", "rename", "sync_directory"):
        key = TopicPartition("t", 0)
        with failing(plan, call), suppress(OSError, KafkaStorageError):
            directory.create(key, TOPIC_ID, now_ms=NOW)
    partition = Partition(directory, promises)
    partition.append("there", 7)
    partition.flush()


def children(files: DataFiles, clock: Clock, promises: Promises) -> None:
    """Forked children call everything, before the first append and between others, without any effect."""
    directory = opened(files)
    partition, other = Partition(directory, promises), Partition(directory, promises, 1)
    for number in range(2):
        _try_all(partition)
        partition.append(f"p{number}", 7)
        other.append(f"q{number}")
        partition.flush()
        other.flush()
        partition.append(f"unflushed {number}", 7, records=10)


def _try_all(partition: Partition) -> None:
    directory, log = partition.directory, partition.log
    changes: list[Callable[[], object]] = [
        lambda: log.append(partition.batch("of a child", 5), now_ms=NOW),
        lambda: log.roll(NOW),
        log.flush,
        lambda: directory.truncate(partition.key, 0, now_ms=NOW),
        lambda: directory.delete_records(partition.key, -1),
        lambda: directory.create(TopicPartition("t", 2), TOPIC_ID, now_ms=NOW),
        directory.flush,
        directory.data.checkpoint,
        lambda: directory.maintain(NOW),
        directory.close,
    ]
    for change in changes:
        with in_a_child(), suppress(LogDirError):
            change()

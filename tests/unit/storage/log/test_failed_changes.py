"""A change of a data directory fails at one call and is repeated: what the second try acknowledges survives a
power cut."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from itertools import count

import pytest

from tests.conftest import sampled
from tests.unit.storage.client import NOW, Log, what_is_synced
from txnkafka.broker.log_manager import LogManager
from txnkafka.config import LogConfig
from txnkafka.env import DataFiles
from txnkafka.errors import KafkaStorageError, LogDirError
from txnkafka.model import TopicPartition
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles

PARTITION, TOPIC_ID = TopicPartition("t", 0), "AAAAAAAAAAEAAAAAAAAAAg"
CHANGES: dict[str, Callable[[LogManager], object]] = {
    "truncate": lambda directory: directory.truncate(PARTITION, 3, now_ms=NOW),
    "truncate below the log start": lambda directory: directory.truncate(PARTITION, 1, now_ms=NOW),
    "delete records": lambda directory: directory.delete_records(PARTITION, 3),
    "create": lambda directory: directory.create(TopicPartition("t", 1), TOPIC_ID, now_ms=NOW),
}


def opened(files: DataFiles) -> LogManager:
    return LogManager(DataDirectory(files, "/data", lambda topic: LogConfig(segment_bytes=300), now_ms=NOW))


def filled(files: MemoryFiles, plan: FaultPlan) -> LogManager:
    """Return a directory with six records, two of them deleted, a cleaner offset, and all checkpoints
    written."""
    directory = opened(FaultyFiles(files, plan))
    log = Log(directory.create(PARTITION, TOPIC_ID, now_ms=NOW))
    for epoch in range(6):
        log.plain(count=1, partition_leader_epoch=epoch)
    directory.flush()
    directory.delete_records(PARTITION, 2)
    directory.data.checkpoints.cleaner_offsets[PARTITION] = 5
    directory.data.checkpoints.write_cleaner_offsets()
    directory.data.checkpoint()
    return directory


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("change", sampled(CHANGES, every=3))
def test_what_succeeds_at_the_second_try_is_durable(change: str, error: int) -> None:
    for number in count(1):
        files, plan = MemoryFiles(), FaultPlan(error=error)
        directory = filled(files, plan)
        plan.fails = plan.counted + number
        with suppress(OSError, KafkaStorageError, LogDirError):
            CHANGES[change](directory)
        plan.fails = 0
        if not plan.failed:
            break
        log = directory.logs[PARTITION]
        if log.fenced is None:
            CHANGES[change](directory)
            Log(log).plain(count=1)
            directory.flush()
        expected = {each: (log.log_start_offset, log.log_end_offset) for each, log in directory.logs.items()}
        cleaned = directory.data.checkpoints.cleaner_offsets[PARTITION]
        again = opened(MemoryFiles(base=what_is_synced(files)))
        assert not again.data.refused, (number, plan.failed)
        if log.fenced is None:
            found = {each: (log.log_start_offset, log.log_end_offset) for each, log in again.logs.items()}
            assert found == expected, (number, plan.failed)
            assert again.data.checkpoints.cleaner_offsets[PARTITION] <= cleaned, (number, plan.failed)
    assert number > 1


@pytest.mark.parametrize("offset", [-1, -(2**63)])
def test_a_negative_cut_changes_nothing(offset: int) -> None:
    files = MemoryFiles()
    directory = filled(files, FaultPlan())
    changes = len(files.journal)
    with pytest.raises(ValueError, match="t-0: a log cannot be truncated at offset -"):
        directory.truncate(PARTITION, offset, now_ms=NOW)
    assert len(files.journal) == changes
    assert directory.logs[PARTITION].recovery_point == 6
    assert directory.data.checkpoints.cleaner_offsets == {PARTITION: 5}


def test_a_cut_of_a_log_that_failed_changes_nothing() -> None:
    files = MemoryFiles()
    directory = filled(files, FaultPlan())
    directory.logs[PARTITION].fence(OSError(errno.EIO, "planned"))
    changes = len(files.journal)
    with pytest.raises(KafkaStorageError):
        directory.truncate(PARTITION, 1, now_ms=NOW)
    assert len(files.journal) == changes

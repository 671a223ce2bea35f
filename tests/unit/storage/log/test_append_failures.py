"""Appends that fail: the log survives a full disk; any other error takes it offline."""

from __future__ import annotations

import errno

import pytest

from tests.unit.storage.client import Log, data, opened
from txnkafka.errors import (
    KafkaStorageError,
)
from txnkafka.storage.formats.checkpoint import EpochEntry, parse_leader_epoch_checkpoint
from txnkafka.storage.formats.layout import LEADER_EPOCH_CHECKPOINT
from txnkafka.storage.log.truncation import delete_records
from txnkafka.storage.recovery.log_loader import Start
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles

BATCH = len(data())  # size of a batch of two records


def faulty(**plan: object) -> tuple[Log, FaultPlan]:
    fault_plan = FaultPlan()
    log = Log(opened(FaultyFiles(MemoryFiles(), fault_plan)))
    log.idempotent(7, 0)
    fault_plan.__init__(**plan)  # counts from here on
    return log, fault_plan


@pytest.mark.parametrize("short", [False, True])
def test_a_full_disk_is_survived(short: bool) -> None:
    """No byte of the batch stays, and the same batch is appended when there is space again."""
    log, plan = faulty(fails=1, call="write", error=errno.ENOSPC, short=short)
    with pytest.raises(KafkaStorageError, match="is full"):
        log.idempotent(7, 2)
    assert (log.log.log_end_offset, log.log.fenced) == (2, None)
    assert [entry.last_sequence for entry in log.log.producers.entries()] == [1]
    plan.fails = 0
    assert log.idempotent(7, 2).first_offset == 2
    log.restart(clean=False)
    assert log.log.log_end_offset == 4


def test_a_full_disk_is_logged_once_until_the_log_has_grown(caplog: pytest.LogCaptureFixture) -> None:
    log, plan = faulty(fails=1, call="write", error=errno.ENOSPC, for_ever=True)
    for _ in range(3):
        with pytest.raises(KafkaStorageError):
            log.idempotent(7, 2)
    assert ["is full" in each.getMessage() for each in caplog.records] == [True]
    plan.fails = 0
    log.idempotent(7, 2)
    plan.__init__(fails=1, call="write", error=errno.ENOSPC)
    with pytest.raises(KafkaStorageError):
        log.idempotent(7, 4)
    assert len(caplog.records) == 2


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE])
@pytest.mark.parametrize(("call", "batches"), [("open_to_write", 10), ("create", 2)])
def test_a_process_without_descriptors_loses_no_log(call: str, batches: int, error: int) -> None:
    """The files of a log that was opened again are opened by its first append, or made by a roll."""
    plan = FaultPlan()
    log = Log(opened(FaultyFiles(MemoryFiles(), plan), segment_bytes=batches * BATCH))
    log.idempotent(7, 0)
    log.idempotent(7, 2)
    log.restart(clean=True)
    plan.__init__(fails=1, call=call, error=error, for_ever=True)
    with pytest.raises(KafkaStorageError, match="cannot be used"):
        log.idempotent(7, 4)
    assert plan.failed
    assert log.log.fenced is None
    plan.fails = 0
    assert log.idempotent(7, 4).first_offset == 4
    log.log.flush()
    log.restart(clean=False)
    assert log.log.log_end_offset == 6


def test_a_full_disk_from_which_nothing_can_be_taken_back_fences() -> None:
    log, plan = faulty(fails=1, error=errno.ENOSPC, short=True, for_ever=True)
    with pytest.raises(KafkaStorageError):
        log.idempotent(7, 2)
    assert log.log.fenced is not None
    plan.fails = 0
    with pytest.raises(KafkaStorageError):
        log.idempotent(7, 2)


@pytest.mark.parametrize("short", [False, True])
def test_ul_47_the_first_io_error_fences_the_log(short: bool) -> None:
    """KAFKA-10778: no batch is appended after the failed one, so no offset is assigned twice."""
    log, plan = faulty(fails=1, call="write", short=short)
    with pytest.raises(KafkaStorageError):
        log.idempotent(7, 2)
    plan.fails = 0
    for act in (log.plain, log.log.flush, log.log.close):
        with pytest.raises(KafkaStorageError, match="Opening the data directory again"):
            act()
    assert log.log.log_end_offset == 2
    log.restart(clean=False)
    assert log.log.log_end_offset == 2
    assert log.idempotent(7, 2).first_offset == 2


@pytest.mark.parametrize("is_clean", [False, True])
def test_what_is_deleted_to_empty_a_full_disk_does_not_fence_the_log(is_clean: bool) -> None:
    """There is room for a batch, and none for the file with the epochs, the first of which begins later."""
    plan = FaultPlan(error=errno.ENOSPC, call="create", for_ever=True)
    log = Log(opened(FaultyFiles(MemoryFiles(), plan)))
    for _ in range(3):
        log.plain()
    log.log.flush()
    plan.fails = plan.counted + 1
    delete_records(log.log, 4)
    log.plain()
    log.log.flush()
    assert plan.failed
    assert (log.log.recovery_point, log.log.log_end_offset) == (8, 8)
    plan.fails = 0
    log.restart(clean=is_clean)
    assert log.log.epochs.entries == [EpochEntry(0, 4)]
    log.plain()
    log.log.flush()
    file = log.log.files.read(log.log.files.join(log.log.directory, LEADER_EPOCH_CHECKPOINT), 100)
    assert parse_leader_epoch_checkpoint(file) == [EpochEntry(0, 4)]


def with_a_new_epoch_on_a_full_disk() -> tuple[Log, FaultPlan]:
    """A log whose second batch is durable, and its leader epoch in no file."""
    plan = FaultPlan(error=errno.ENOSPC, call="create", for_ever=True)
    log = Log(opened(FaultyFiles(MemoryFiles(), plan)))
    log.plain()
    log.log.flush()
    plan.fails = plan.counted + 1
    log.append(data(), leader_epoch=3)
    log.log.flush()
    assert plan.failed
    return log, plan


def test_a_new_leader_epoch_on_a_full_disk_does_not_fence_the_log() -> None:
    """Its batch is acknowledged, and the checkpoint of recovery points waits for the file of the epochs."""
    log, plan = with_a_new_epoch_on_a_full_disk()
    assert (log.log.fenced, log.log.recovery_point, log.log.flushing.recovery_point_to_write) == (None, 4, 2)
    log.append(data(), leader_epoch=3)
    log.log.flush()
    assert (log.log.recovery_point, log.log.flushing.recovery_point_to_write) == (6, 2)
    plan.fails = 0
    log.append(data(), leader_epoch=3)
    log.log.flush()
    assert (log.log.recovery_point, log.log.flushing.recovery_point_to_write) == (8, 8)
    file = log.log.files.read(log.log.files.join(log.log.directory, LEADER_EPOCH_CHECKPOINT), 100)
    assert parse_leader_epoch_checkpoint(file) == [EpochEntry(0, 0), EpochEntry(3, 2)]


def test_a_crash_before_the_disk_has_room_loses_no_leader_epoch() -> None:
    log, plan = with_a_new_epoch_on_a_full_disk()
    plan.fails = 0
    log.log.local.close_files()
    start = Start(clean_shutdown=False, recovery_point=log.log.flushing.recovery_point_to_write)
    again = opened(log.log.files, start)
    assert (again.log_end_offset, again.epochs.entries) == (4, [EpochEntry(0, 0), EpochEntry(3, 2)])


def test_a_stop_without_room_for_the_leader_epochs_is_not_clean() -> None:
    """The next owner would believe the file."""
    log, _ = with_a_new_epoch_on_a_full_disk()
    with pytest.raises(KafkaStorageError, match="no room for the leader epochs"):
        log.log.close()


def test_a_roll_that_fails_leaves_the_log_as_it_was() -> None:
    """Whichever call fails for lack of space, the next append succeeds once there is space."""
    for number in range(1, 40):
        plan = FaultPlan()
        log = Log(opened(FaultyFiles(MemoryFiles(), plan), segment_bytes=BATCH))
        log.plain()
        plan.__init__(number, errno.ENOSPC, "write")
        try:
            log.plain()
        except KafkaStorageError:
            assert (log.log.log_end_offset, log.log.fenced) == (2, None)
            log.plain()
        else:
            assert number > 3
            break
        assert log.bases == [0, 2]
        log.log.flush()
        log.restart(clean=False)
        assert log.log.log_end_offset == 4

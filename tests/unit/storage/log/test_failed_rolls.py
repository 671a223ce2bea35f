"""A roll fails at one step: acknowledged records stay, written bytes are synced, no file is left over."""

from __future__ import annotations

import errno
from contextlib import suppress

import pytest

from tests.unit.storage.client import PATH, Log, data, what_is_synced
from txnkafka._core.scan import scan
from txnkafka.errors import KafkaStorageError
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles

SMALL = {"segment_bytes": 300, "index_interval_bytes": 0}
PREALLOCATION = 3  # the truncations of a first roll before it are those of both indexes


def faulty(call: str, *, error: int = errno.ENOSPC, **config: object) -> tuple[MemoryFiles, FaultPlan, Log]:
    """Return a log whose files can fail the next calls of that name: set ``plan.fails``."""
    files, plan = MemoryFiles(), FaultPlan(error=error, call=call, short=True)
    log = Log(files=FaultyFiles(files, plan), **SMALL, **config)
    return files, plan, log


def fail_next(plan: FaultPlan) -> None:
    plan.fails = plan.counted + 1


def refuse(path: str) -> None:
    raise OSError(errno.EIO, "planned", path)


def names(files: MemoryFiles) -> list[str]:
    return [each.name for each in files.list(PATH) if each.name.endswith(".log")]


def on(files: MemoryFiles, log: Log) -> Log:
    """Open the log from these files, as after a crash."""
    again = Log(log.log)
    again.log.files = files
    again.log.local.flushing.recovery_point = log.log.recovery_point
    again.restart(clean=False)
    return again


def offsets(log: Log) -> list[int]:
    data = b"".join(bytes(segment.read(0, segment.size)) for segment in log.log.segments)
    return list(scan(data).base_offset)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize(
    ("rolls", "ahead"),
    [(0, 1), (0, 2), (0, PREALLOCATION), (1, 1), (1, 2)],  # a later roll trims the old segment before it
)
def test_a_failed_preallocation_leaves_no_file(rolls: int, ahead: int, error: int) -> None:
    """The log continues in the previous segment, and a reopened log has all acknowledged records."""
    files, plan, log = faulty("truncate", error=error, preallocate=True)
    for _ in range(rolls):
        log.plain()
        log.log.roll(log.now_ms)
    log.plain()
    log.log.flush()
    plan.fails = plan.counted + ahead
    with pytest.raises(OSError, match="planned"):
        log.log.roll(log.now_ms)
    assert log.log.fenced is None
    assert names(files) == [f"{base:020}.log" for base in [0, 2][: rolls + 1]]
    log.plain()
    log.log.flush()
    for state in crash_states(files, begin=len(files.journal)):
        again = on(MemoryFiles(base=state.disk), log)
        assert offsets(again) == [0, 2, 4][: rolls + 2], state.name


def test_a_file_that_a_failed_roll_cannot_remove_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recovery ignores the name of the file, and the next roll replaces it."""
    files, plan, log = faulty("truncate", preallocate=True)
    log.plain()
    log.log.flush()
    plan.fails = plan.counted + PREALLOCATION
    with monkeypatch.context() as patch:
        patch.setattr(log.log.files, "remove", refuse)
        with pytest.raises(OSError, match="planned"):
            log.log.roll(log.now_ms)
    assert files.exists(f"{PATH}/{2:020}.log.cleaned")
    log.plain()
    log.log.flush()
    for state in crash_states(files, begin=len(files.journal)):
        assert offsets(on(MemoryFiles(base=state.disk), log)) == [0, 2], state.name


def test_a_roll_replaces_the_file_that_a_failed_one_left(monkeypatch: pytest.MonkeyPatch) -> None:
    files, plan, log = faulty("truncate", preallocate=True)
    log.plain()
    plan.fails = plan.counted + PREALLOCATION
    with monkeypatch.context() as patch:
        patch.setattr(log.log.files, "remove", refuse)
        with pytest.raises(OSError, match="planned"):
            log.log.roll(log.now_ms)
    plan.fails = 0
    log.log.roll(log.now_ms)
    log.plain()
    log.log.flush()
    assert log.bases == [0, 2]
    assert names(files) == [f"{0:020}.log", f"{2:020}.log"]


@pytest.mark.parametrize("clean", [False, True])
def test_the_bytes_of_a_failed_append_are_truncated_durably(clean: bool) -> None:
    """No crash brings the bytes of a failed append back after a roll."""
    files, plan, log = faulty("write")
    log.plain()
    log.log.flush()
    fail_next(plan)
    with pytest.raises(KafkaStorageError, match="is full"):
        log.plain()
    log.plain(count=12)
    log.log.flush()
    if clean:
        log.log.close()
    assert log.bases == [0, 2]
    size = log.log.segments[0].size
    for state in crash_states(files, begin=len(files.journal)):
        content = MemoryFiles(base=state.disk).read(f"{PATH}/{0:020}.log", 1000)
        assert len(content) == size, state.name


@pytest.mark.slow
def test_no_segment_has_a_name_before_the_one_before_it_has_its_own() -> None:
    """Several rolls without a flush leave no gap, whichever directory entries a power cut removes."""
    files = MemoryFiles()
    log = Log(files=files, **SMALL)
    log.plain()
    log.log.flush()
    begin = len(files.journal)
    for _ in range(3):
        log.plain(count=12)
    assert len(log.bases) == 4
    for state in crash_states(files, begin=begin):
        found = offsets(on(MemoryFiles(base=state.disk), log))
        assert found == [0, 2, 14, 26][: len(found)], state.name


@pytest.mark.slow
def test_a_roll_during_a_flush_waits_for_the_names_of_that_flush() -> None:
    files = MemoryFiles()
    log = Log(files=files, **SMALL)
    log.plain()
    log.plain(count=12)
    flush = log.log.begin_flush()
    begin = len(files.journal)
    log.plain(count=12)
    for state in crash_states(files, begin=begin):
        found = offsets(on(MemoryFiles(base=state.disk), log))
        assert found == [0, 2, 14][: len(found)], state.name
    assert flush.directories


@pytest.mark.parametrize(
    ("call", "ahead"),
    [("create", 1), ("create", 2), ("create", 3), ("create", 4), ("write", 2), ("write", 3)],
)
def test_derived_files_of_a_failed_roll_are_synced(call: str, ahead: int) -> None:
    """For each call of a roll that fails: after a clean stop all files are synced."""
    files, plan, log = faulty(call)
    log.transactional(1, 0)
    log.end(1, commit=False)
    plan.fails = plan.counted + ahead
    with suppress(KafkaStorageError):
        log.plain(count=12)
    assert plan.failed
    assert log.log.fenced is None
    log.plain(count=12)
    log.log.close()
    synced = MemoryFiles(base=what_is_synced(files))
    for each in files.list(PATH):
        assert synced.read(f"{PATH}/{each.name}", 1 << 20) == files.read(f"{PATH}/{each.name}", 1 << 20)


def test_a_snapshot_that_could_not_be_removed_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of an incompletely written snapshot may stay; the next write replaces it."""
    files, plan, log = faulty("write", error=errno.EIO)
    log.idempotent(1, 0)
    snapshots = log.log.snapshots
    fail_next(plan)
    with monkeypatch.context() as patch:
        patch.setattr(log.log.files, "remove", refuse)
        with pytest.raises(OSError, match="planned"):
            snapshots.write(2, b"content")
    assert files.exists(snapshots.path(2))
    snapshots.write(2, b"content")
    assert snapshots.read(2) == b"content"


@pytest.mark.parametrize("is_flushed", [False, True])
def test_an_epoch_is_durable_with_the_batch_that_begins_it(is_flushed: bool) -> None:
    """The epoch is not written before its batch: after a crash in between, the epochs are taken from the
    batches that are left."""
    files, _, log = faulty("sync")
    log.plain()
    log.log.flush()
    begin = len(files.journal)
    log.append(data(), leader_epoch=5)
    assert files.read(f"{PATH}/leader-epoch-checkpoint", 100) == b"0\n1\n0 0\n"
    if is_flushed:
        log.log.flush()
        begin = len(files.journal)
    for state in crash_states(files, begin=begin):
        disk = MemoryFiles(base=state.disk)
        if is_flushed:
            assert disk.read(f"{PATH}/leader-epoch-checkpoint", 100) == b"0\n2\n0 0\n5 2\n", state.name
        again = on(disk, log).log
        assert again.epochs.entries == [(0, 0), (5, 2)][: again.log_end_offset // 2], state.name

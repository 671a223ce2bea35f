"""What a crash, or an error of the disk, leaves of a deletion of old segments: their snapshots go last, since
recovery may begin at any segment that is still there."""

from __future__ import annotations

import errno

import pytest

from tests.unit.storage.client import NOW, PATH, Log, data, opened
from txnkafka.storage.log.segment_deletion import SegmentDeletion
from txnkafka.storage.log.truncation import cut_at_beginning, delete_records, retention
from txnkafka.storage.recovery.log_loader import Start
from txnkafka.storage.work import perform
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles


def log_of_three(files: MemoryFiles | FaultyFiles) -> Log:
    """Return a flushed log of segments at 0, 2, 4 and 6. Producer 1 has written to the first one only."""
    log = Log(opened(files, segment_bytes=len(data(7, 0))))
    log.idempotent(1, 0)
    for number in range(3):
        log.idempotent(7, 2 * number)
    log.log.flush()
    assert log.bases == [0, 2, 4, 6]
    return log


def deletion(log: Log, count: int) -> SegmentDeletion:
    return log.log.begin_deletion(cut_at_beginning(log.log, count), NOW)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_crash_during_a_deletion_forgets_no_producer(count: int) -> None:
    """Also with an old recovery point, so that recovery begins with the first segment that is left, and with
    one of the segments that are left over."""
    files = MemoryFiles()
    log = log_of_three(files)
    begin = len(files.journal)
    deletion(log, count).run()
    states = list(crash_states(files, begin=begin))
    assert len(states) > 4 * count
    for state in states:
        for recovery_point in (0, 4):
            again = opened(MemoryFiles(base=state.disk), Start(recovery_point=recovery_point))
            assert again.producers.entry(1) is not None, (state.name, recovery_point)
            bases = [segment.base_offset for segment in again.segments]
            assert set(again.snapshots.offsets) <= {*bases, 8}, "snapshots of segments that are gone"


def test_a_crash_during_a_second_deletion_forgets_no_producer() -> None:
    """The first segment is not the first that the log ever had: its own snapshot alone has producer 1."""
    files = MemoryFiles()
    log = log_of_three(files)
    perform(deletion(log, 1))
    begin = len(files.journal)
    deletion(log, 1).run()
    for state in crash_states(files, begin=begin):
        again = opened(MemoryFiles(base=state.disk), Start(log_start_offset=2))
        assert again.producers.entry(1) is not None, state.name


def test_snapshots_are_removed_behind_the_names_of_all_segments() -> None:
    files = MemoryFiles()
    log = log_of_three(files)
    begin = len(files.journal)
    work = deletion(log, 3)
    assert log.log.snapshots.offsets == [6]
    work.run()
    changes = [(each.kind, each.path.removeprefix(f"{PATH}/")) for each in files.journal[begin:]]
    renamed = max(number for number, (kind, _) in enumerate(changes) if kind == "rename")
    removed = [change for change in changes[renamed:] if change[0] == "remove"]
    assert changes[renamed + 1][0] == "sync_directory"
    assert removed == [("remove", f"{base:020}.snapshot") for base in (2, 4)]
    assert [each for each in changes if each[0] == "remove"] == removed
    assert [name for name in log.names() if name.endswith(".snapshot")] == [f"{6:020}.snapshot"]


def test_a_snapshot_that_cannot_be_removed_stops_the_log() -> None:
    """The log has changed in memory by then, and its files have their new names: what is left over is for the
    next start."""
    files, plan = MemoryFiles(), FaultPlan(error=errno.EIO, call="remove")
    log = log_of_three(FaultyFiles(files, plan))
    delete_records(log.log, 6)
    plan.fails = plan.counted + 1
    work = retention(log.log, NOW)
    assert work is not None, "nothing fails before the files are renamed"
    with pytest.raises(OSError, match="planned"):
        perform(work)
    assert log.log.fenced is not None
    assert (log.bases, log.log.log_start_offset) == ([6], 6)
    again = opened(files, Start(log_start_offset=log.log.log_start_offset))
    assert [segment.base_offset for segment in again.segments] == [6]
    assert again.log_start_offset == 6
    assert again.producers.entry(1) is not None
    assert again.snapshots.offsets == [6, 8]

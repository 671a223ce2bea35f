"""Truncation at the end, DeleteRecords, and retention."""

from __future__ import annotations

import errno

import pytest

from tests.unit.storage.client import NOW, PATH, Log, data, opened
from tests.unit.storage.reads import read
from txnkafka.errors import KafkaStorageError, OffsetOutOfRangeError, OutOfOrderSequenceError
from txnkafka.storage.formats.checkpoint import EpochEntry
from txnkafka.storage.log.leader_epochs import LeaderEpochs
from txnkafka.storage.log.truncation import delete_old_segments, delete_records, truncate_to
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles

SIZE = len(data())


def log_of(batches: int, **configs: object) -> Log:
    """Return a flushed log with two batches of two records in each segment."""
    log = Log(segment_bytes=2 * SIZE, **configs)
    for _ in range(batches):
        log.plain()
    log.log.flush()
    return log


# Truncation at the end


@pytest.mark.parametrize("offset", range(12))
def test_ul_44_a_cut_anywhere(offset: int) -> None:
    """Whole batches are removed; the log continues at the first offset of the first removed batch. Kafka
    leaves a gap there."""
    log, end = log_of(6), offset // 2 * 2
    assert truncate_to(log.log, offset, now_ms=NOW)
    assert log.bases == [base for base in (0, 4, 8) if base <= end]
    assert sum(segment.size for segment in log.log.segments) == offset // 2 * SIZE
    assert log.log.log_end_offset == log.log.high_watermark == log.log.recovery_point == end
    assert log.plain().first_offset == end
    log.log.flush()
    log.restart()
    assert log.log.log_end_offset == end + 2


def test_a_truncation_above_the_log_end_does_nothing() -> None:
    log = log_of(2)
    assert not truncate_to(log.log, 4, now_ms=NOW)
    with pytest.raises(ValueError, match="-1"):
        truncate_to(log.log, -1, now_ms=NOW)


def test_ul_44_transactions_behind_a_cut_were_never_there() -> None:
    log = Log()
    log.transactional(7, 0)  # 0, 1
    log.end(7, commit=False)  # 2
    log.transactional(7, 2)  # 3, 4
    log.log.flush()
    truncate_to(log.log, 3, now_ms=NOW)
    assert (log.log.producers.first_unstable_offset, log.log.last_stable_offset) == (None, 3)
    truncate_to(log.log, 2, now_ms=NOW)
    assert log.log.last_stable_offset == 0
    assert read(log.log, 0, max_bytes=1000, isolation_level=None).aborted_transactions is None
    assert log.log.active.txn_index is not None
    assert log.log.active.txn_index.entries == []
    log.end(7, commit=False)
    log.restart()
    found = read(log.log, 0, max_bytes=1000)
    assert found.aborted_transactions == [(0, 7, 0, 2, 3)]


def test_indexes_are_cut_durably() -> None:
    """With the next flush the recovery point passes the segment, and from then on the indexes are trusted."""
    log = Log()
    log.transactional(7, 0)  # 0, 1
    log.end(7, commit=False)  # 2
    log.restart()
    truncate_to(log.log, 2, now_ms=NOW)
    log.log.roll(NOW)
    log.end(7, commit=True)
    log.restart(power_cut=True)
    assert (log.bases, log.log.log_end_offset) == ([0], 2)
    log.end(7, commit=True)
    log.log.flush()
    assert read(log.log, 0, max_bytes=1).aborted_transactions == []


def test_transactions_above_the_high_watermark_stay_hidden_after_a_cut() -> None:
    """The transactions ended below the snapshot from which the producers are loaded after the truncation."""
    log = Log()
    log.plain()
    log.transactional(7, 0)  # 2, 3
    log.log.offsets.advance_high_watermark(3)
    log.end(7)  # 4
    log.log.roll(NOW)
    log.plain()
    log.plain()
    assert truncate_to(log.log, 7, now_ms=NOW)
    assert (log.log.high_watermark, log.log.last_stable_offset) == (3, 2)
    log.log.offsets.advance_high_watermark(5)
    assert log.log.last_stable_offset == 5


def test_ul_60_producers_after_a_cut() -> None:
    log = Log(segment_bytes=300)
    for number in range(6):
        log.idempotent(7, 2 * number)
    truncate_to(log.log, 8, now_ms=NOW)
    assert log.idempotent(7, 6).is_duplicate
    with pytest.raises(OutOfOrderSequenceError):
        log.idempotent(7, 10)
    assert log.idempotent(7, 8).first_offset == 8


def test_ul_73_leader_epochs_are_cut_at_both_ends() -> None:
    log = Log(segment_bytes=SIZE)
    for epoch in range(5):
        log.append(data(), leader_epoch=epoch)
    log.log.flush()
    truncate_to(log.log, 6, now_ms=NOW)
    assert log.log.epochs.entries == [(0, 0), (1, 2), (2, 4)]
    delete_records(log.log, 3)
    assert log.log.epochs.entries == [(1, 3), (2, 4)]
    log.restart()
    assert log.log.epochs.entries == [(1, 3), (2, 4)]


def test_an_epoch_that_begins_at_the_end_goes_with_a_cut_there() -> None:
    """No other data is truncated. A failed append left the epoch."""
    log = log_of(1)
    log.log.set_epochs(LeaderEpochs([*log.log.epochs.entries, EpochEntry(4, 2)]))
    assert not truncate_to(log.log, 2, now_ms=NOW)
    assert log.log.epochs.entries == [(0, 0)]


def test_a_cut_that_fails_fences() -> None:
    plan = FaultPlan()
    log = Log(opened(FaultyFiles(MemoryFiles(), plan)))
    log.plain()
    log.log.flush()
    plan.__init__(1, errno.EIO, "truncate")
    with pytest.raises(KafkaStorageError):
        truncate_to(log.log, 0, now_ms=NOW)
    assert log.log.fenced is not None


# DeleteRecords


def test_ul_70_the_log_start_may_not_pass_the_high_watermark() -> None:
    log = log_of(2)
    log.plain()
    for offset in (5, -2):
        with pytest.raises(OffsetOutOfRangeError, match="the high watermark is"):
            delete_records(log.log, offset)
    assert delete_records(log.log, -1) == 4
    assert delete_records(log.log, 2) == 4
    with pytest.raises(OffsetOutOfRangeError):
        read(log.log, 3, max_bytes=1)


def test_ul_43_a_log_start_inside_an_open_transaction() -> None:
    """The last stable offset is the first offset of the batch that contains the log start."""
    log = Log(segment_bytes=len(data(7, 0)))
    for number in range(4):
        log.transactional(7, 2 * number)
    log.log.flush()
    delete_records(log.log, 3)
    assert log.log.last_stable_offset == 2
    assert delete_old_segments(log.log, NOW) == 1
    assert (log.bases, log.log.log_start_offset, log.log.last_stable_offset) == ([2, 4, 6], 3, 2)
    for clean in (True, False):
        log.restart(clean=clean)
        assert (log.log.log_start_offset, log.log.last_stable_offset) == (3, 2)
        assert log.log.producers.open_transactions()[0].current_txn_first_offset == 0
    log.end(7, commit=False)
    log.log.flush()
    assert read(log.log, 3, max_bytes=1).aborted_transactions == [(0, 7, 0, 8, 9)]


@pytest.mark.parametrize("clean", [True, False])
def test_a_retry_of_what_was_deleted_is_still_a_duplicate(clean: bool) -> None:
    """Kafka drops the producer when it rebuilds its state above the log start; the retry would be appended
    again."""
    log = Log()
    log.idempotent(7, 0)
    log.plain()
    log.log.flush()
    delete_records(log.log, 4)
    log.restart(clean=clean)
    assert log.idempotent(7, 0) == (0, 1, NOW, 4, True, -1, 2)


# Retention


def test_segments_below_the_log_start_are_deleted() -> None:
    log = log_of(6)
    delete_records(log.log, 7)
    assert delete_old_segments(log.log, NOW) == 1
    assert (log.bases, log.log.log_start_offset) == ([4, 8], 7)
    delete_records(log.log, 12)
    assert delete_old_segments(log.log, NOW) == 1
    assert log.bases == [8], "the active segment stays"


@pytest.mark.parametrize(
    ("retention_bytes", "bases"),
    [(-1, [0, 4, 8]), (6 * SIZE, [0, 4, 8]), (4 * SIZE + 1, [0, 4, 8]), (4 * SIZE, [4, 8]), (0, [12])],
)
def test_retention_by_size(retention_bytes: int, bases: list[int]) -> None:
    """Retention keeps at least retention.bytes."""
    log = log_of(6, retention_bytes=retention_bytes, retention_ms=-1)
    delete_old_segments(log.log, NOW)
    assert log.bases == bases
    assert log.log.log_start_offset == bases[0]
    assert log.plain().first_offset == 12


def test_retention_by_time_goes_by_the_records() -> None:
    log = Log(segment_bytes=2 * SIZE, retention_ms=1000)
    for timestamp in (NOW, NOW + 500, NOW + 5000, NOW, NOW):
        log.plain(timestamp=timestamp)
    log.log.flush()
    assert delete_old_segments(log.log, NOW + 1500) == 0
    assert delete_old_segments(log.log, NOW + 1501) == 1
    assert log.bases == [4, 8]
    assert delete_old_segments(log.log, NOW + 5000) == 0, "a segment waits for the older one"
    assert delete_old_segments(log.log, NOW + 6001) == 2
    assert log.bases == [10]


def test_records_without_timestamps_are_as_old_as_the_last_write_of_their_segment() -> None:
    """The modification time of the file counts, as in Kafka; the creation of the segment would be too
    early."""
    log = Log(segment_bytes=2 * SIZE, retention_ms=1000)
    log.plain(timestamp=-1)
    log.now_ms += 800
    log.plain(timestamp=-1)
    log.plain(timestamp=-1)
    log.log.flush()
    assert delete_old_segments(log.log, NOW + 1800) == 0
    assert delete_old_segments(log.log, NOW + 1801) == 2


def test_data_above_the_high_watermark_is_kept() -> None:
    log = log_of(2, retention_ms=0)
    log.plain()
    log.log.flush()
    log.plain()
    log.plain()
    assert log.bases == [0, 4, 8]
    assert delete_old_segments(log.log, NOW + 10**6) == 1
    assert log.bases == [4, 8], "the next segment has no final name yet"
    log.log.flush()
    log.plain()
    assert delete_old_segments(log.log, NOW + 10**6) == 1
    assert log.bases == [8]


def test_retention_keeps_the_producers_of_which_no_snapshot_is_there() -> None:
    log = Log(segment_bytes=2 * SIZE, retention_bytes=0)
    for number in range(3):
        log.idempotent(7 + number, 0)
        log.idempotent(7 + number, 2)
    log.log.flush()
    assert log.bases == [0, 4, 8]
    log.log.snapshots.remove(8)
    delete_old_segments(log.log, NOW)
    log.restart(power_cut=True)
    assert log.log.log_start_offset >= 8
    assert [log.idempotent(producer_id, 2).is_duplicate for producer_id in (7, 8, 9)] == [True] * 3


def test_a_topic_that_is_only_compacted_has_no_retention() -> None:
    log = Log(cleanup_policy="compact", retention_ms=0, retention_bytes=0)
    log.plain()
    log.log.flush()
    assert delete_old_segments(log.log, NOW + 10**6) == 0


def test_deleted_files_stay_for_a_while() -> None:
    log = log_of(4, retention_bytes=0, file_delete_delay_ms=1000)
    log.restart()
    delete_old_segments(log.log, NOW)
    deleted = [name for name in log.names() if name.endswith(".deleted")]
    assert {name.split(".")[1] for name in deleted} == {"log", "index", "timeindex"}
    assert len(deleted) == 6
    log.log.local.remove_deleted(NOW + 999)
    assert set(deleted) <= set(log.names())
    log.log.local.remove_deleted(NOW + 1000)
    assert not [name for name in log.names() if name.endswith(".deleted")]


def test_ul_62_snapshots_go_with_their_segments() -> None:
    log = Log(segment_bytes=len(data(7, 0)))
    for number in range(4):
        log.idempotent(7, 2 * number)
    log.log.flush()
    assert log.log.snapshots.offsets == [2, 4, 6]
    delete_records(log.log, 4)
    delete_old_segments(log.log, NOW)
    assert log.log.snapshots.offsets == [4, 6]


@pytest.mark.parametrize("lost", [False, True])
def test_producers_outlive_their_segments_and_a_power_cut(lost: bool) -> None:
    """Before a segment is deleted, the snapshot above it is durable: nothing else records the state of its
    producers."""
    log = Log(segment_bytes=len(data(7, 0)), retention_bytes=0)
    log.idempotent(7, 0)
    log.plain()
    log.log.flush()
    files = log.log.files
    assert isinstance(files, MemoryFiles)
    if lost:
        log.log.snapshots.remove(2)
    before = len(files.journal)
    delete_old_segments(log.log, NOW)
    changes = [(change.kind, change.path.removeprefix(f"{PATH}/")) for change in files.journal[before:]]
    kinds = [kind for kind, _ in changes]
    assert changes.index(("sync", "00000000000000000004.snapshot")) < kinds.index("sync_directory")
    assert kinds.index("sync_directory") < kinds.index("rename")
    log.restart(clean=False)
    assert log.idempotent(7, 0).is_duplicate


def test_a_snapshot_that_was_lost_is_durable_before_the_segments_below_it_go() -> None:
    log = Log(segment_bytes=len(data(7, 0)))
    for number in range(3):
        log.idempotent(7, 2 * number)
    log.log.flush()
    log.log.snapshots.remove(2)
    files = log.log.files
    assert isinstance(files, MemoryFiles)
    before = len(files.journal)
    delete_records(log.log, 2)
    delete_old_segments(log.log, NOW)
    changes = [(change.kind, change.path.removeprefix(f"{PATH}/")) for change in files.journal[before:]]
    kinds = [kind for kind, _ in changes]
    synced = changes.index(("sync", f"{2:020}.snapshot"))
    assert synced < kinds.index("sync_directory", synced) < kinds.index("rename", synced)

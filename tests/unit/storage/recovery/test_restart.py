"""The state of a log survives restarts and the deletion of old data."""

from __future__ import annotations

import errno
import struct

import pytest
from crc32c import crc32c

from tests.unit.storage.logs import DIRECTORY, NOW, append, content, end, opened, restarted
from tests.unit.storage.reads import read
from txnkafka._core.encode import encode_batch
from txnkafka._core.scan import scan
from txnkafka.errors import KafkaStorageError, OutOfOrderSequenceError
from txnkafka.storage.formats.checkpoint import EpochEntry
from txnkafka.storage.log.leader_epochs import LeaderEpochs
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.log.truncation import delete_old_segments, truncate_to
from txnkafka.storage.recovery.log_loader import Start, open_log
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles


def busy() -> PartitionLog:
    """Return a log of several segments; offset 0 is in a transaction that is aborted at 5; 6 begins one that
    stays open."""
    log = opened(segment_bytes=250)
    append(log, producer_id=1, transactional=True)
    for sequence in range(4):
        append(log, producer_id=2, sequence=sequence)
    end(log, 1, commit=False)
    append(log, producer_id=3, transactional=True)
    append(log)
    log.flush()
    assert len(log.segments) > 3
    return log


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_changes_nothing(clean: bool) -> None:
    """Only the files of the active segment may be written again, and the state is the same; the snapshots are
    kept, so that the next start is fast."""
    log = busy()
    once = restarted(log)
    before = content(once.files)
    again = restarted(once, clean=clean)
    assert content(again.files) == before
    for name in ("log_end_offset", "high_watermark", "last_stable_offset", "recovery_point"):
        assert getattr(again, name) == getattr(log, name), name
    assert again.producers.snapshot() == once.producers.snapshot()
    assert again.snapshots.offsets == once.snapshots.offsets


@pytest.mark.parametrize("restart", ["none", "clean", "unclean"])
@pytest.mark.parametrize("distance", range(1, 7))
def test_retries_of_the_last_five_batches_are_known(restart: str, distance: int) -> None:
    log = opened()
    for sequence in range(8):
        append(log, producer_id=7, sequence=sequence)
    log.flush()
    if restart != "none":
        log = restarted(log, clean=restart == "clean")
    if distance > 5:
        with pytest.raises(OutOfOrderSequenceError):
            append(log, producer_id=7, sequence=8 - distance)
    else:
        info = append(log, producer_id=7, sequence=8 - distance)
        assert info.is_duplicate
        assert info.first_offset == info.last_offset == 8 - distance
    assert log.log_end_offset == 8


def test_a_retry_that_cannot_be_looked_for_is_refused_for_now() -> None:
    """The batches before the last one are in the log only, and the disk does not give them. The client sends
    the batch again; the log is not fenced."""
    plan = FaultPlan()
    log = opened(FaultyFiles(MemoryFiles(), plan))
    for sequence in range(8):
        append(log, producer_id=7, sequence=sequence)
    log.flush()
    log = restarted(log)
    plan.__init__(1, errno.EIO, "read_into")  # type: ignore[misc]
    with pytest.raises(KafkaStorageError, match=r"t-0: older batches of producer 7 cannot be read: .*error"):
        append(log, producer_id=7, sequence=5)
    assert (log.log_end_offset, log.fenced, len(plan.failed)) == (8, None, 1)
    assert append(log, producer_id=7, sequence=5).is_duplicate
    assert append(log, producer_id=7, sequence=8).first_offset == 8


@pytest.mark.parametrize("restart", [False, True])
def test_a_producer_outlives_its_data(restart: bool) -> None:
    log = opened(retention_ms=1000)
    append(log, producer_id=7)
    append(log, producer_id=7, sequence=1)
    log.flush()
    assert delete_old_segments(log, NOW + 100_000) == 1
    assert log.log_start_offset == log.log_end_offset == 2
    log.flush()
    if restart:
        log = restarted(log)
    assert append(log, producer_id=7, sequence=1).is_duplicate
    with pytest.raises(OutOfOrderSequenceError):
        append(log, producer_id=7, sequence=3)
    assert not append(log, producer_id=7, sequence=2).is_duplicate


def test_looking_for_aborted_transactions_changes_no_producer() -> None:
    """A missing transaction index is rebuilt with a separate producer table."""
    log = busy()
    log.close()
    for name in content(log.files):
        if name.endswith(".txnindex"):
            log.files.remove(f"{DIRECTORY}/{name}")
    log = restarted(log)
    before, stable = log.producers.snapshot(), log.last_stable_offset
    answer = read(log, 0, max_bytes=1 << 20).aborted_transactions
    assert [each.last_offset for each in answer or ()] == [5]
    assert (log.producers.snapshot(), log.last_stable_offset) == (before, stable)


def test_a_transaction_that_is_cut_off_is_not_open() -> None:
    log = busy()
    assert log.last_stable_offset == 6
    truncate_to(log, 6, now_ms=NOW)
    assert (log.log_end_offset, log.last_stable_offset) == (6, 6)
    assert log.producers.open_count == 0
    append(log)
    log.flush()
    assert log.last_stable_offset == 7
    truncate_to(log, 3, now_ms=NOW)
    assert log.last_stable_offset == 0
    assert log.producers.open_count == 1


def test_rolling_twice_makes_one_segment() -> None:
    log = opened()
    append(log)
    log.roll(NOW)
    log.roll(NOW)
    assert [each.base_offset for each in log.segments] == [0, 1]
    append(log)
    assert [each.base_offset for each in restarted(log).segments] == [0, 1]


def test_what_is_deleted_later_is_not_what_came_back_under_its_name() -> None:
    log = opened(segment_bytes=120, file_delete_delay_ms=1000)
    for sequence in range(4):
        append(log, producer_id=7, sequence=sequence)
    truncate_to(log, 1, now_ms=NOW)
    for sequence in range(1, 4):
        append(log, producer_id=7, sequence=sequence)
    before = {name for name in content(log.files) if not name.endswith(".deleted")}
    log.local.remove_deleted(NOW + 1000)
    assert set(content(log.files)) == before
    log.flush()
    log = restarted(log, clean=False)
    assert log.log_end_offset == 4


def damaged(log: PartitionLog, name: str, content: bytes, position: int | None = None) -> None:
    """Close the log and write into one of its files; without a position, at the end of the file."""
    log.close()
    path = f"{DIRECTORY}/{name}"
    file = log.files.open_to_write(path)
    file.write(len(log.files.read(path, 1 << 20)) if position is None else position, [content])
    file.close()


@pytest.mark.parametrize("clean", [True, False])
def test_a_torn_tail_is_cut(clean: bool) -> None:
    log = opened()
    append(log)
    whole = bytes(read(log, 0, max_bytes=1000, isolation_level=None).records)
    damaged(log, "00000000000000000000.log", whole[:-5])
    log = open_log(log.files, DIRECTORY, log.topic_partition, log.config, Start(clean), now_ms=NOW).log
    assert log.log_end_offset == 1
    assert content(log.files)["00000000000000000000.log"] == whole
    assert [append(log).first_offset for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("interval", [0, 4096])
@pytest.mark.parametrize("clean", [True, False])
def test_index_entries_of_a_torn_batch_are_removed(clean: bool, interval: int) -> None:
    log = opened(segment_bytes=1000, index_interval_bytes=interval)
    for later in range(3):
        append(log, NOW + later)
    damaged(log, "00000000000000000000.log", b"", 0)
    file = log.files.open_to_write(f"{DIRECTORY}/00000000000000000000.log")
    file.truncate(log.active.size - 5)
    file.close()
    log = open_log(log.files, DIRECTORY, log.topic_partition, log.config, Start(clean), now_ms=NOW).log
    log.close()
    found = content(log.files)
    assert found["00000000000000000000.timeindex"][-12:] == struct.pack(">qi", NOW + 1, 1)
    assert len(found["00000000000000000000.index"]) == (0 if interval else 8)


def test_epochs_that_begin_behind_the_end_go_with_it() -> None:
    log = opened(segment_bytes=1000)
    append(log)
    append(log, leader_epoch=3)
    end_of_first = log.active.size // 2
    damaged(log, "00000000000000000000.log", b"\xff", end_of_first + 70)
    log = open_log(log.files, DIRECTORY, log.topic_partition, log.config, Start(), now_ms=NOW).log
    assert (log.log_end_offset, log.epochs.latest) == (1, 0)
    assert content(log.files)["leader-epoch-checkpoint"] == b"0\n1\n0 0\n"


@pytest.mark.parametrize("clean", [True, False])
def test_an_epoch_that_begins_at_the_log_end_is_not_in_the_log(clean: bool) -> None:
    """A broker leaves such an epoch when it becomes the leader and writes nothing."""
    log = opened()
    append(log)
    log.set_epochs(LeaderEpochs([EpochEntry(0, 0), EpochEntry(5, 1)]))
    log.close()
    start = Start(clean, log.recovery_point)
    log = open_log(log.files, DIRECTORY, log.topic_partition, log.config, start, now_ms=NOW).log
    assert (log.log_end_offset, log.epochs.latest) == (1, 0)


@pytest.mark.parametrize("start", [Start(True, 4), Start(False, 4), Start(False, 0), Start(False, None)])
def test_epochs_of_segments_that_tiered_storage_has_stay_known(start: Start) -> None:
    """Apache Kafka deletes what tiered storage has of epochs before the first one in the file (KIP-405)."""
    log = opened(segment_bytes=120)
    for epoch in range(4):
        append(log, leader_epoch=epoch)
    log.close()
    for name in content(log.files):
        if name.startswith(("00000000000000000000.", "00000000000000000001.")):
            log.files.remove(f"{DIRECTORY}/{name}")
    found = open_log(log.files, DIRECTORY, log.topic_partition, log.config, start, now_ms=NOW).log
    assert (found.log_start_offset, found.log_end_offset) == (2, 4)
    assert found.epochs.entries == [EpochEntry(epoch, epoch) for epoch in range(4)]
    found.close()
    assert content(log.files)["leader-epoch-checkpoint"] == b"0\n4\n0 0\n1 1\n2 2\n3 3\n"


def test_after_a_crash_an_epoch_above_the_recovery_point_is_that_of_a_lost_batch() -> None:
    """The file has an epoch whose batch did not become durable; the batches that are there have another."""
    log = opened(segment_bytes=1000)
    for _ in range(3):
        append(log)
    log.set_epochs(LeaderEpochs([EpochEntry(0, 0), EpochEntry(5, 1)]))
    log.close()
    start = Start(clean_shutdown=False, recovery_point=1)
    again = open_log(log.files, DIRECTORY, log.topic_partition, log.config, start, now_ms=NOW).log
    assert (again.log_end_offset, again.epochs.entries) == (3, [EpochEntry(0, 0)])
    assert content(log.files)["leader-epoch-checkpoint"] == b"0\n1\n0 0\n"


def test_epochs_that_a_clean_start_cuts_leave_the_file_with_the_next_append() -> None:
    """Otherwise the file would claim after a crash that the next batches have such an epoch."""
    log = opened()
    append(log)
    log.set_epochs(LeaderEpochs([EpochEntry(0, 0), EpochEntry(5, 1)]))
    log.close()
    again = restarted(log)
    assert content(log.files)["leader-epoch-checkpoint"] == b"0\n2\n0 0\n5 1\n", "a start writes nothing"
    append(again)
    again.flush()
    assert content(log.files)["leader-epoch-checkpoint"] == b"0\n1\n0 0\n"


def test_epochs_below_the_noted_log_start_go() -> None:
    log = opened(segment_bytes=120)
    for epoch in range(4):
        append(log, leader_epoch=epoch)
    log.close()
    start = Start(False, 4, log_start_offset=2)
    found = open_log(log.files, DIRECTORY, log.topic_partition, log.config, start, now_ms=NOW).log
    assert found.epochs.entries == [EpochEntry(2, 2), EpochEntry(3, 3)]


@pytest.mark.parametrize("clean", [True, False])
def test_a_snapshot_of_offsets_that_the_log_has_not_goes(clean: bool) -> None:
    log = busy()
    log.snapshots.write(99, log.producers.snapshot())
    log = restarted(log, clean=clean)
    assert log.snapshots.offsets[-1] == log.log_end_offset == 8


def test_a_producer_with_an_impossible_epoch_outlives_restarts() -> None:
    """No client may write it, but a log may have it; its snapshot was taken for damage at every start."""
    batch = bytearray(encode_batch([(None, b"value", NOW)], producer_id=7, producer_epoch=0, base_sequence=0))
    batch[51:53] = (-3).to_bytes(2, "big", signed=True)
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    log = opened()
    log.active.write(0, [batch])
    log = restarted(log, clean=False)
    assert [each.producer_epoch for each in log.producers.entries()] == [-3]
    log.close()
    again = open_log(log.files, DIRECTORY, log.topic_partition, log.config, Start(True, 1), now_ms=NOW)
    assert (again.repairs, again.log.producers.entries()) == ([], log.producers.entries())


def test_recovery_notes_the_latest_time_of_every_segment() -> None:
    """The last segment gets its largest timestamp, too, as if it were closed (``LogSegment.recover``)."""
    log = opened(segment_bytes=1000, index_interval_bytes=4096)
    append(log, NOW + 5)
    log.flush()
    assert not len(log.active.time_index)
    log = restarted(log, clean=False)
    assert log.active.time_index.last() == (NOW + 5, 0)


def test_a_wrong_index_is_rebuilt() -> None:
    """Each entry, except for the last, gives the position of the batch before."""
    log = opened(segment_bytes=1000)
    for _ in range(5):
        append(log)
    size = log.active.size // 5
    entries = struct.pack(">6i", 1, 2 * size, 2, 3 * size, 3, 3 * size + 1)
    damaged(log, "00000000000000000000.index", entries, 0)
    log = open_log(log.files, DIRECTORY, log.topic_partition, log.config, Start(True, 5), now_ms=NOW).log
    for offset in range(5):
        records = read(log, offset, max_bytes=1, isolation_level=None).records
        assert list(scan(records).base_offset) == [offset]

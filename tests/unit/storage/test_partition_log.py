"""Appends to the log of a partition: offsets, rolls, epochs, duplicates, offsets that readers see, failures."""

from __future__ import annotations

import errno

import pytest

from tests.unit.storage.client import NOW, PATH, Log, data, marker, opened
from txnkafka._core.scan import scan
from txnkafka.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaStorageError,
    MessageTooLargeError,
    OutOfOrderSequenceError,
    RecordListTooLargeError,
    TransactionCoordinatorFencedError,
)
from txnkafka.storage import parse_producer_snapshot
from txnkafka.storage.append import AppendOrigin
from txnkafka.storage.log_read import read
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles

BATCH = len(data())  # bytes of two records


def test_offsets_and_bytes() -> None:
    log = Log()
    assert log.plain(3) == (0, 2, -1, 0, False)
    assert log.plain(1) == (3, 3, -1, 0, False)
    found = scan(log.log.active.read(0, log.log.active.size))
    assert [(each.base_offset, each.last_offset) for each in found] == [(0, 2), (3, 3)]
    assert (log.log.log_end_offset, log.log.high_watermark) == (4, 0)


def test_the_batch_of_a_caller_is_written_as_it_is() -> None:
    """A bytearray is changed in place, bytes are copied."""
    log, batch = Log(), data()
    content = bytes(batch)
    log.append(content, leader_epoch=4)
    log.append(batch, leader_epoch=4)
    assert content == bytes(data())
    assert scan(batch)[0].base_offset == 2
    assert scan(batch)[0].partition_leader_epoch == 4


def test_ul_71_leader_epochs() -> None:
    log = Log()
    for epoch in (3, 3, 5):
        log.append(data(), leader_epoch=epoch)
    assert log.log.epochs.entries == [(3, 0), (5, 4)]
    found = scan(log.log.active.read(0, log.log.active.size))
    assert [each.partition_leader_epoch for each in found] == [3, 3, 5]
    log.restart()
    assert log.log.epochs.entries == [(3, 0), (5, 4)]


# Rolling


def test_ul_66_a_batch_that_does_not_fit() -> None:
    log = Log(segment_bytes=2 * BATCH)
    for _ in range(5):
        log.plain()
    assert log.bases == [0, 4, 8]
    assert [segment.size for segment in log.log.segments] == [2 * BATCH, 2 * BATCH, BATCH]


def test_ul_67_batches_that_are_too_large() -> None:
    log = Log(segment_bytes=BATCH, max_message_bytes=BATCH)
    log.plain()
    with pytest.raises(MessageTooLargeError):
        log.plain(3)
    log = Log(segment_bytes=BATCH)
    with pytest.raises(RecordListTooLargeError):
        log.plain(3)
    assert (log.bases, log.log.log_end_offset) == ([0], 0)


def test_ul_65_age_is_counted_by_the_records_clock() -> None:
    log = Log(segment_ms=1000)
    log.plain(timestamp=NOW - 5000)
    log.now_ms += 50_000
    log.plain(timestamp=NOW - 4000)
    assert log.bases == [0]
    log.plain(timestamp=NOW - 3999)
    assert log.bases == [0, 4]
    log.log.roll_jitter_ms = 400
    log.plain(timestamp=NOW - 3999 + 601)
    assert log.bases == [0, 4, 6]


def test_without_timestamps_age_is_that_of_the_segment() -> None:
    log = Log(segment_ms=1000)
    log.plain(timestamp=-1)
    log.now_ms += 1000
    log.plain(timestamp=-1)
    assert log.bases == [0]
    log.now_ms += 1
    log.plain(timestamp=-1)
    assert log.bases == [0, 4]


def test_an_age_that_was_seen_before_a_restart() -> None:
    log = Log(segment_ms=1000)
    log.plain(timestamp=NOW)
    log.restart()
    log.plain(timestamp=NOW + 1001)
    assert log.bases == [0, 2]


@pytest.mark.parametrize(("index_bytes", "bases"), [(24, [0, 8]), (10_000, [0])])
def test_a_full_index(index_bytes: int, bases: list[int]) -> None:
    log = Log(index_interval_bytes=0, segment_index_bytes=index_bytes)
    for number in range(5):
        log.plain(timestamp=NOW + number)
    assert log.bases == bases or index_bytes == 24 and log.bases[0] == 0 < log.bases[1]


def test_an_offset_too_far_from_the_base() -> None:
    log = Log()
    log.plain()
    log.log.log_end_offset = 2**31 - 2
    log.plain(2)
    assert log.bases == [0]
    log.plain(1)
    assert log.bases == [0, 2**31]


def test_an_empty_segment_is_not_rolled() -> None:
    log = Log()
    log.log.roll(NOW)
    assert log.bases == [0]
    log.plain()
    log.log.roll(NOW)
    log.log.roll(NOW)
    assert log.bases == [0, 2]


def test_what_lies_under_the_name_of_a_new_segment_goes() -> None:
    log = Log()
    log.plain()
    for kind in ("log", "index", "txnindex"):
        file = log.log.files.create(f"{PATH}/00000000000000000002.{kind}")
        file.write(0, [b"left behind"])
    log.log.roll(NOW)
    log.plain()
    log.restart(clean=False)
    assert log.log.log_end_offset == 4
    assert "00000000000000000002.txnindex" not in log.names()


def test_ul_61_snapshots_at_a_roll_and_at_a_close() -> None:
    log = Log()
    log.idempotent(7, 0)
    log.log.roll(NOW)
    assert log.log.snapshots.offsets == [2]
    log.idempotent(7, 2)
    log.log.close()
    assert log.log.snapshots.offsets == [2, 4]
    (entry,) = parse_producer_snapshot(log.log.snapshots.read(4))
    assert (entry.last_sequence, entry.last_offset) == (3, 3)


def test_preallocated_files_end_where_the_log_ends_after_roll_and_close() -> None:
    log = Log(segment_bytes=1000, preallocate=True)
    log.plain()

    def sizes() -> list[int]:
        entries = log.log.files.list(PATH)
        return [each.size for each in entries if each.name.endswith(".log")]

    assert sizes() == [1000] or sizes() == [BATCH]
    log.log.roll(NOW)
    log.plain()
    assert sizes() == [BATCH, 1000]
    log.log.flush()
    log.log.close()
    assert sizes() == [BATCH, BATCH]


def test_zeros_of_a_preallocated_file_after_a_crash() -> None:
    log = Log(segment_bytes=1000, preallocate=True)
    for _ in range(12):
        log.plain()
    log.log.flush()
    log.restart(clean=False)
    assert log.log.log_end_offset == 24
    assert log.plain().first_offset == 24


# Producers


def test_ul_56_a_retry_of_any_of_five_batches_gets_its_offsets() -> None:
    log = Log()
    for number in range(6):
        log.idempotent(7, 2 * number)
    size = log.log.active.size
    for number in range(1, 6):
        assert log.idempotent(7, 2 * number) == (2 * number, 2 * number + 1, NOW, 0, True)
    with pytest.raises(OutOfOrderSequenceError):
        log.idempotent(7, 0)
    assert (log.log.log_end_offset, log.log.active.size) == (12, size)


@pytest.mark.parametrize("clean", [True, False])
def test_after_a_restart_a_snapshot_knows_one_batch_and_the_log_the_others(clean: bool) -> None:
    """They are looked for backwards, through segments; the sixth stays unknown."""
    log = Log(segment_bytes=2 * len(data(7, 0)))
    for number in range(7):
        log.idempotent(7, 2 * number)
        log.idempotent(8, 2 * number)
    log.restart(clean=clean)
    assert len(log.log.producers.known_batches(7)) == (1 if clean else 5)
    assert len(log.bases) == 7
    for number in range(2, 7):
        assert log.idempotent(7, 2 * number)[:2] == (4 * number, 4 * number + 1)
    with pytest.raises(OutOfOrderSequenceError):
        log.idempotent(7, 2)
    assert log.idempotent(7, 14).first_offset == 28


def test_a_duplicate_changes_nothing() -> None:
    """Of a batch that would need a new segment and a new epoch."""
    log = Log(segment_bytes=len(data(7, 0)))
    log.idempotent(7, 0)
    names = log.names()
    assert log.append(data(7, 0), leader_epoch=9).is_duplicate
    assert (log.names(), log.bases, log.log.epochs.entries) == (names, [0], [(0, 0)])


def test_a_refused_batch_leaves_no_trace() -> None:
    """Kafka rolls and notes the epoch before it looks at the producer."""
    log = Log(segment_bytes=len(data(7, 0)))
    log.idempotent(7, 0, epoch=1)
    before = log.names(), log.bases, log.log.epochs.entries, log.log.producers.entries()
    for batch in (data(7, 9, epoch=1), data(7, 2), data(8, 0, transactional=True)):
        with pytest.raises((OutOfOrderSequenceError, InvalidProducerEpochError, InvalidTxnStateError)):
            log.append(batch, leader_epoch=9)
    assert (log.names(), log.bases, log.log.epochs.entries, log.log.producers.entries()) == before


def test_ul_51_verification() -> None:
    log = Log()
    batch = data(7, 0, transactional=True)
    with pytest.raises(InvalidTxnStateError):
        log.append(bytes(batch))
    guard = log.log.verification.maybe_start(
        log.log.producers, 7, 0, 0, supports_epoch_bump=False, now_ms=NOW
    )
    with pytest.raises(InvalidTxnStateError):
        log.append(bytes(batch), guard=guard + 1)
    assert log.append(bytes(batch), guard=guard).first_offset == 0
    assert log.append(data(7, 2, transactional=True)).first_offset == 2


@pytest.mark.parametrize("version", [0, 2])
def test_ul_52_a_marker_clears_the_guard(version: int) -> None:
    """With version 2 it keeps that of the next transaction, which has the marker's epoch."""
    log = Log()
    producers, verification = log.log.producers, log.log.verification
    guard = verification.maybe_start(producers, 7, version // 2, 0, supports_epoch_bump=version == 2, now_ms=NOW)
    log.end(7, commit=False, version=version, producer_epoch=version // 2)
    assert verification.matches(7, guard) == (version == 2)


def test_ul_53_verification_can_be_switched_off() -> None:
    log = Log(transaction_partition_verification_enable=False)
    log.append(data(7, 0, transactional=True))
    assert len(log.log.verification) == 0
    assert log.log.producers.open_count == 1


def test_ul_54_no_guard_is_no_verification() -> None:
    log = Log()
    log.transactional(7, 0)
    log.end(7)
    with pytest.raises(InvalidTxnStateError):
        log.append(data(7, 2, transactional=True))


@pytest.mark.parametrize("supports_epoch_bump", [False, True])
def test_ul_55_a_stale_epoch_is_not_verified(supports_epoch_bump: bool) -> None:
    log = Log()
    log.idempotent(7, 0, epoch=3)
    with pytest.raises(InvalidProducerEpochError):
        log.log.verification.maybe_start(
            log.log.producers, 7, 2, 0, supports_epoch_bump=supports_epoch_bump, now_ms=NOW
        )


def test_ul_48_a_zombie_coordinator() -> None:
    log = Log()
    log.transactional(7, 0)
    log.end(7, coordinator_epoch=5)
    log.end(8, coordinator_epoch=5)  # of an empty transaction
    for producer_id in (7, 8):
        with pytest.raises(TransactionCoordinatorFencedError):
            log.end(producer_id, coordinator_epoch=4)
    log.restart()
    with pytest.raises(TransactionCoordinatorFencedError):
        log.end(8, coordinator_epoch=4)


def test_ul_49_a_fenced_producer_epoch_cannot_end_a_transaction() -> None:
    log = Log()
    log.transactional(7, 0, epoch=3)
    with pytest.raises(InvalidProducerEpochError):
        log.end(7, producer_epoch=2)


def test_ul_50_markers_of_no_transaction_version() -> None:
    """A leader must be told; a replica takes what the leader took."""
    log = Log()
    log.transactional(7, 0)
    with pytest.raises(Exception, match="transaction version"):
        log.append(marker(7), origin=AppendOrigin.COORDINATOR)
    log.append(marker(7), origin=AppendOrigin.REPLICATION)
    assert log.log.producers.open_count == 0


# What readers see


def test_ul_39_first_txn_append_is_unstable_until_commit_and_high_watermark() -> None:
    log = Log()
    log.transactional(7, 0)
    assert log.log.producers.first_unstable_offset == 0
    log.log.advance_high_watermark(2)
    assert log.log.last_stable_offset == 0
    log.end(7)
    assert log.log.last_stable_offset == 0
    log.log.advance_high_watermark(2)
    assert log.log.last_stable_offset == 0
    log.log.advance_high_watermark(3)
    assert log.log.last_stable_offset == 3
    assert log.log.producers.first_unstable_offset is None


def test_ul_40_only_transactions_hold_the_last_stable_offset() -> None:
    log = Log()
    log.plain()
    log.idempotent(8, 0)
    log.transactional(7, 0)
    log.idempotent(8, 2)
    log.log.flush()
    assert (log.log.last_stable_offset, log.log.high_watermark) == (4, 8)


def test_ul_42_the_high_watermark_stays_within_the_log() -> None:
    log = Log()
    log.plain()
    log.log.advance_high_watermark(100)
    assert log.log.high_watermark == 2
    log.log.advance_high_watermark(1)
    assert log.log.high_watermark == 2


def test_ul_45_aborted_transactions_in_the_order_of_their_markers() -> None:
    log = Log()
    log.transactional(7, 0)  # 0, 1
    log.transactional(8, 0)  # 2, 3
    log.transactional(9, 0)  # 4, 5
    log.end(8, commit=False)  # 6
    log.end(9, commit=True)  # 7
    log.end(7, commit=False)  # 8
    expected = [(0, 8, 2, 6, 0), (0, 7, 0, 8, 9)]
    assert log.log.active.txn_index is not None
    assert log.log.active.txn_index.entries == expected
    log.restart(clean=False)  # as a replica sees them
    assert log.log.active.txn_index.entries == expected


def test_ul_46_a_transaction_in_several_segments_has_one_entry() -> None:
    log = Log(segment_bytes=len(data(7, 0)))
    for number in range(3):
        log.transactional(7, 2 * number)
    log.end(7, commit=False)
    log.log.flush()
    assert log.bases == [0, 2, 4, 6]
    assert [name for name in log.names() if name.endswith("txnindex")] == []
    for restarted in (False, True):
        if restarted:
            log.restart()
            assert [name for name in log.names() if name.endswith("txnindex")] == [
                "00000000000000000006.txnindex"
            ]
        for offset in (0, 2, 5):
            found = read(log.log, offset, max_bytes=1)
            assert found.aborted_transactions == [(0, 7, 0, 6, 7)]


# Failures


def faulty(**plan: object) -> tuple[Log, FaultPlan]:
    fault_plan = FaultPlan()
    log = Log(opened(FaultyFiles(MemoryFiles(), fault_plan)))
    log.idempotent(7, 0)
    fault_plan.__init__(**plan)  # from here on
    return log, fault_plan


@pytest.mark.parametrize("short", [False, True])
def test_a_full_disk_is_survived(short: bool) -> None:
    """Nothing of the batch stays, and the same batch is taken when there is room again."""
    log, plan = faulty(fails=1, call="write", error=errno.ENOSPC, short=short)
    with pytest.raises(KafkaStorageError, match="is full"):
        log.idempotent(7, 2)
    assert (log.log.log_end_offset, log.log.fenced) == (2, None)
    assert [entry.last_sequence for entry in log.log.producers.entries()] == [1]
    plan.fails = 0
    assert log.idempotent(7, 2).first_offset == 2
    log.restart(clean=False)
    assert log.log.log_end_offset == 4


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
    """KAFKA-10778: nothing is appended behind it, offsets are used once."""
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


def test_a_roll_that_fails_leaves_the_log_as_it_was() -> None:
    """Whatever call fails because the disk is full, the next append may have it."""
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
        log.restart(clean=False)
        assert log.log.log_end_offset == 4

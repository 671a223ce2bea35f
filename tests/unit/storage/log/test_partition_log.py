"""Appends to the log of a partition: offsets, epochs, duplicates, verification."""

from __future__ import annotations

import pytest

from tests.unit.storage.client import NOW, Log, data, marker
from txnkafka._core.scan import scan
from txnkafka.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from txnkafka.storage.log.log_validator import AppendOrigin

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
    log.log.flush()
    log.log.lower_recovery_point(0)  # the checkpoint on the disk is older
    log.restart(clean=clean)
    assert len(log.log.producers.known_batches(7)) == (1 if clean else 5)
    assert len(log.bases) == 7
    for number in range(2, 7):
        assert log.idempotent(7, 2 * number)[:2] == (4 * number, 4 * number + 1)
    with pytest.raises(OutOfOrderSequenceError):
        log.idempotent(7, 2)
    assert log.idempotent(7, 14).first_offset == 28


def test_a_search_for_one_producer_tells_nothing_of_another() -> None:
    """It may begin below batches of the other: what lies in between would be missing for ever."""
    log = Log(segment_bytes=10 * len(data(7, 0)))
    for number in range(6):
        log.idempotent(7, 2 * number)
        if number < 2:
            log.idempotent(8, 2 * number)
    log.restart()
    assert log.idempotent(8, 0).is_duplicate
    for number in range(1, 6):
        assert log.idempotent(7, 2 * number).is_duplicate, number


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
    guard = verification.maybe_start(
        producers, 7, version // 2, 0, supports_epoch_bump=version == 2, now_ms=NOW
    )
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

"""Appends to a partition's log: offsets, epochs, duplicates, verification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.models.fetch_filter import decode_any
from tests.unit.storage.client import NOW, Log, data, marker
from txnkafka._core.scan import scan
from txnkafka.config import LogConfig
from txnkafka.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    MessageTooLargeError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from txnkafka.storage.log.log_validator import AppendOrigin

BATCH = len(data())  # size of a batch of two records


def test_offsets_and_bytes() -> None:
    log = Log()
    assert log.plain(3) == (0, 2, -1, 0, False, 0, 3)
    assert log.plain(1) == (3, 3, -1, 0, False, 0, 4)
    found = scan(log.log.active.read(0, log.log.active.size))
    assert [(each.base_offset, each.last_offset) for each in found] == [(0, 2), (3, 3)]
    assert (log.log.log_end_offset, log.log.high_watermark) == (4, 0)


@pytest.mark.parametrize("count", [1, 60], ids=["written as one buffer", "as two"])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_the_bytes_of_a_caller_are_not_changed(kind: Callable[[bytes], Any], count: int) -> None:
    """Offsets, epoch and timestamps are set by the log; all other bytes are written unchanged."""
    log, sent = Log(message_timestamp_type="LogAppendTime"), bytes(data(count=count, timestamp=NOW - 9))
    batch = kind(sent)
    for _ in range(2):
        log.append(batch, leader_epoch=4)
    assert bytes(batch) == sent
    stored = log.log.active.read(0, log.log.active.size)
    assert [stored[61 : len(sent)], stored[len(sent) + 61 :]] == [sent[61:]] * 2
    found = scan(stored)
    assert list(found.base_offset) == [0, count]
    assert [each.partition_leader_epoch for each in found] == [4, 4]
    assert [each.max_timestamp for each in found] == [NOW, NOW]
    assert decode_any(bytes(stored[: len(sent)]))[0].timestamp == NOW


def test_a_batch_inside_of_a_request() -> None:
    log, batch = Log(), bytes(data(count=50))
    request = memoryview(b"before" + batch + b"behind")
    log.append(request[6:-6])
    assert log.log.active.read(0, len(batch))[61:] == batch[61:]
    with pytest.raises(ValueError, match="single bytes"):
        log.append(memoryview(batch + bytes(-len(batch) % 4)).cast("i"))


def test_what_is_durable_when() -> None:
    """``durable_at`` is the recovery point at which the batch is durable; a duplicate may be durable already,
    and has the epoch in which it was appended."""
    log = Log()
    first = log.append(data(7, 0), leader_epoch=3)
    second = log.append(data(7, 2), leader_epoch=5)
    assert (first.leader_epoch, first.durable_at, second.leader_epoch, second.durable_at) == (3, 2, 5, 4)
    log.log.flush()
    assert log.log.recovery_point >= second.durable_at
    again = log.append(data(7, 0), leader_epoch=6)
    assert (again.is_duplicate, again.leader_epoch, again.durable_at) == (True, 3, 2)
    assert log.log.recovery_point >= again.durable_at
    third = log.append(data(7, 4), leader_epoch=5)
    assert log.log.recovery_point < third.durable_at


def test_other_settings_count_at_once() -> None:
    log, size = Log(), len(data())
    log.plain()
    log.log.update_config(LogConfig(max_message_bytes=size - 1, segment_bytes=size))
    with pytest.raises(MessageTooLargeError):
        log.plain()
    log.log.update_config(LogConfig(segment_bytes=size, message_timestamp_type="LogAppendTime"))
    assert log.plain(timestamp=NOW - 5).log_append_time == NOW
    assert log.bases == [0, 2]
    assert {segment.config for segment in log.log.segments} == {log.log.config}


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
        assert log.idempotent(7, 2 * number) == (
            2 * number, 2 * number + 1, NOW, 0, True, 0, 2 * number + 2,
        )  # fmt: skip
    with pytest.raises(OutOfOrderSequenceError):
        log.idempotent(7, 0)
    assert (log.log.log_end_offset, log.log.active.size) == (12, size)


@pytest.mark.parametrize("clean", [True, False])
def test_after_a_restart_a_snapshot_knows_one_batch_and_the_log_the_others(clean: bool) -> None:
    """The log is searched backwards for them, across segments; a sixth batch stays unknown."""
    log = Log(segment_bytes=2 * len(data(7, 0)))
    for number in range(7):
        log.idempotent(7, 2 * number)
        log.idempotent(8, 2 * number)
    log.log.flush()
    log.log.local.flushing.lower_recovery_point(0)  # an older checkpoint is on the disk
    log.restart(clean=clean)
    assert len(log.log.producers.known_batches(7)) == (1 if clean else 5)
    assert len(log.bases) == 7
    for number in range(2, 7):
        assert log.idempotent(7, 2 * number)[:2] == (4 * number, 4 * number + 1)
    with pytest.raises(OutOfOrderSequenceError):
        log.idempotent(7, 2)
    assert log.idempotent(7, 14).first_offset == 28


def test_a_search_for_one_producer_does_not_change_another() -> None:
    """The search for producer 8 begins below the newest batches of producer 7: if it recorded batches of 7 as
    well, those in between would be missing for ever."""
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
    """The repeated batch would need a new segment and a new epoch."""
    log = Log(segment_bytes=len(data(7, 0)))
    log.idempotent(7, 0)
    names = log.names()
    assert log.append(data(7, 0), leader_epoch=9).is_duplicate
    assert (log.names(), log.bases, log.log.epochs.entries) == (names, [0], [(0, 0)])


def test_a_refused_batch_leaves_no_trace() -> None:
    """Kafka rolls and assigns the epoch before it checks the producer."""
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
    """Version 2 keeps the guard of the next transaction, which has the epoch of the marker."""
    log = Log()
    producers, verification = log.log.producers, log.log.verification
    guard = verification.maybe_start(
        producers, 7, version // 2, 0, supports_epoch_bump=version == 2, now_ms=NOW
    )
    log.end(7, commit=False, version=version, producer_epoch=version // 2)
    pending = verification.pending(7)
    assert (pending is not None and pending.matches(guard)) == (version == 2)


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
    """A leader requires the transaction version; a replica takes any batch that the leader accepted."""
    log = Log()
    log.transactional(7, 0)
    with pytest.raises(Exception, match="transaction version"):
        log.append(marker(7), origin=AppendOrigin.COORDINATOR)
    log.append(marker(7), origin=AppendOrigin.REPLICATION)
    assert log.log.producers.open_count == 0

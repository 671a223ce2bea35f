"""Several batches in one call: one write per segment, one answer per batch, no batch appended if the write
fails."""

from __future__ import annotations

import errno
from contextlib import suppress
from itertools import count

import pytest

from tests.unit.storage.client import NOW, Log, data, marker, opened
from tests.unit.storage.log.test_failing import known
from txnkafka.errors import (
    CorruptRecordError,
    KafkaError,
    KafkaStorageError,
    MessageTooLargeError,
    OutOfOrderSequenceError,
)
from txnkafka.storage.log.append_all import append_all
from txnkafka.storage.log.append_info import AppendInfo, AppendRequest
from txnkafka.storage.log.log_offset_metadata import LogOffsetMetadata
from txnkafka.storage.log.log_segment import LogSegment
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.log.segment_tail import SegmentTail
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles

SIZE = len(data(7, 0))


def append(log: PartitionLog, *batches: bytes | bytearray, epoch: int = 0) -> list[AppendInfo | KafkaError]:
    requests = [AppendRequest(batch) for batch in batches]
    return append_all(log, requests, now_ms=NOW, leader_epoch=epoch)


def offsets(answers: list[AppendInfo | KafkaError]) -> list[int | type[KafkaError]]:
    return [each.first_offset if isinstance(each, AppendInfo) else type(each) for each in answers]


def test_one_write_for_each_segment() -> None:
    plan = FaultPlan()
    log = opened(FaultyFiles(MemoryFiles(), plan), segment_bytes=3 * SIZE)
    assert offsets(append(log, *(data(7, 2 * number) for number in range(3)))) == [0, 2, 4]
    assert plan.calls["write", ".log"] == 1
    found = append(log, *(data(7, 6 + 2 * number) for number in range(5)))
    assert offsets(found) == [6, 8, 10, 12, 14]
    assert [(segment.base_offset, segment.size) for segment in log.segments] == [
        (0, 3 * SIZE), (6, 3 * SIZE), (12, 2 * SIZE),
    ]  # fmt: skip
    # the segments have no final name yet: one write to each log, one to each index of the segment in the
    # middle
    assert (plan.calls["write", ".log"], plan.calls["write", ".cleaned"]) == (1, 2 + 2)


def test_where_transactions_begin_in_one_write() -> None:
    """The position of the first unstable offset is that of its batch, also after a roll."""
    log = opened(segment_bytes=4 * SIZE, transaction_partition_verification_enable=False)
    append(log, data(7, 0), data(8, 0, transactional=True), data(7, 2), data(9, 0, transactional=True))
    log.flush()
    assert log.offsets.last_stable_metadata == LogOffsetMetadata(2, 0, SIZE)
    ends = [AppendRequest(marker(each), AppendOrigin.COORDINATOR, 0) for each in (8, 9)]
    append_all(log, ends, now_ms=NOW)
    append(log, data(7, 4), data(8, 2, transactional=True))
    log.flush()
    position = log.active.size - SIZE
    assert log.offsets.last_stable_metadata == LogOffsetMetadata(12, log.active.base_offset, position)
    assert log.active.base_offset == 8


def test_the_epoch_of_a_duplicate_of_a_batch_that_waits() -> None:
    log = opened()
    append(log, data(7, 0), epoch=3)
    found = append(log, data(7, 2), data(7, 0), data(7, 2), epoch=5)
    assert [(each.is_duplicate, each.leader_epoch) for each in found if isinstance(each, AppendInfo)] == [
        (False, 5), (True, 3), (True, 5),
    ]  # fmt: skip
    assert [tuple(each) for each in log.epochs.entries] == [(3, 0), (5, 2)]


def test_a_refused_batch_does_not_take_the_others_with_it() -> None:
    log, damaged = opened(max_message_bytes=200), data()
    damaged[-1] ^= 1
    found = append(
        log, data(7, 0), damaged, data(7, 5), data(7, 2), data(7, 0), data(count=50), data(8, 0), data(7, 2)
    )
    assert offsets(found) == [
        0, CorruptRecordError, OutOfOrderSequenceError, 2, 0, MessageTooLargeError, 4, 2,
    ]  # fmt: skip
    assert [each.is_duplicate for each in found if isinstance(each, AppendInfo)] == [0, 0, 1, 0, 1]
    assert log.log_end_offset == 6
    assert append(log) == []


def test_a_retry_of_what_a_snapshot_does_not_remember() -> None:
    """Batches of this call that are not written yet are written before the log is searched."""
    log = Log()
    for number in range(4):
        log.idempotent(7, 2 * number)
    log.restart()
    found = append(log.log, data(8, 0), data(7, 2), data(7, 8))
    assert offsets(found) == [8, 2, 10]
    assert log.log.log_end_offset == 12


def test_transactions_and_markers_in_one_call() -> None:
    log = Log()
    guards = [
        log.log.verification.maybe_start(
            log.log.producers, producer_id, 0, 0, supports_epoch_bump=False, now_ms=NOW
        )
        for producer_id in (7, 8)
    ]
    coordinator = AppendOrigin.COORDINATOR
    found = append_all(
        log.log,
        [
            AppendRequest(data(7, 0, transactional=True), guard=guards[0]),
            AppendRequest(data(8, 0, transactional=True), guard=guards[1]),
            AppendRequest(data(7, 2, transactional=True)),
            AppendRequest(marker(7, commit=False), coordinator, 0),
            AppendRequest(marker(8), coordinator, 0),
            AppendRequest(data(7, 4, transactional=True)),
        ],
        now_ms=NOW,
    )
    assert [each.first_offset for each in found[:5] if isinstance(each, AppendInfo)] == [0, 2, 4, 6, 7]
    assert isinstance(found[5], KafkaError)
    assert [each[1:4] for each in log.log.active.txn_index.entries] == [(7, 0, 6)]  # type: ignore[union-attr]


def batches(log: PartitionLog) -> list[AppendInfo | KafkaError]:
    """Append over two segments: a new producer, its next batch, a duplicate, and a transaction that
    aborts."""
    guard = log.verification.maybe_start(log.producers, 9, 0, 0, supports_epoch_bump=False, now_ms=NOW)
    requests = [
        AppendRequest(data(8, 0)),
        AppendRequest(data(7, 2)),
        AppendRequest(data(7, 2)),
        AppendRequest(data(9, 0, transactional=True), guard=guard),
        AppendRequest(marker(9, commit=False), AppendOrigin.COORDINATOR, 0),
        AppendRequest(data(7, 4)),
    ]
    return append_all(log, requests, now_ms=NOW, leader_epoch=1)


@pytest.mark.parametrize(("segment_bytes", "calls"), [(100 * SIZE, 1), (5 * SIZE, 13)])
def test_a_full_disk_takes_back_what_waited(segment_bytes: int, calls: int) -> None:
    """For every call that can fail: a batch is in the log if and only if its answer says so, and the same
    batches can be sent again."""
    for number in count(1):
        plan = FaultPlan(error=errno.ENOSPC, short=True)
        log = opened(FaultyFiles(MemoryFiles(), plan), segment_bytes=segment_bytes)
        append(log, data(7, 0))
        before, end = known(log), log.log_end_offset
        plan.fails = plan.counted + number
        answers = batches(log)
        plan.fails = 0
        if log.fenced is not None:  # a sync has failed
            continue
        written = [each for each in answers if isinstance(each, AppendInfo) and not each.is_duplicate]
        assert log.log_end_offset == max([end, *(each.durable_at for each in written)])
        if not written:
            assert known(log) == before
        again = batches(log)
        if not plan.failed:
            break
        assert any(isinstance(each, KafkaStorageError) for each in answers)
        assert [each.last_offset for each in again[:3] if isinstance(each, AppendInfo)]
        with suppress(KafkaError):
            log.flush()
        assert log.recovery_point == log.log_end_offset
        entry = log.producers.entry(7)
        assert entry is not None
        assert entry.last_sequence == 5
    assert number == calls + 1


def test_after_an_error_every_batch_gets_it() -> None:
    plan = FaultPlan()
    log = opened(FaultyFiles(MemoryFiles(), plan))
    append(log, data(7, 0))
    plan.fails = plan.counted + 1
    found = append(log, data(7, 2), data(7, 2), data(7, 9), data(7, 4))
    assert offsets(found) == [KafkaStorageError] * 4
    assert log.log_end_offset == 2
    assert offsets(append(log, data(7, 2))) == [KafkaStorageError]


def test_an_interrupted_write_leaves_the_log_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    log = opened()
    append(log, data(7, 0))
    before, tail = known(log), SegmentTail.of(log.active)

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LogSegment, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            append(log, data(7, 2), data(8, 0))
    assert (known(log), SegmentTail.of(log.active)) == (before, tail)
    assert offsets(append(log, data(7, 2), data(8, 0))) == [2, 4]


def test_an_interruption_after_the_write_takes_the_log_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of the written batches has no offsets."""
    log = opened()

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PartitionLog, "take_in", interrupted)
        with pytest.raises(KeyboardInterrupt):
            append(log, data(7, 0))
    assert offsets(append(log, data(7, 2))) == [KafkaStorageError]

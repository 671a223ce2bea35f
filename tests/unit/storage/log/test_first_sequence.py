"""The first batch of a producer in a log: later ones wait for a batch that could not be written, and a log
that never had a record takes sequence 0 first (KAFKA-15591)."""

from __future__ import annotations

import errno

import pytest

from txnkafka._core.encode import encode_batch
from txnkafka.config import LogConfig
from txnkafka.errors import KafkaError, KafkaStorageError, OutOfOrderSequenceError
from txnkafka.model import TopicPartition
from txnkafka.storage.log import verification
from txnkafka.storage.log.append_all import append_all
from txnkafka.storage.log.append_info import AppendRequest
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.log.truncation import delete_records
from txnkafka.storage.recovery.log_loader import Start, open_log
from txnkafka.testing.fault_plan import FaultPlan, FaultyFiles
from txnkafka.testing.memory_files import MemoryFiles

NOW = 1_700_000_000_000
RECORDS = [(b"key", b"value", NOW, [])]


def batch(sequence: int, producer_id: int = 7, epoch: int = 0, *, transactional: bool = False) -> bytearray:
    return encode_batch(
        RECORDS, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence,
        transactional=transactional,
    )  # fmt: skip


def log_with(plan: FaultPlan | None = None, *, records: int = 0) -> PartitionLog:
    files = FaultyFiles(MemoryFiles(), FaultPlan() if plan is None else plan)
    files.make_directory("/t-0")
    log = open_log(files, "/t-0", TopicPartition("t", 0), LogConfig(), Start(), now_ms=NOW).log
    for _ in range(records):
        log.append(encode_batch(RECORDS), now_ms=NOW)
    return log


def refused_once(error: int = errno.ENOSPC, **first: int) -> PartitionLog:
    """Return a log with a record of another producer that has refused the first batch of producer 7."""
    plan = FaultPlan()
    log = log_with(plan, records=1)
    plan.__init__(fails=1, call="write", error=error)  # type: ignore[misc]
    with pytest.raises(KafkaStorageError):
        log.append(batch(first.get("sequence", 0), epoch=first.get("epoch", 0)), now_ms=NOW)
    plan.fails = 0
    return log


def appended(log: PartitionLog, each: bytearray) -> int | str:
    """Return the offset, or the name of the error."""
    try:
        return log.append(each, now_ms=NOW).first_offset
    except KafkaError as error:
        return type(error).__name__


OUT_OF_ORDER = OutOfOrderSequenceError.__name__


def test_later_sequences_wait_for_a_batch_that_could_not_be_written() -> None:
    log = refused_once()
    assert [appended(log, batch(sequence)) for sequence in (1, 2)] == [OUT_OF_ORDER] * 2
    assert [appended(log, batch(sequence)) for sequence in (0, 1, 2)] == [1, 2, 3]
    assert not len(log.verification)


def test_the_smallest_sequence_that_could_not_be_written_is_next() -> None:
    log = refused_once(sequence=5)
    assert appended(log, batch(6)) == OUT_OF_ORDER
    assert appended(log, batch(5)) == 1
    assert appended(log, batch(6)) == 2


def test_other_producers_and_new_epochs_do_not_wait() -> None:
    log = refused_once()
    assert appended(log, batch(9, producer_id=8)) == 1
    assert appended(log, batch(0, epoch=1)) == 2
    assert appended(log, batch(1, epoch=1)) == 3


def test_a_producer_that_is_known_needs_no_entry() -> None:
    plan = FaultPlan()
    log = log_with(plan, records=1)
    log.append(batch(0), now_ms=NOW)
    plan.__init__(fails=1, call="write", error=errno.ENOSPC)  # type: ignore[misc]
    with pytest.raises(KafkaStorageError):
        log.append(batch(1), now_ms=NOW)
    plan.fails = 0
    assert not len(log.verification)
    assert [appended(log, batch(sequence)) for sequence in (2, 1, 2)] == [OUT_OF_ORDER, 2, 3]


def test_the_number_of_entries_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "MOST_HELD", 3)
    plan = FaultPlan()
    log = log_with(plan, records=1)
    plan.__init__(fails=1, call="write", error=errno.ENOSPC, for_ever=True)  # type: ignore[misc]
    for producer_id in range(10):
        with pytest.raises(KafkaStorageError):
            log.append(batch(0, producer_id), now_ms=NOW)
    assert len(log.verification) == 3
    log.verification.expire(NOW + log.config.producer_id_expiration_ms, log.config.producer_id_expiration_ms)
    assert not len(log.verification)


def test_a_transaction_that_is_verified_after_the_refusal() -> None:
    log = refused_once()
    guard = log.verification.maybe_start(log.producers, 7, 0, 1, supports_epoch_bump=False, now_ms=NOW)
    with pytest.raises(OutOfOrderSequenceError):
        log.append(batch(1, transactional=True), now_ms=NOW, guard=guard)
    assert log.append(batch(0, transactional=True), now_ms=NOW, guard=guard).first_offset == 1
    assert not len(log.verification)


def test_several_batches_in_one_call() -> None:
    plan = FaultPlan()
    log = log_with(plan, records=1)
    plan.__init__(fails=1, call="write", error=errno.ENOSPC)  # type: ignore[misc]
    first = append_all(log, [AppendRequest(batch(0))], now_ms=NOW)
    plan.fails = 0
    assert [type(each) for each in first] == [KafkaStorageError]
    late = append_all(log, [AppendRequest(batch(1))], now_ms=NOW)
    assert [type(each) for each in late] == [OutOfOrderSequenceError]
    again = append_all(log, [AppendRequest(batch(0)), AppendRequest(batch(1))], now_ms=NOW)
    assert [getattr(each, "first_offset", each) for each in again] == [1, 2]


@pytest.mark.parametrize("transactional", [False, True])
def test_a_new_log_takes_sequence_0_first(transactional: bool) -> None:
    log = log_with()
    with pytest.raises(OutOfOrderSequenceError, match="before a smaller one"):
        log.append(batch(17), now_ms=NOW)
    assert log.log_end_offset == 0
    guard = 0
    if transactional:
        guard = log.verification.maybe_start(log.producers, 7, 0, 5, supports_epoch_bump=False, now_ms=NOW)
        with pytest.raises(OutOfOrderSequenceError):
            log.append(batch(5, transactional=True), now_ms=NOW, guard=guard)
    assert log.append(batch(0, transactional=transactional), now_ms=NOW, guard=guard).first_offset == 0


def test_a_new_log_in_a_call_with_several_batches() -> None:
    found = append_all(log_with(), [AppendRequest(batch(3)), AppendRequest(batch(0))], now_ms=NOW)
    assert [getattr(each, "first_offset", type(each)) for each in found] == [OutOfOrderSequenceError, 0]
    requests = [AppendRequest(encode_batch(RECORDS)), AppendRequest(batch(3))]
    found = append_all(log_with(), requests, now_ms=NOW)
    assert [getattr(each, "first_offset", each) for each in found] == [0, 1]


@pytest.mark.parametrize("emptied", [False, True])
def test_a_log_that_had_records_takes_any_sequence_first(emptied: bool) -> None:
    log = log_with(records=2)
    if emptied:
        log.flush()
        delete_records(log, 2)
        assert log.log_start_offset == log.log_end_offset == 2
    assert appended(log, batch(17)) == 2

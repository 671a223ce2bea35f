"""A verification ends with a batch of the transaction, not with any batch of the producer (KIP-890)."""

from __future__ import annotations

import pytest

from txnkafka._core.encode import encode_batch
from txnkafka.config import LogConfig
from txnkafka.errors import InvalidTxnStateError
from txnkafka.model import TopicPartition
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.recovery.log_loader import Start, open_log
from txnkafka.testing.memory_files import MemoryFiles

NOW = 1_700_000_000_000
RECORDS = [(b"key", b"value", NOW, [])]


def new_log() -> PartitionLog:
    files = MemoryFiles()
    files.make_directory("/t-0")
    return open_log(files, "/t-0", TopicPartition("t", 0), LogConfig(), Start(), now_ms=NOW).log


def batch(sequence: int, *, transactional: bool) -> bytearray:
    return encode_batch(
        RECORDS, producer_id=7, producer_epoch=0, base_sequence=sequence, transactional=transactional
    )


def test_a_batch_outside_of_the_transaction_leaves_the_verification() -> None:
    log = new_log()
    guard = log.verification.maybe_start(log.producers, 7, 0, 1, supports_epoch_bump=False, now_ms=NOW)
    log.append(batch(0, transactional=False), now_ms=NOW)
    assert log.append(batch(1, transactional=True), now_ms=NOW, guard=guard).first_offset == 1


def test_a_batch_of_the_transaction_ends_the_verification() -> None:
    log = new_log()
    guard = log.verification.maybe_start(log.producers, 7, 0, 0, supports_epoch_bump=False, now_ms=NOW)
    log.append(batch(0, transactional=True), now_ms=NOW, guard=guard)
    assert not len(log.verification)
    log.append(batch(1, transactional=True), now_ms=NOW)


def test_an_unverified_transaction_is_refused() -> None:
    log = new_log()
    with pytest.raises(InvalidTxnStateError, match="not part of a transaction"):
        log.append(batch(0, transactional=True), now_ms=NOW)
    assert log.log_end_offset == 0

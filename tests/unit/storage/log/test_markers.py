"""End markers in a log: how the topic's settings change them, and which files they leave."""

from __future__ import annotations

import struct

import pytest

from tests.unit.storage.cleaner.compacted import CompactedLog
from tests.unit.storage.logs import DIRECTORY, NOW, opened
from txnkafka._core.encode import encode_batch, end_txn_marker
from txnkafka._core.scan import scan
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.log.transactions import transactions_of
from txnkafka.storage.recovery.log_loader import Start
from txnkafka.testing.memory_files import MemoryFiles


def transaction(log: PartitionLog, *, commit: bool) -> None:
    fields = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    log.append(encode_batch([(None, b"", NOW)], transactional=True, **fields), now_ms=NOW)
    marker = end_txn_marker(
        base_offset=0, timestamp=NOW, producer_id=7, producer_epoch=0, coordinator_epoch=0, commit=commit
    )
    log.append(marker, now_ms=NOW + 5, origin=AppendOrigin.COORDINATOR, transaction_version=0)


def test_the_log_gives_markers_their_time_too() -> None:
    """Kafka's LogValidator does not distinguish control batches here."""
    log = opened(message_timestamp_type="LogAppendTime", transaction_partition_verification_enable=False)
    transaction(log, commit=True)
    _, marker = scan(log.active.read(0, log.active.size))
    assert (marker.attributes & 8, marker.max_timestamp) == (8, NOW + 5)


def test_recovery_leaves_no_empty_list_of_aborted_transactions() -> None:
    files = MemoryFiles()
    log = opened(files, transaction_partition_verification_enable=False)
    transaction(log, commit=True)
    opened(files)
    assert not [entry.name for entry in files.list(DIRECTORY) if entry.name.endswith(".txnindex")]


def test_an_abort_after_a_clean_restart() -> None:
    """The aborted transactions of the segment are not loaded yet, and must not be rebuilt from a log that
    contains the marker already."""
    files = MemoryFiles()
    settings = {"transaction_partition_verification_enable": False, "segment_bytes": 10_000}
    log = opened(files, **settings)
    fields = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    log.append(encode_batch([(None, b"", NOW)], transactional=True, **fields), now_ms=NOW)
    log.close()
    log = opened(files, Start(clean_shutdown=True, recovery_point=1), **settings)
    abort = end_txn_marker(
        base_offset=0, timestamp=NOW, producer_id=7, producer_epoch=0, coordinator_epoch=0, commit=False
    )
    log.append(abort, now_ms=NOW, origin=AppendOrigin.COORDINATOR, transaction_version=0)
    assert [entry.last_offset for entry in transactions_of(log, log.active).entries] == [1]


def test_a_batch_of_no_transaction_ends_no_verification() -> None:
    """The pending verification belongs to the next transaction."""
    log = opened()
    fields = {"producer_id": 7, "producer_epoch": 0}
    guard = log.verification.maybe_start(log.producers, 7, 0, 1, supports_epoch_bump=False, now_ms=NOW)
    log.append(encode_batch([(None, b"", NOW)], base_sequence=0, **fields), now_ms=NOW)
    batch = encode_batch([(None, b"", NOW)], base_sequence=1, transactional=True, **fields)
    assert log.append(batch, now_ms=NOW, guard=guard).first_offset == 1
    assert log.verification.pending(7) is None


@pytest.mark.parametrize("clean", [True, False])
def test_an_entry_from_behind_the_log_makes_way_for_the_next_marker(clean: bool) -> None:
    """The index may come from another partition: then an ABORT marker is appended at an offset that the file
    already lists."""
    log = CompactedLog(cleanup_policy="delete")
    log.abort(1, (b"a", b"1"))
    log.reopen()
    file = log.files.open_to_write(log.log.active.path("txnindex"))
    file.write(file.size(), [struct.pack(">hqqqq", 0, 9, 2, 50, 51)])
    log.reopen(clean=clean)
    assert [entry.producer_id for entry in log.aborted()] == [1]
    log.abort(2, (b"b", b"2"))
    assert [(entry.producer_id, entry.last_offset) for entry in log.aborted()] == [(1, 1), (2, 3)]
    assert log.records() == []

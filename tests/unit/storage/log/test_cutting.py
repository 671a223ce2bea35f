"""Logs that are truncated at the end or at the start, and appended to afterwards."""

from __future__ import annotations

from tests.unit.storage.logs import NOW, opened
from txnkafka._core.encode import encode_batch
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.log.truncation import delete_old_segments, delete_records, truncate_to
from txnkafka.storage.recovery.log_loader import Start
from txnkafka.testing.memory_files import MemoryFiles


def append(log: PartitionLog, *timestamps: int, size: int = 40) -> None:
    batch = encode_batch([(None, b"x" * size, timestamp) for timestamp in timestamps or (NOW,)])
    log.append(batch, now_ms=NOW)


def test_the_largest_timestamp_is_found_again() -> None:
    """The largest timestamp may be behind the last entry of the time index; retention and the last entry need
    it."""
    log = opened(segment_bytes=10_000, index_interval_bytes=5000, retention_ms=1000)
    for timestamp in (NOW, NOW - 700, NOW - 9000, NOW - 9000):
        append(log, timestamp)
    truncate_to(log, 3, now_ms=NOW)
    assert (log.active.max_timestamp, log.active.max_timestamp_offset) == (NOW, 0)
    log.roll(NOW)
    log.flush()
    assert delete_old_segments(log, NOW + 1000) == 0
    assert delete_old_segments(log, NOW + 1001) == 1


def test_a_segment_that_is_cut_to_nothing_begins_now() -> None:
    """The age of a segment without record timestamps is that of its file."""
    log = opened(segment_ms=1000)
    append(log, -1)
    truncate_to(log, 0, now_ms=NOW + 5000)
    append(log, -1)
    log.append(encode_batch([(None, b"", -1)]), now_ms=NOW + 5500)
    assert len(log.segments) == 1


def test_what_expired_meanwhile_is_not_loaded_again() -> None:
    """A truncation loads the producers from a snapshot, without those that have expired."""
    log = opened(producer_id_expiration_ms=1000)
    fields = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    log.append(encode_batch([(None, b"", NOW)], **fields), now_ms=NOW)
    log.roll(NOW)
    append(log)
    truncate_to(log, 1, now_ms=NOW + 1000)
    assert log.producers.entries() == []


def test_a_cut_leaves_a_snapshot() -> None:
    """The state at the new log end need not be replayed again; Kafka does the same."""
    log = opened()
    for _ in range(3):
        append(log)
    truncate_to(log, 1, now_ms=NOW)
    assert log.snapshots.offsets == [1]


def test_recovery_removes_the_snapshots_that_it_rebuilds() -> None:
    """Snapshots below the first checked segment stay; recovery rebuilds the later ones from the log."""
    files = MemoryFiles()
    log = opened(files, segment_bytes=10_000)
    for _ in range(2):
        append(log)
    log.close()
    log = opened(files, Start(clean_shutdown=True, recovery_point=2), segment_bytes=10_000)
    append(log)
    log.flush()
    assert log.snapshots.offsets == [2]
    assert opened(files, Start(recovery_point=1), segment_bytes=10_000).snapshots.offsets == [3]


def test_a_cut_inside_a_batch_leaves_no_gap() -> None:
    """Kafka continues at the requested offset. A gap before the next segment looks to recovery like a segment
    whose end was lost: it would drop the acknowledged batches after the gap."""
    files = MemoryFiles()
    log = opened(files, segment_bytes=400)
    for _ in range(2):
        append(log, NOW, NOW, NOW)
    truncate_to(log, 4, now_ms=NOW)
    assert log.log_end_offset == 3
    log.roll(NOW)
    append(log)
    log.flush()
    again = opened(files, Start(recovery_point=0), segment_bytes=400)
    assert (again.log_end_offset, [segment.base_offset for segment in again.segments]) == (4, [0, 3])


def test_a_log_that_was_cut_inside_a_batch_opens_again() -> None:
    for clean in (True, False):
        files = MemoryFiles()
        log = opened(files)
        for _ in range(2):
            append(log, NOW, NOW, NOW)
        truncate_to(log, 4, now_ms=NOW)
        log.close()
        assert opened(files, Start(clean, log.recovery_point)).log_end_offset == 3


def test_a_cut_never_ends_below_the_log_start() -> None:
    """A truncation inside the batch that contains the log start ends the log at its start."""
    log = opened()
    append(log, NOW, NOW, NOW)
    log.flush()
    delete_records(log, 1)
    truncate_to(log, 2, now_ms=NOW)
    assert (log.log_start_offset, log.log_end_offset, log.active.base_offset) == (1, 1, 1)


def test_a_segment_that_was_looked_up_and_became_active_keeps_its_index() -> None:
    """An index is dropped only from closed segments, when other segments were looked up since."""
    log = opened()
    for _ in range(60):
        append(log, size=1)
    log.offsets.advance_high_watermark(log.log_end_offset)
    number = len(log.segments) - 2
    log.segments.find(number, log.segments[number].base_offset)
    truncate_to(log, log.segments[number].base_offset + 2, now_ms=NOW)
    entries = len(log.active.offset_index)
    assert entries
    for other in range(len(log.segments) - 1):
        log.segments.find(other, log.segments[other].base_offset)
    assert len(log.active.offset_index) == entries

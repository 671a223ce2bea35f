"""When a log rolls a segment, and what it writes for the closed one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.storage.client import NOW, PATH, Log, data, opened
from txnkafka.errors import (
    MessageTooLargeError,
    RecordListTooLargeError,
)
from txnkafka.storage.formats import parse_producer_snapshot
from txnkafka.storage.recovery.log_loader import Start
from txnkafka.testing.crash_states import crash_states
from txnkafka.testing.memory_files import MemoryFiles

BATCH = len(data())  # size of a batch of two records


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
    log.log.active.roll_jitter_ms = 400
    log.plain(timestamp=NOW - 3999 + 601)
    assert log.bases == [0, 4, 6]


def test_segments_are_closed_earlier_by_a_random_part_of_the_jitter() -> None:
    """Each log has its own jitter (LogConfig.randomSegmentJitter): logs created together need not roll
    together."""
    log = Log(segment_ms=1000, segment_jitter_ms=5000, segment_bytes=BATCH)
    for _ in range(40):
        log.plain()
    jitters = {segment.roll_jitter_ms for segment in log.log.segments}
    assert len(jitters) > 20
    assert all(0 <= jitter < 1000 for jitter in jitters), "below segment.ms, too"
    assert max(jitters) > 500
    assert {segment.roll_jitter_ms for segment in Log(segment_ms=1000).log.segments} == {0}


def test_without_timestamps_age_is_that_of_the_segment() -> None:
    log = Log(segment_ms=1000)
    log.plain(timestamp=-1)
    log.now_ms += 1000
    log.plain(timestamp=-1)
    assert log.bases == [0]
    log.now_ms += 1
    log.plain(timestamp=-1)
    assert log.bases == [0, 4]


def test_without_timestamps_age_begins_again_with_a_restart() -> None:
    log = Log(segment_ms=1000)
    log.plain(timestamp=-1)
    log.now_ms += 900
    log.restart()
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
    assert log.bases == bases or (index_bytes == 24 and log.bases[0] == 0 < log.bases[1])


def test_an_offset_too_far_from_the_base() -> None:
    log = Log()
    log.plain()
    log.log.offsets.on_append(2**31 - 2)
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


def test_a_file_with_the_name_of_a_new_segment_is_replaced() -> None:
    log = Log()
    log.plain()
    for kind in ("log", "index", "txnindex"):
        file = log.log.files.create(f"{PATH}/00000000000000000002.{kind}")
        file.write(0, [b"left behind"])
    log.log.roll(NOW)
    log.plain()
    log.log.flush()
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


def sizes(log: Log) -> list[int]:
    """The sizes of the ``.log`` files."""
    return [each.size for each in log.log.files.list(PATH) if each.name.endswith(".log")]


def test_preallocated_files_end_where_the_log_ends_after_roll_and_close() -> None:
    log = Log(segment_bytes=1000, preallocate=True)
    log.plain()
    assert sizes(log) == [1000] or sizes(log) == [BATCH]
    log.log.roll(NOW)
    log.plain()
    log.log.flush()
    assert sizes(log) == [BATCH, 1000]
    log.log.close()
    assert sizes(log) == [BATCH, BATCH]


def preallocated_until_now() -> Log:
    """A log with a preallocated segment, for which ``preallocate`` was switched off."""
    log = Log(segment_bytes=1000, preallocate=True)
    log.plain()
    log.log.roll(NOW)
    log.plain()
    log.log.flush()
    log.log.update_config(replace(log.log.config, preallocate=False))
    assert sizes(log) == [BATCH, 1000]
    return log


@pytest.mark.parametrize("clean", [True, False])
def test_a_segment_ends_at_the_log_when_preallocation_was_switched_off_meanwhile(clean: bool) -> None:
    """Whatever its end: a roll, a clean stop, a crash."""
    log = preallocated_until_now()
    log.log.roll(NOW)
    log.plain()
    log.log.flush()
    assert sizes(log) == [BATCH, BATCH, BATCH]
    log.restart(clean=clean)
    assert sizes(log) == [segment.size for segment in log.log.segments]
    log = preallocated_until_now()
    log.restart(clean=clean)
    assert sizes(log) == [segment.size for segment in log.log.segments] == [BATCH, BATCH]
    assert log.plain().first_offset == 4


def test_a_crash_between_roll_and_flush_leaves_no_zeros_of_a_preallocated_segment() -> None:
    """Preallocation was switched off before."""
    log = preallocated_until_now()
    files = log.log.files
    assert isinstance(files, MemoryFiles)
    begin, start = len(files.journal), Start(False, log.log.recovery_point, 0)
    log.log.roll(NOW)
    log.plain()
    log.log.flush()
    states = list(crash_states(files, begin=begin))
    assert len(states) > 10
    for state in states:
        again = Log(opened(MemoryFiles(base=state.disk), start))
        assert sizes(again) == [segment.size for segment in again.log.segments], state.name
        assert again.plain().first_offset in (4, 6), state.name


def test_zeros_of_a_preallocated_file_after_a_crash() -> None:
    log = Log(segment_bytes=1000, preallocate=True)
    for _ in range(12):
        log.plain()
    log.log.flush()
    log.restart(clean=False)
    assert log.log.log_end_offset == 24
    assert log.plain().first_offset == 24

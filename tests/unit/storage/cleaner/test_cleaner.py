"""What compaction leaves of a log, case by case: the cases of Kafka's LogCleanerTest, and more."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.unit.storage.cleaner.compacted import ABORT, COMMIT, EMPTY, NOW, CompactedLog, Row
from txnkafka._core.encode import empty_batch, encode_batch

A, B, C = (b"a", b"1"), (b"b", b"1"), (b"c", b"1")
LATER = 1000  # delete.retention.ms


def whats(log: CompactedLog) -> list[str]:
    return [row.what for row in log.rows()]


def followed(log: CompactedLog, *producer_ids: int) -> None:
    """Append later batches of these producers above the cleaned part, so that no batch is kept for their
    state."""
    log.roll()
    for producer_id in producer_ids:
        log.commit(producer_id, (b"elsewhere", b"%d" % producer_id))


@pytest.mark.parametrize("rolled", [False, True])
def test_aborted_data_whose_marker_is_behind_an_open_transaction(rolled: bool) -> None:
    """The value of the key is not the aborted one, although the marker is behind the last stable offset."""
    log = CompactedLog()
    log.data(-1, A)
    log.data(2, (b"a", None))
    log.roll()
    log.data(1, B)
    log.end(2, commit=False)
    if rolled:
        log.roll()
    log.clean()
    assert Row(0, -1, "a") in log.rows()


def test_aborted_data_goes_in_the_first_pass_and_its_marker_stays() -> None:
    log = CompactedLog()
    log.data(-1, A)
    log.abort(1, (b"a", b"2"), B)
    log.data(-1, C)
    followed(log, 1)
    stats = log.clean()
    assert log.rows()[:3] == [Row(0, -1, "a"), Row(3, 1, ABORT), Row(4, -1, "c")]
    assert [entry.last_offset for entry in log.aborted()] == [3]
    assert (stats.records_kept, stats.records_dropped) == (2, 2)
    assert stats.bytes_after < stats.bytes_before


def test_a_commit_marker_goes_when_its_data_is_gone_and_the_horizon_is_passed() -> None:
    log = CompactedLog()
    log.commit(1, A)
    log.data(-1, (b"a", b"2"), B)
    followed(log, 1)
    log.clean()
    assert whats(log)[:2] == [COMMIT, "a b"]
    log.clean()  # meets no data: sets the horizon
    log.clean(after_ms=LATER - 1)
    assert whats(log)[:2] == [COMMIT, "a b"]
    log.clean(after_ms=1)
    assert whats(log)[:1] == ["a b"]


def test_a_commit_marker_stays_as_long_as_one_record_of_its_transaction() -> None:
    log = CompactedLog()
    log.commit(1, A, B)
    log.data(-1, (b"a", b"2"))
    followed(log, 1)
    for _ in range(4):
        log.clean(after_ms=LATER)
    assert whats(log)[:3] == ["b", COMMIT, "a"]


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_stays_beside_an_empty_batch_of_its_transaction(commit: bool) -> None:
    log = CompactedLog()
    log.data(1, A)
    marker = log.end(1, commit=commit)
    log.data(-1, (b"a", b"2"))
    log.roll()
    for _ in range(4):
        log.clean(after_ms=LATER)
    assert log.rows() == [Row(0, 1, EMPTY), Row(marker, 1, COMMIT if commit else ABORT), Row(2, -1, "a")]
    assert len(log.aborted()) == (not commit)


def test_keys_of_markers_are_no_keys_of_records() -> None:
    """KAFKA-14055: records of users have the keys of COMMIT and ABORT markers, before and after the
    markers."""
    commit_key, abort_key = bytes([0, 0, 0, 1]), bytes(4)
    log = CompactedLog()
    log.data(-1, (commit_key, b"before"), (abort_key, b"before"))
    log.commit(1, A)
    log.abort(2, B)
    log.data(-1, (commit_key, b"behind"))
    followed(log, 1, 2)
    before = log.view()
    log.clean()
    assert whats(log)[:5] == [abort_key.decode(), "a", COMMIT, ABORT, commit_key.decode()]
    assert log.view() == before


@pytest.mark.parametrize("key", [bytes([0, 0, 0, 1]), bytes(4)])
def test_a_marker_replaces_no_record_of_its_key(key: bytes) -> None:
    log = CompactedLog()
    log.data(-1, (key, b"before"))
    log.commit(1, A)
    log.abort(2, B)
    followed(log, 1, 2)
    log.clean()
    assert log.view().get(key) == b"before"


def test_a_pass_that_keeps_nothing_makes_progress() -> None:
    """KAFKA-6854: all data of the pass was aborted."""
    log = CompactedLog()
    log.abort(1, A)
    log.roll()
    assert log.clean().end_offset == 2


def test_an_empty_control_batch_is_removed() -> None:
    """Kafka's cleaner leaves such batches in the log."""
    log = CompactedLog()
    log.data(-1, A)
    marker = {"producer_id": 5, "producer_epoch": 0, "transactional": True, "control": True}
    log.put(empty_batch(base_offset=1, last_offset=1, max_timestamp=NOW, **marker))  # type: ignore[arg-type]
    log.data(-1, B)
    log.roll()
    log.clean()
    assert whats(log) == ["a", "b"]


@pytest.mark.parametrize("segment_bytes", [1 << 20, 300])
def test_a_transaction_over_many_segments(segment_bytes: int) -> None:
    """KAFKA-8351: the segments are cleaned in one group, or in one group each."""
    log = CompactedLog(segment_bytes=segment_bytes)
    for number in range(4):
        log.data(1, (b"kept-%d" % number, b"x" * 150))
        log.data(2, (b"kept-%d" % number, b"y" * 150))
        log.roll()
    marker = log.end(1, commit=True)
    log.end(2, commit=False)
    followed(log, 1, 2)
    before = log.view()
    for after_ms in (0, 0, LATER, LATER):
        log.clean(after_ms=after_ms)
        assert log.view() == before
    assert all(f"kept-{number}" in whats(log) for number in range(4))
    assert marker in [row.offset for row in log.rows() if row.what == COMMIT]
    assert not any(value.startswith(b"y") for value in log.view().values())


def test_an_abort_marker_needs_two_passes_and_the_retention() -> None:
    log = CompactedLog()
    log.abort(1, A)
    log.data(-1, B)
    followed(log, 1)
    log.clean(after_ms=LATER)
    assert whats(log)[:2] == [ABORT, "b"]
    assert len(log.aborted()) == 1
    log.clean(after_ms=LATER)
    assert whats(log)[:2] == [ABORT, "b"]
    assert log.aborted() == []
    log.clean(after_ms=LATER - 1)
    assert whats(log)[:2] == [ABORT, "b"]
    log.clean(after_ms=1)
    assert whats(log)[:1] == ["b"]


@pytest.mark.parametrize("snapshots", [True, False])
def test_the_last_sequence_of_a_producer_stays_known(snapshots: bool) -> None:
    """KAFKA-5490: an empty batch keeps it, so that a retry after a restart is a duplicate."""
    log = CompactedLog()
    log.data(100, A, B)
    log.data(-1, (b"a", b"2"), (b"b", b"2"))
    log.roll()
    before = log.producers()
    log.clean()
    assert log.rows() == [Row(0, 100, EMPTY), Row(2, -1, "a b")]
    log.reopen(clean=snapshots, snapshots=snapshots)
    assert log.producers() == before
    records = [(b"a", b"1", NOW), (b"b", b"1", NOW)]
    retry = encode_batch(records, producer_id=100, producer_epoch=0, base_sequence=0)
    answer = log.log.append(retry, now_ms=NOW)
    assert (answer.is_duplicate, answer.first_offset, answer.last_offset) == (True, 0, 1)


def test_an_aborted_batch_that_is_its_producers_last_stays_empty() -> None:
    log = CompactedLog()
    log.abort(1, A)
    log.data(-1, B)
    log.roll()
    for _ in range(4):
        log.clean(after_ms=LATER)
    assert log.rows() == [Row(0, 1, EMPTY), Row(1, 1, ABORT), Row(2, -1, "b")]
    assert len(log.aborted()) == 1


@pytest.mark.parametrize("reason", ["wrote elsewhere", "expired"])
def test_an_empty_batch_goes_when_its_producer_needs_it_no_more(reason: str) -> None:
    log = CompactedLog()
    log.data(100, A)
    log.data(-1, (b"a", b"2"))
    log.roll()
    log.clean()
    assert whats(log) == [EMPTY, "a"]
    if reason == "expired":
        log.log.producers.expire(NOW + 10**9, 1)
    else:
        log.data(100, B)
    log.clean()
    assert whats(log)[:1] == ["a"]


def test_a_marker_that_alone_knows_an_epoch_stays_a_marker() -> None:
    """Kafka turns it into an empty control batch, which a replay ignores: the old epoch could write again."""
    log = CompactedLog()
    log.commit(1, A)
    log.data(1, (b"a", b"2"), epoch=0)
    log.end(1, commit=True, epoch=1, version=2)  # a coordinator fences, or ends a transaction with version 2
    log.data(-1, (b"a", b"3"), B)
    log.roll()
    before = log.producers()
    for _ in range(4):
        log.clean(after_ms=LATER)
    assert log.rows() == [Row(3, 1, COMMIT), Row(4, -1, "a b")]
    log.reopen(clean=False, snapshots=False)
    assert log.producers() == before
    assert before[0][:3] == (1, 1, -1)


def test_batches_that_are_empty_go_and_offsets_stay() -> None:
    log = CompactedLog()
    for number in range(5):
        log.data(-1, (b"a", b"%d" % number), (b"only-%d" % number if number == 2 else b"b", b"x"))
    log.roll()
    log.clean()
    assert log.records() == [(5, b"only-2", b"x"), (8, b"a", b"4"), (9, b"b", b"x")]
    assert [row.offset for row in log.rows()] == [4, 8]


def test_the_last_batch_of_a_pass_stays_empty() -> None:
    """KAFKA-17076: cleaning must not lower the log end."""
    log = CompactedLog()
    log.data(-1, A)
    log.abort(1, B)
    log.data(1, C)
    log.end(1, commit=False)
    log.roll()
    log.log.producers.expire(NOW + 10**9, 1)
    for _ in range(4):
        log.clean(after_ms=LATER)
    assert log.rows() == [Row(0, -1, "a"), Row(4, 1, EMPTY)]
    log.reopen(clean=False, snapshots=False)
    assert log.log.log_end_offset == 5


def test_every_segment_ends_with_a_batch() -> None:
    """A segment that becomes empty keeps a batch, too: otherwise recovery could not tell it from a lost
    one."""
    log = CompactedLog(segment_bytes=300)
    for number in range(3):
        log.abort(1, (b"%d" % number, b"x" * 130))
        log.roll()
    log.data(-1, A)
    log.roll()
    log.data(1, A)
    log.clean()
    segments = log.log.segments
    assert all(segment.size for segment in segments)
    for segment, following in pairwise(segments):
        assert [index.last_offset[-1] for index in segment.windows()] == [following.base_offset - 1]


def test_what_is_not_decided_is_not_touched() -> None:
    """The segment that contains the last stable offset and all later ones stay as they are."""
    log = CompactedLog()
    log.data(-1, A)
    log.roll()
    log.data(-1, A)
    log.data(1, B)
    log.roll()
    log.data(-1, A)
    log.roll()
    before = log.rows()
    stats = log.clean()
    assert (stats.first_uncleanable_offset, stats.end_offset) == (1, 1)
    assert log.rows() == before
    log.end(1, commit=False)
    assert log.clean().first_uncleanable_offset == 4
    assert [row.what for row in log.rows()] == [EMPTY, "a", ABORT]


def test_what_is_young_is_not_touched() -> None:
    log = CompactedLog(min_compaction_lag_ms=500)
    log.data(-1, A)
    log.roll()
    log.now += 300
    log.data(-1, A)
    log.roll()
    assert log.clean(after_ms=199).end_offset == 0
    assert log.clean(after_ms=1).end_offset == 1
    assert log.clean(dirty_from=1, after_ms=300).end_offset == 2
    assert whats(log) == ["a"]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_tombstone_gets_a_horizon_and_goes_behind_it(codec: str) -> None:
    log = CompactedLog()
    log.data(-1, A, B, codec=codec)
    log.data(-1, (b"a", None), C, codec=codec)
    log.roll()
    log.clean()
    assert log.records() == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    log.clean(after_ms=LATER - 1)
    assert log.records()[1] == (2, b"a", None)
    log.clean(after_ms=1)
    assert log.records() == [(1, b"b", b"1"), (3, b"c", b"1")]


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_batch_that_is_filtered_again_keeps_its_delete_horizon(codec: str) -> None:
    """A later pass removes another record of the batch; that must not put off the end of the tombstone."""
    log = CompactedLog()
    log.data(-1, (b"a", None), B, codec=codec)
    log.roll()
    log.clean()
    log.data(-1, (b"b", b"2"))
    log.roll()
    log.clean(after_ms=LATER - 1)
    assert log.records() == [(0, b"a", None), (2, b"b", b"2")]
    log.clean(after_ms=1)
    assert log.records() == [(2, b"b", b"2")]


@pytest.mark.parametrize("retention_ms", [2**63 - 1, 2**63 - NOW])
def test_tombstones_and_markers_that_stay_for_ever(retention_ms: int) -> None:
    """Their horizon does not fit into 64 bits."""
    log = CompactedLog(delete_retention_ms=retention_ms)
    log.commit(1, A)
    log.data(-1, (b"a", None), B)
    followed(log, 1)
    for _ in range(3):
        log.clean(after_ms=1_000_000)
    assert whats(log)[:2] == [COMMIT, "a b"]


def test_timestamps_do_not_change_with_a_delete_horizon() -> None:
    log = CompactedLog()
    log.now += 5
    log.data(-1, (b"a", None), B)
    log.roll()
    log.clean(after_ms=77)
    header = next(iter(next(iter(log.log.segments[0].windows()))))
    assert header.base_timestamp == log.now + LATER
    assert header.max_timestamp == NOW + 5


def test_segments_become_one_with_one_transaction_index() -> None:
    log = CompactedLog()
    for number in range(4):
        log.abort(number, (b"x", b"y"))
        log.data(-1, (b"%d" % number, b"z"))
        log.roll()
    followed(log, *range(4))
    bases = [segment.base_offset for segment in log.log.segments]
    stats = log.clean()
    assert (stats.segments_before, stats.segments_after) == (4, 1)
    assert [segment.base_offset for segment in log.log.segments] == [0, bases[-1]]
    assert [entry.last_offset for entry in log.aborted()] == [1, 4, 7, 10]
    assert log.names(".snapshot") == [f"{bases[-1]:020d}.snapshot"]
    log.log.local.remove_deleted(1 << 60)
    assert len(log.names("")) == 4 + 1 + 2  # the new segment, the active one's log, a snapshot, the epochs


def test_memory_bounds_a_pass() -> None:
    """Two keys fit into the memory; the pass ends at the next key, and the next pass begins there."""
    log = CompactedLog()
    for key in (b"a", b"a", b"b", b"c", b"c"):
        log.data(-1, (key, b"x"))
    log.roll()
    before = log.view()
    stats = log.clean(memory=3 * 40)
    assert stats.end_offset == 3
    assert log.rows() == [Row(1, -1, "a"), Row(2, -1, "b"), Row(3, -1, "c"), Row(4, -1, "c")]
    assert log.clean(dirty_from=3, memory=3 * 40).end_offset == 5
    assert whats(log) == ["a", "b", "c"]
    assert log.view() == before

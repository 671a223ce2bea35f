"""Compaction of logs that are damaged or have an old format."""

from __future__ import annotations

import pytest

from tests.models.builder import Batch, PlainRecord, legacy_entry, legacy_wrapper
from tests.unit.storage.cleaner.compacted import NOW, CompactedLog
from txnkafka.errors import CorruptRecordError

A, B, C = (b"a", b"1"), (b"b", b"1"), (b"c", b"1")
LATER = 1000  # delete.retention.ms


def followed(log: CompactedLog) -> None:
    """Append later batches of the producer above the cleaned part."""
    log.roll()
    log.commit(1, (b"elsewhere", b"1"))


def test_records_without_keys_are_removed() -> None:
    log = CompactedLog(cleanup_policy="delete")
    log.data(-1, (None, b"x"), A)
    log.roll()
    log.clean()
    assert log.records() == [(1, b"a", b"1")]


@pytest.mark.parametrize("key", [b"k", None])
def test_offsets_that_go_back_inside_of_a_wrapper_are_refused(key: bytes | None) -> None:
    """A rewritten batch would show them in its header: recovery would remove it or, when the record before is
    gone, a consumer would get what it did not get before."""
    log = CompactedLog()
    inner = [legacy_entry(0, b"a", b"1"), legacy_entry(3, b"b", b"1")]
    entries = legacy_entry(3, key, b"v") + legacy_wrapper(inner, 4, codec=1)
    log.log.active.file("log").write(0, [entries])
    log.reopen(clean=False, snapshots=False)
    assert log.log.log_end_offset == 5
    log.data(-1, C)
    log.roll()
    before = log.view()
    with pytest.raises(CorruptRecordError, match="offset 1 lies before the end of the entry before it"):
        log.clean()
    assert log.view() == before


def test_a_wrong_index_loses_no_record() -> None:
    """With a missing .txnindex Kafka takes aborted data for committed, and deletes the records that it
    replaces."""
    log = CompactedLog()
    log.data(-1, A)
    log.abort(1, (b"a", b"bad"))
    log.data(-1, B)
    followed(log)
    before = log.view()
    log.log.segments[0].txn_index = None
    log.files.open_to_write(log.log.segments[0].path("txnindex")).truncate(0)
    log.clean()
    assert log.view() == before == {b"a": b"1", b"b": b"1", b"elsewhere": b"1"}
    log.clean(after_ms=LATER)
    log.clean(after_ms=LATER)
    assert log.view() == before


def test_a_marker_with_a_horizon_needs_no_entry_after_a_restart() -> None:
    """A snapshot may still contain its transaction as open."""
    log = CompactedLog(segment_bytes=300)
    log.data(1, A)
    log.data(-1, B, (b"filler", b"x" * 90))
    log.roll()
    log.end(1, commit=False)
    log.data(-1, C)
    followed(log)
    log.clean()
    log.clean()
    assert log.aborted() == []
    log.reopen()
    assert log.aborted() == []
    assert log.log.repairs == []


def test_legacy_batches_become_magic_2() -> None:
    log = CompactedLog()
    log.data(-1, A)
    log.put(
        legacy_entry(1, b"a", b"2", timestamp=NOW),
        legacy_entry(2, b"b", b"2", magic=0),
        legacy_entry(3, b"b", None, timestamp=NOW + 5),
        legacy_entry(4, b"d", b"old", magic=0),
    )
    log.roll()
    log.clean()
    assert log.records() == [(1, b"a", b"2"), (3, b"b", None), (4, b"d", b"old")]
    headers = [header for index in log.log.segments[0].windows() for header in index]
    assert [(each.magic, each.base_offset, each.max_timestamp) for each in headers] == [
        (2, 1, NOW), (2, 3, NOW + 5), (2, 4, -1),
    ]  # fmt: skip
    log.clean(after_ms=LATER)
    assert [key for _, key, _ in log.records()] == [b"a", b"d"]


def test_a_damaged_batch_is_not_rewritten() -> None:
    """A rewritten batch gets a valid CRC, so a batch with a wrong CRC must not be rewritten."""
    log = CompactedLog()
    log.data(-1, A, B)
    log.data(-1, A)
    log.roll()
    log.log.flush()
    log.log.segments[0].file("log").write(70, [b"!"])
    before = log.content()
    with pytest.raises(CorruptRecordError, match=r"CRC.*t-0, .*000\.log, position 0"):
        log.clean()
    assert log.content() == before
    assert log.names(".cleaned", ".swap") == []
    assert log.log.fenced is None


def test_nothing_dirty_is_nothing_to_do() -> None:
    log = CompactedLog()
    log.data(-1, A)
    log.roll()
    end = log.clean().end_offset
    names = log.names("")
    stats = log.clean(dirty_from=end)
    assert stats.segments_before == 0
    assert log.names("") == names


def test_the_time_of_a_file_is_kept() -> None:
    """Records without timestamps age by the modification time of the file."""
    log = CompactedLog()
    log.data(-1, A)
    log.roll()
    log.data(-1, A)
    log.roll()
    log.log.segments[1].modified_ms = 12_345
    log.clean()
    (entry,) = [each for each in log.files.list("/data/t-0") if each.name == f"{0:020d}.log"]
    assert entry.modified_ms == log.log.segments[0].modified_ms == 12_345


def test_a_record_offset_outside_its_batch_hides_no_other_record() -> None:
    """A foreign record with offset 58 in a batch of offsets 1 and 2 would make the offset map skip offset
    3."""
    log = CompactedLog()
    log.data(-1, A)
    wrong = Batch(
        records=[PlainRecord(b"a", b"2", NOW), PlainRecord(b"b", b"far", NOW)._replace(offset_delta=57)],
        base_offset=1,
        last_offset_delta=1,
    )
    log.put(wrong.encode())
    log.data(-1, B)
    log.roll()
    before = log.records()
    with pytest.raises(CorruptRecordError, match="offset delta 57") as caught:
        log.clean()
    assert (caught.value.offset, log.records()) == (1, before)


@pytest.mark.parametrize(
    ("entries", "timestamp"),
    [
        ([legacy_entry(3, b"a", b"2", magic=0), legacy_entry(258, b"b", b"far", magic=0)], -1),
        ([legacy_entry(0, b"a", b"2", timestamp=-(1 << 62)), legacy_entry(1, b"b", b"2")], NOW),
    ],
    ids=["offset", "timestamp"],
)
def test_a_legacy_entry_that_magic_2_cannot_hold_is_damage(entries: list[bytes], timestamp: int) -> None:
    log = CompactedLog()
    log.data(-1, A)
    log.put(legacy_wrapper(entries, 4, codec=1, timestamp=timestamp, magic=0 if timestamp < 0 else 1))
    log.data(-1, B)
    log.roll()
    before = log.content()
    with pytest.raises(CorruptRecordError, match="cannot be converted to magic 2"):
        log.clean()
    assert log.content() == before

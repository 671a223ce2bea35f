"""Committed and pending offsets follow from the events of the log, by replay."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import EXAMPLES
from tests.models.committed_offsets import Commit, End, Event, Tombstone, committed, pending
from tests.models.coordinator_log import offset_commit_key
from tests.unit.coordinator.histories import EVENTS, KEYS, commit
from txnkafka.coordinator import KEPT_RECORD, CommittedOffset, LogEvent, Offsets
from txnkafka.wire.records import GroupOffset, decode_group_log


def log_event(event: Event, offset: int) -> LogEvent:
    if isinstance(event, End):
        return LogEvent(offset, event.producer_id, event.commit, None, None)
    if isinstance(event, Tombstone):
        return LogEvent(offset, -1, None, offset_commit_key(*KEYS[event.key]), None)
    return LogEvent(offset, event.producer_id, None, *commit(event.key, event.offset))


def replayed(history: list[Event]) -> Offsets:
    offsets = Offsets()
    for i, event in enumerate(history):
        offsets.replay(log_event(event, i))
    return offsets


def offset_of(record: CommittedOffset) -> int:
    found = GroupOffset.of(decode_group_log(record.key, record.value))
    assert found is not None
    return found.offset


def test_an_offset_that_was_committed_after_the_record_of_a_transaction_stays() -> None:
    offsets = replayed([Commit(0, 5, 7), Commit(0, 6), End(7, True)])
    assert [offset_of(found) for found in offsets.committed.values()] == [6]


def test_a_tombstone_removes_the_committed_and_the_pending_offset() -> None:
    offsets = replayed([Commit(0, 4), Commit(0, 5, 7), Tombstone(0), End(7, True)])
    assert not offsets.committed


@settings(max_examples=5 * EXAMPLES)
@given(st.lists(EVENTS, min_size=1, max_size=25))
def test_offsets_are_those_of_the_model(history: list[Event]) -> None:
    offsets = replayed(history)
    for i in range(len(KEYS)):
        name = commit(i, 0)[0][2:]
        found = offsets.committed.get(name)
        assert (None if found is None else offset_of(found)) == committed(history, i)
        open_parts = {producer_id: part for producer_id, part in offsets.pending.items() if name in part}
        undecided = {producer_id: offset_of(part[name]) for producer_id, part in open_parts.items()}
        assert undecided == pending(history, i)
        assert offsets.producers.get(name, set()) == open_parts.keys()


@given(st.lists(EVENTS, max_size=25))
def test_kept_bytes_are_those_of_the_records_that_count(history: list[Event]) -> None:
    offsets = replayed(history)
    parts = (offsets.committed, *offsets.pending.values())
    records = [record for part in parts for record in part.values()]
    assert offsets.kept_bytes() == sum(KEPT_RECORD + len(key) + len(value) for _, key, value in records)


def test_other_records_change_nothing() -> None:
    offsets = replayed([Commit(0, 5), Commit(1, 6, 7)])
    before = (dict(offsets.committed), {key: dict(value) for key, value in offsets.pending.items()})
    for key in (None, b"", b"\0", b"\0\2\0\1g", b"\xff\xff"):
        offsets.replay(LogEvent(9, -1, None, key, b"\0\0"))
    assert (offsets.committed, offsets.pending) == before


def test_an_end_marker_of_an_unknown_producer_changes_nothing() -> None:
    offsets = replayed([Commit(0, 5), End(3, True)])
    assert len(offsets.committed) == 1
    assert not offsets.pending

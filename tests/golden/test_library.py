"""Every undamaged directory, read by the library: records, offsets and producers equal the broker's
answers."""

from __future__ import annotations

import itertools
import pickle

import pytest

from tests.golden.answers import producer_row, read, record_row
from tests.golden.cases import ISOLATION_LEVELS
from tests.golden.directories import INTACT, Directory, each_answered, each_intact, each_level
from txnkafka import OffsetOutOfRangeError
from txnkafka.logdir import read_unit
from txnkafka.record.batch import records_of
from txnkafka.record.chunk import ChunkDecoder

PRODUCER_ID_EXPIRATION_MS = 86_400_000


def test_there_is_something_to_compare() -> None:
    counts = [
        len(each.case.expected_records(each.partition, level))
        for each in INTACT
        for level in ISOLATION_LEVELS
    ]
    assert (len(INTACT), sum(counts)) == (190, 29549)


@each_level
@each_intact
def test_records(directory: Directory, isolation_level: str) -> None:
    found, error = read(directory.view(), isolation_level)
    assert error is None
    assert found == directory.case.expected_records(directory.partition, isolation_level)


@each_intact
def test_offsets(directory: Directory) -> None:
    view = directory.view()
    facts = directory.case.facts(directory.partition)
    assert (view.log_start_offset, view.last_stable_offset, view.log_end_offset) == (
        facts["log_start_offset"],
        facts["lso"],
        facts["high_watermark"],
    )


@each_answered
def test_the_high_watermark_is_what_the_broker_noted_when_it_stopped(directory: Directory) -> None:
    assert directory.view().high_watermark == directory.case.facts(directory.partition)["high_watermark"]


@each_answered
def test_producers(directory: Directory) -> None:
    """The broker expires producers only every ten minutes, so it may still show some that we have dropped."""
    shown = directory.case.facts(directory.partition).get("describe_producers")
    if shown is None:
        assert "legacy" in directory.case.name
        return
    now_ms = directory.case.recorded_at_ms
    expected = [
        row
        for row in shown
        if row["current_txn_start_offset"] is not None
        or now_ms - row["last_timestamp"] < PRODUCER_ID_EXPIRATION_MS
    ]
    view = directory.view()
    found = sorted(map(producer_row, view.producers(now_ms=now_ms)), key=lambda row: row["producer_id"])
    assert found == expected
    remembered = list(map(producer_row, view.producers(now_ms=0)))
    assert all(row in remembered for row in shown)


@each_level
@each_answered
def test_reads_may_begin_and_end_anywhere(directory: Directory, isolation_level: str) -> None:
    """Compares every recorded fetch: in the middle of transactions, of batches, on markers, in gaps."""
    fetches = directory.case.facts(directory.partition).get("fetch", [])
    starts = sorted({each["offset"] for each in fetches if each["error"] == "NONE"})
    whole = directory.case.expected_records(directory.partition, isolation_level)
    view = directory.view()
    for start, end in itertools.zip_longest(starts, starts[3:], fillvalue=view.log_end_offset):
        found, _ = read(view, isolation_level, start_offset=start, end_offset=end)
        assert found == [record for record in whole if start <= record["offset"] < end], (start, end)


@each_answered
def test_offsets_out_of_range_are_refused(directory: Directory) -> None:
    fetches = directory.case.facts(directory.partition).get("fetch", [])
    view = directory.view()
    for start in {each["offset"] for each in fetches if each["error"] == "OFFSET_OUT_OF_RANGE"}:
        with pytest.raises(OffsetOutOfRangeError):
            view.plan(start_offset=start)


@each_level
@each_answered
def test_small_units_sent_elsewhere_give_the_same(directory: Directory, isolation_level: str) -> None:
    view = directory.view(io="pread")
    units = view.plan(isolation_level=isolation_level, unit_bytes=1)
    by_path = {segment.path: segment for segment in view.segments}
    decoder = ChunkDecoder(headers=True, chunk_bytes=1)
    found = [
        record_row(record)
        for unit in pickle.loads(pickle.dumps(units))
        for columns in read_unit(by_path[unit.path], unit, decoder)
        for record in records_of(columns)
    ]
    assert found == directory.case.expected_records(directory.partition, isolation_level)


@each_answered
def test_topic_ids(directory: Directory) -> None:
    topic = directory.case.meta["topics"].get(directory.partition.topic)
    if topic is None:
        assert directory.partition.topic.startswith("__")
        return
    known = (directory.case.answered / str(directory.partition) / "partition.metadata").exists()
    assert directory.view().topic_id == (topic["topic_id"] if known else None)


@each_level
@each_answered
def test_counts_of_any_range(directory: Directory, isolation_level: str) -> None:
    fetches = directory.case.facts(directory.partition).get("fetch", [])
    starts = sorted({each["offset"] for each in fetches if each["error"] == "NONE"})
    whole = directory.case.expected_records(directory.partition, isolation_level)
    view = directory.view()
    for start, end in itertools.zip_longest(starts, starts[3:], fillvalue=view.log_end_offset):
        found = view.count(isolation_level=isolation_level, start_offset=start, end_offset=end)
        assert found == sum(start <= record["offset"] < end for record in whole), (start, end)

"""Broken directories: the answers of the table in damage.py."""

from __future__ import annotations

import pytest

from tests.golden.answers import producer_row, read
from tests.golden.cases import ISOLATION_LEVELS, case, cases
from tests.golden.damage import DAMAGED, INTACT, TABLE, Corrupt, Row
from txnkafka import CorruptRecordError, LogDir
from txnkafka.logdir import PartitionView

each_row = pytest.mark.parametrize("row", TABLE, ids=str)
# Rows with the broker's own answer, and rows with a damaged batch.
AS_THE_BROKER = [row for row in TABLE if not row.better]
DAMAGED_BATCH = [row for row in TABLE if row.answer.corrupt is not None]
each_level = pytest.mark.parametrize("isolation_level", ISOLATION_LEVELS)


def view(row: Row) -> PartitionView:
    return LogDir(row.path).partition(*DAMAGED)


def check_error(error: CorruptRecordError | None, corrupt: Corrupt | None) -> None:
    if corrupt is None:
        assert error is None
        return
    assert error is not None
    assert error.file is not None
    assert error.file.endswith(f"/{corrupt.file}")
    assert (error.topic, error.partition) == DAMAGED
    assert error.position == corrupt.position


def test_the_table_has_every_broken_directory() -> None:
    broken = {
        (case.name, directory) for case in cases() if case.damage for directory in ("logs", "recovered")
    }
    assert broken == {(row.name, row.directory) for row in TABLE if "/" not in row.directory}
    assert (len(TABLE), len(AS_THE_BROKER), len(DAMAGED_BATCH)) == (98, 72, 8)


@pytest.mark.parametrize("row", AS_THE_BROKER, ids=str)
def test_a_row_says_why_where_its_answer_is_not_the_brokers(row: Row) -> None:
    """A row without a reason has the answer of the broker's own consumer."""
    facts = row.case.facts(DAMAGED)
    answer = row.answer
    assert [row.case.expected_records(DAMAGED, level) for level in ISOLATION_LEVELS] == [
        answer.records(level) for level in ISOLATION_LEVELS
    ]
    assert (answer.log_start_offset, answer.last_stable_offset, answer.log_end_offset) == (
        facts["log_start_offset"],
        facts["lso"],
        facts["high_watermark"],
    )
    assert [answer.meets_damage(level) for level in ISOLATION_LEVELS] == [
        "error" in facts["consumer"][level] for level in ISOLATION_LEVELS
    ]


@each_row
def test_a_row_counts_what_it_refers_to(row: Row) -> None:
    assert tuple(len(row.answer.records(level)) for level in ISOLATION_LEVELS) == row.answer.counts


@each_row
def test_offsets(row: Row) -> None:
    found = view(row)
    answer = row.answer
    assert (found.log_start_offset, found.last_stable_offset, found.log_end_offset) == (
        answer.log_start_offset,
        answer.last_stable_offset,
        answer.log_end_offset,
    )


@each_level
@each_row
def test_records_in_front_of_the_damage(row: Row, isolation_level: str) -> None:
    found, error = read(view(row), isolation_level)
    assert found == row.answer.records(isolation_level)
    check_error(error, row.answer.corrupt if row.answer.meets_damage(isolation_level) else None)


@each_level
@each_row
def test_records_around_the_damage(row: Row, isolation_level: str) -> None:
    found, error = read(view(row), isolation_level, on_corrupt="skip")
    assert error is None
    assert found == row.answer.records_around(isolation_level)


@pytest.mark.parametrize("row", DAMAGED_BATCH, ids=str)
def test_records_from_behind_the_damage(row: Row) -> None:
    assert row.answer.corrupt is not None
    behind = row.answer.corrupt.offsets.stop
    found, error = read(view(row), "read_uncommitted", start_offset=behind)
    assert error is None
    whole = row.answer.records_around("read_uncommitted")
    assert found == [record for record in whole if record["offset"] >= behind]


# Started without snapshots after a clean stop, the broker dropped its producers, and wrote that state.
FORGOTTEN = "clean_no_snapshot/recovered"
REMEMBERED = [row for row in TABLE if row.answer is INTACT and str(row) != FORGOTTEN]


@pytest.mark.parametrize("row", REMEMBERED, ids=str)
def test_producers_as_if_nothing_were_broken(row: Row) -> None:
    intact = case("crash")
    found = view(row).producers(now_ms=intact.recorded_at_ms)
    expected = intact.facts(DAMAGED)["describe_producers"]
    assert sorted(map(producer_row, found), key=lambda each: each["producer_id"]) == expected

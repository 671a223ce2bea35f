"""Tables of small logs, planned and read in this process, without Spark."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from tests.unit.logdir.logs import batch, marker, write_log
from txnkafka import CorruptRecordError, LogDirError, OffsetOutOfRangeError, UnknownTopicOrPartitionError
from txnkafka.logdir import LogDir
from txnkafka.spark.options import read_options
from txnkafka.spark.table_jobs import count_partitions
from txnkafka.spark.tables import TABLES, check_keywords, find_table
from txnkafka.spark.tables.partition_tasks import plan_partitions, source_tasks

Row = dict[str, Any]


def rows(name: str, path: Path, **reading: Any) -> list[Row]:
    options = read_options(**reading)
    table = TABLES[name]
    schema = table.arrow_schema(table.schema())
    tasks = pickle.loads(pickle.dumps(table.plan([str(path)], options, 1)))
    return [row for found in table.rows(tasks, schema, options) for row in found.to_pylist()]


def counted(path: Path, **reading: Any) -> int:
    options = read_options(**reading)
    return sum(count_partitions(plan_partitions([str(path)], options, 1), options))


def transactional(base_offset: int, producer_id: int = 1, **fields: object) -> bytes:
    return batch(base_offset, transactional=True, producer_id=producer_id, producer_epoch=0, **fields)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Write t-0: without a transaction, committed, aborted, repeated, then open."""
    log = [
        batch(0),
        transactional(2), marker(4, "commit", 1),
        transactional(5), marker(7, "abort", 1),
        batch(8), batch(8),
        transactional(10, producer_id=2), batch(12),
    ]  # fmt: skip
    write_log(tmp_path, "t-0", {0: log})
    return tmp_path


def column(found: list[Row], *names: str) -> list[tuple[object, ...]]:
    return [tuple(row[name] for name in names) for row in found]


def test_batches_of_both_isolation_levels(logs: Path) -> None:
    names = ("baseOffset", "outcome", "visible")
    committed = [
        (0, None, True),
        (2, "committed", True), (4, "committed", False),
        (5, "aborted", False), (7, "aborted", False),
        (8, None, True), (8, None, False),
    ]  # fmt: skip
    assert column(rows("batches", logs), *names) == committed
    everything = [
        (offset, outcome, visible or offset == 5) for offset, outcome, visible in committed
    ] + [(10, "open", True), (12, None, True)]  # fmt: skip
    assert column(rows("batches", logs, isolation_level="read_uncommitted"), *names) == everything


def test_batches_of_a_range_are_those_with_offsets_in_it(logs: Path) -> None:
    bounds: Row = {"starting_offsets": {"t": {0: 3}}, "ending_offsets": {"t": {0: 6}}}
    assert column(rows("batches", logs, **bounds), "baseOffset", "visible") == [
        (2, True), (4, False), (5, False)
    ]  # fmt: skip
    late: dict[str, Any] = {"starting_timestamp": 1 << 50}
    assert rows("batches", logs, **late, starting_offsets_by_timestamp_strategy="latest") == []
    with pytest.raises(OffsetOutOfRangeError, match="no record at or after timestamp"):
        rows("batches", logs, **late)
    assert counted(logs, **bounds) == 1
    with pytest.raises(OffsetOutOfRangeError, match="offset 99 of t-0 is not in the log"):
        rows("batches", logs, starting_offsets={"t": {0: 99}})
    with pytest.raises(ValueError, match="starting offsets name unread partitions: t-1"):
        rows("batches", logs, starting_offsets={"t": {0: 0, 1: 0}})


def test_transactions_have_a_marker_or_not(logs: Path) -> None:
    found = rows("transactions", logs)
    names = ("outcome", "firstOffset", "lastOffset", "markerOffset", "records", "coordinatorEpoch")
    assert column(found, *names) == [
        ("committed", 2, 3, 4, 2, 0),
        ("aborted", 5, 6, 7, 2, 0),
        ("open", 10, 11, None, 2, None),
    ]
    assert {row["transactionalId"] for row in found} == {None}
    assert [row["markerTimestamp"] is None for row in found] == [False, False, True]


def test_a_marker_lost_with_a_segment_leaves_its_transaction_undecided(tmp_path: Path) -> None:
    later = transactional(10, count=1)
    write_log(tmp_path, "t-0", {0: [transactional(0)], 10: [later, marker(11, "commit", 1)]})
    assert column(rows("transactions", tmp_path), "outcome", "lastOffset", "markerOffset") == [
        ("undecided", 1, None), ("committed", 10, 11)
    ]  # fmt: skip
    found = rows("batches", tmp_path)
    assert column(found, "outcome", "visible") == [
        ("undecided", False), ("committed", True), ("committed", False)
    ]  # fmt: skip
    assert counted(tmp_path) == 1
    assert counted(tmp_path, isolation_level="read_uncommitted") == 3


def test_a_wrong_crc_of_data_is_not_looked_at_and_that_of_a_control_batch_is(tmp_path: Path) -> None:
    broken = bytearray(batch(0))
    broken[-1] ^= 1
    write_log(tmp_path, "t-0", {0: [bytes(broken), batch(2)], 4: [batch(4)]})
    assert counted(tmp_path) == 6
    control = bytearray(marker(6, "commit", 1))
    control[-1] ^= 1
    write_log(tmp_path, "t-0", {6: [bytes(control)], 7: [batch(7)]})
    with pytest.raises(CorruptRecordError, match=r"t-0, .*0006.log, position 0, offset 6"):
        counted(tmp_path)
    assert counted(tmp_path, fail_on_data_loss=False) == 8
    assert column(rows("batches", tmp_path), "baseOffset", "outcome", "visible")[3] == (6, None, False)


def test_damage_that_headers_show_fails_the_task_or_is_left_out(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", {0: [batch(0), b"\xff" * 100, batch(2)], 4: [batch(4)]})
    with pytest.raises(CorruptRecordError, match="The task fails, and with it the job"):
        rows("batches", tmp_path)
    assert column(rows("batches", tmp_path, fail_on_data_loss=False), "baseOffset") == [(0,), (4,)]
    assert counted(tmp_path, fail_on_data_loss=False) == 4
    assert ("t", 0, "damaged-segment", len(batch(0))) in column(
        rows("findings", tmp_path), "topic", "partition", "code", "position"
    )


def test_segments_without_batches_and_with_files_beside_them(tmp_path: Path) -> None:
    path = write_log(tmp_path, "t-0", {0: [batch(0)], 2: []})
    (path / f"{0:020}.index").write_bytes(bytes(8))
    names = ("baseOffset", "lastOffset", "active", "size", "indexSize", "timeindexSize", "records")
    assert column(rows("segments", tmp_path), *names) == [
        (0, 1, False, len(batch(0)), 8, None, 2),
        (2, None, True, 0, None, None, 0),
    ]


def test_offsets_need_their_topic(logs: Path) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="no topic __consumer_offsets in"):
        rows("offsets", logs)


def test_damaged_offsets_fail_the_task_or_are_left_out(tmp_path: Path) -> None:
    write_log(tmp_path, "__consumer_offsets-0", {0: [batch(0), b"\xff" * 100], 4: [batch(4)]})
    with pytest.raises(LogDirError, match="failOnDataLoss=false shows what could be read"):
        rows("offsets", tmp_path)
    assert rows("offsets", tmp_path, fail_on_data_loss=False) == []


def test_small_partitions_share_a_task_and_none_is_divided(tmp_path: Path) -> None:
    for number in range(5):
        write_log(tmp_path, f"t-{number}", {0: [batch(0)]})
    log_dir = LogDir(str(tmp_path))
    size = len(batch(0))

    def tasks(**reading: Any) -> list[list[int]]:
        found = source_tasks(log_dir, log_dir.topic_partitions, read_options(**reading), 1)
        return [[source.topic_partition.partition for source in sources] for sources in found]

    assert tasks() == [[0, 1, 2, 3, 4]]
    assert tasks(max_bytes_per_partition=2 * size) == [[0, 1], [2, 3], [4]]
    assert tasks(max_bytes_per_partition=1) == [[0], [1], [2], [3], [4]]
    assert source_tasks(log_dir, [], read_options(), 1) == []


def test_kafkas_own_topics_are_in_the_tables_about_files(tmp_path: Path) -> None:
    for name in ("t-0", "__consumer_offsets-0"):
        write_log(tmp_path, name, {0: [batch(0)]})
    topics = {name: [row["topic"] for row in rows(name, tmp_path)] for name in ("segments", "batches")}
    assert topics == {"segments": ["__consumer_offsets", "t"], "batches": ["t"]}
    assert column(rows("segments", tmp_path, topic="t"), "topic") == [("t",)]


def test_what_means_nothing_for_a_table_is_refused() -> None:
    check_keywords("batches", {"isolation_level": "isolation_level"})
    with pytest.raises(ValueError, match="isolation_level does not apply to table=transactions"):
        check_keywords("transactions", {"isolation_level": "isolation_level"})
    with pytest.raises(ValueError, match=r"unknown table batch: did you mean batches\?"):
        find_table("batch")

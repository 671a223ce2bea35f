"""Which partitions are read, which offsets, and in how many tasks: read in this process, without Spark."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from tests.unit.logdir.logs import batch, marker, write_log
from txnkafka import (
    CorruptRecordError,
    LogDir,
    LogDirError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from txnkafka.spark.options import leaving_damage_out, read_options
from txnkafka.spark.plan import ReadTask, plan_tasks
from txnkafka.spark.read import MAX_BATCH_ROWS, TaskReader
from txnkafka.spark.schema import batch_schema
from txnkafka.spark.selection import chosen_partitions


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Write orders-0 with offsets 2 to 9, starting at its log start; orders-1, payments-0 and Kafka's own
    topic with 0 to 1."""
    write_log(tmp_path, "orders-0", {2: [batch(2), batch(4)], 6: [batch(6), batch(8)]})
    for name in ("orders-1", "payments-0", "__consumer_offsets-0"):
        write_log(tmp_path, name, {0: [batch(0)]})
    return str(tmp_path)


def chosen(root: str, **keywords: Any) -> list[str]:
    return [str(each) for each in chosen_partitions(LogDir(root), read_options(**keywords))]


def plan(root: str, **keywords: Any) -> list[ReadTask]:
    return plan_tasks([root], read_options(**keywords))


def offsets(tasks: list[ReadTask]) -> list[int]:
    reader = TaskReader(batch_schema(["offset"]))
    return [offset for found in reader(tasks) for offset in found.column("offset").to_pylist()]


def test_topics_may_be_named_matched_or_all_but_kafkas_own(root: str) -> None:
    assert chosen(root) == ["orders-0", "orders-1", "payments-0"]
    assert chosen(root, topic="orders") == ["orders-0", "orders-1"]
    assert chosen(root, topic=["payments", "__consumer_offsets"]) == ["__consumer_offsets-0", "payments-0"]
    assert chosen(root, topic_pattern="^order|^ents") == ["orders-0", "orders-1"]
    assert chosen(root, topic_pattern="ents$|offsets") == ["payments-0"]
    assert chosen(root, assign={"orders": [1]}) == ["orders-1"]
    assert chosen(f"{root}/__consumer_offsets-0") == ["__consumer_offsets-0"]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"topic": ["orders", "nothing"]}, r"no topic nothing in .*; topics here: __consumer"),
        ({"topic": "order"}, r"no topic order in .*; did you mean orders\?"),
        ({"topic": "ord*"}, r"no topic ord\* .* payments; topic_pattern .subscribePattern. takes"),
        ({"topic_pattern": "^order$"}, "no topic that matches '.order.' in "),
        ({"topic_pattern": "__consumer"}, "no topic that matches '__consumer' in "),
        ({"assign": {"orders": [0, 7]}}, r"no orders-7 in .* partitions here: 0, 1"),
    ],
)
def test_unknown_topics_and_partitions_are_refused(root: str, keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match=message):
        chosen(root, **keywords)


def test_offsets_and_times_bound_what_is_read(root: str) -> None:
    only = {"assign": {"orders": [0]}}
    assert offsets(plan(root, **only)) == list(range(2, 10))
    bounds: dict[str, Any] = {
        "starting_offsets": '{"orders": {"0": 3}}',
        "ending_offsets": {"orders": {"0": 7}},
    }
    assert offsets(plan(root, **only, **bounds)) == [3, 4, 5, 6]
    special: dict[str, Any] = {
        "starting_offsets": {"orders": {0: -2}},
        "ending_offsets": {"orders": {0: -1}},
    }
    assert offsets(plan(root, **only, **special)) == list(range(2, 10))
    # the timestamp is 1000 plus the offset
    assert offsets(plan(root, **only, starting_timestamp=1005, ending_timestamp=1008)) == [5, 6, 7]
    with pytest.raises(OffsetOutOfRangeError, match="orders-0 has no record at or after timestamp 1010"):
        plan(root, **only, starting_timestamp=1010)
    latest: dict[str, Any] = {"starting_offsets_by_timestamp_strategy": "latest"}
    assert offsets(plan(root, **only, starting_timestamp=1010, **latest)) == []
    each: dict[str, Any] = {
        "starting_offsets_by_timestamp": {"orders": {0: 1005}},
        "ending_offsets_by_timestamp": '{"orders": {"0": 1007}}',
    }
    assert offsets(plan(root, **only, **each)) == [5, 6]
    # as in Spark: a timestamp for all partitions precedes those for single ones, and these precede offsets
    assert offsets(plan(root, **only, **each, starting_timestamp=1004)) == [4, 5, 6]
    assert offsets(plan(root, **only, **each, **bounds)) == [5, 6]
    assert offsets(plan(root, **only, ending_timestamp=1010)) == list(range(2, 10))


@pytest.mark.parametrize(("bound", "found"), [("starting", [6, 7, 8, 9]), ("ending", [2, 3])])
def test_damage_in_the_search_for_a_time(root: str, bound: str, found: list[int]) -> None:
    path = Path(root, "orders-0", f"{2:020}.log")
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1  # in the batch with the offsets 4 and 5
    path.write_bytes(damaged)
    wanted: dict[str, Any] = {"assign": {"orders": [0]}, f"{bound}_timestamp": 1005}
    with pytest.raises(CorruptRecordError):
        offsets(plan(root, **wanted))
    left = read_options(**wanted, fail_on_data_loss=False)
    reader = TaskReader(batch_schema(["offset"]), left)
    read = [offset for batch in reader(plan_tasks([root], left)) for offset in batch["offset"].to_pylist()]
    assert read == found
    # the reader takes the error of damage: on_corrupt of batches() and map_arrow()
    handled = leaving_damage_out(read_options(**wanted))
    met: list[CorruptRecordError] = []
    reader = TaskReader(batch_schema(["offset"]), handled, met.append)
    read = [offset for batch in reader(plan_tasks([root], handled)) for offset in batch["offset"].to_pylist()]
    assert (read, [error.offset for error in met]) == (found, [4])


def test_the_high_watermark_may_end_the_read(root: str) -> None:
    Path(root, "replication-offset-checkpoint").write_text("0\n1\norders 0 5\n")
    assert offsets(plan(root, assign={"orders": [0]}, ending_offsets="high-watermark")) == [2, 3, 4]
    with pytest.raises(LogDirError, match="no high watermark of payments-0"):
        plan(root, topic="payments", ending_offsets="high-watermark")


def test_offsets_must_name_exactly_what_is_read(root: str) -> None:
    with pytest.raises(ValueError, match="starting offsets lack orders-1; -2 is the earliest"):
        plan(root, topic="orders", starting_offsets={"orders": {0: 2}})
    with pytest.raises(ValueError, match="ending offsets name unread partitions: payments-0"):
        plan(root, assign={"orders": [1]}, ending_offsets={"orders": {1: 1}, "payments": {0: 1}})


@pytest.mark.parametrize(
    ("bound", "offset", "found"), [("starting", 1, (2, 10)), ("starting", 11, ()), ("ending", 11, (2, 10))]
)
def test_an_offset_that_is_not_in_the_log_is_lost_data(
    root: str, bound: str, offset: int, found: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    wanted: dict[str, Any] = {"assign": {"orders": [0]}, f"{bound}_offsets": {"orders": {0: offset}}}
    with pytest.raises(OffsetOutOfRangeError, match=f"offset {offset} of orders-0 .* which has 2 to 10; "):
        plan(root, **wanted)
    assert offsets(plan(root, **wanted, fail_on_data_loss=False)) == list(range(*found) if found else [])
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_small_partitions_share_a_task_and_a_hint_divides_them(root: str) -> None:
    everything = plan(root)
    assert [[unit.topic for unit in task.units] for task in everything] == [
        ["orders", "orders", "orders", "payments"]
    ]
    assert len(plan_tasks([root], read_options(), parallelism=4)) == 1  # tasks below 4 MiB are not worth it
    divided = plan(root, min_partitions=6)
    assert len(divided) == 6  # there are six batches of the same size
    assert offsets(divided) == offsets(everything)
    assert plan(root, max_bytes_per_partition=1) == divided


def test_files_are_mapped_only_when_asked(root: str) -> None:
    assert [[task.mapped for task in plan(root, io=io)] for io in ("auto", "pread", "mmap")] == [
        [False],
        [False],
        [True],
    ]
    assert offsets(plan(root, io="mmap")) == offsets(plan(root))


def test_what_planning_finds_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    open_batch = batch(2, transactional=True, producer_id=1, producer_epoch=0)
    write_log(tmp_path, "t-0", {0: [batch(0), open_batch], 10: [marker(10, "commit", 1), batch(11)]})
    assert offsets(plan(str(tmp_path))) == [0, 1, 11, 12]
    texts = [record.getMessage() for record in caplog.records]
    assert any("are missing: the segment before this one is gone" in text for text in texts)
    place = f"{tmp_path}/t-0/{0:020}.log: "
    assert any(text.startswith(place) and "held back from read_committed" in text for text in texts)


def test_large_chunks_become_several_batches(tmp_path: Path) -> None:
    write_log(tmp_path, "t-0", {0: [batch(1000 * i, 1000) for i in range(25)]})
    tasks = plan(str(tmp_path), io="mmap")
    sizes = [found.num_rows for found in TaskReader(batch_schema(["offset", "value"]))(tasks)]
    assert sum(sizes) == 25_000
    assert max(sizes) <= MAX_BATCH_ROWS
    assert offsets(tasks) == list(range(25_000))


@pytest.mark.parametrize(
    ("columns", "message"), [(["ofset"], "did you mean offset?"), ([], "list of names"), ("key", "list of")]
)
def test_columns_that_do_not_exist_are_refused(columns: list[str], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        batch_schema(columns)
    assert message in str(caught.value)

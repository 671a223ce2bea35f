"""``batches`` and ``map_arrow``: in the executors, read_committed, the same rows when a task is run again."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.golden.cases import case
from tests.golden.damage import BATCH_OF_88, DAMAGED
from tests.spark.answers import expected_lines
from tests.unit.logdir.logs import batch, marker, write_log
from txnkafka import OffsetOutOfRangeError
from txnkafka.spark import batches, jobs, map_arrow

CRASH = case("crash")
PATH = f"{CRASH.answered}/{DAMAGED}"


def offsets_of(records: list[Any]) -> list[int]:
    return [record["offset"] for record in records]


COMMITTED = offsets_of(expected_lines(CRASH, DAMAGED, "read_committed"))
UNCOMMITTED = offsets_of(expected_lines(CRASH, DAMAGED, "read_uncommitted"))


def offsets(found: pa.RecordBatch) -> list[int]:
    result: list[int] = found.column("offset").to_pylist()
    return result


def test_batches_are_arrow_with_the_wanted_columns(spark: SparkSession) -> None:
    found = batches(spark, PATH, columns=["timestamp", "offset"]).collect()
    assert pa.Table.from_batches(found).schema == pa.schema(
        [("timestamp", pa.timestamp("us", tz="UTC")), ("offset", pa.int64())]
    )
    assert [offset for each in found for offset in offsets(each)] == COMMITTED


def test_a_directory_without_a_wanted_record_gives_an_empty_rdd(spark: SparkSession) -> None:
    bounds: dict[str, Any] = {"starting_offsets": {"crash": {0: 5}}, "ending_offsets": {"crash": {0: 5}}}
    assert batches(spark, Path(PATH), **bounds).collect() == []
    frame = map_arrow(spark, lambda found: found, "offset long", PATH, columns=["offset"], **bounds)
    assert frame.collect() == []


def test_a_large_directory_is_planned_in_the_executors(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(case("interleaved").logs)
    wanted: dict[str, Any] = {"columns": ["partition", "offset"], "min_partitions": 5}
    here = batches(spark, path, **wanted).flatMap(lambda found: found.to_pylist()).collect()
    monkeypatch.setattr(jobs, "SPREAD_BYTES", 0)
    there = batches(spark, path, **wanted)
    assert there.flatMap(lambda found: found.to_pylist()).collect() == here
    assert there.getNumPartitions() > 2
    with pytest.raises(OffsetOutOfRangeError, match="offset 99999 of orders-0 is not in the log"):
        batches(spark, path, starting_offsets={"orders": {0: 99999, 1: -2}})


def test_several_tasks_keep_the_order_of_offsets(spark: SparkSession) -> None:
    rdd = batches(spark, PATH, min_partitions=6, isolation_level="read_uncommitted")
    assert rdd.getNumPartitions() >= 4
    assert rdd.flatMap(offsets).collect() == UNCOMMITTED


def test_map_arrow_decodes_and_maps_in_one_step(spark: SparkSession) -> None:
    def lengths(found: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for each in found:
            size = pc.binary_length(each.column("value")).cast(pa.int64())
            yield pa.RecordBatch.from_arrays([each.column("offset"), size], ["offset", "size"])

    frame = map_arrow(spark, lengths, "offset long, size long", PATH, min_partitions=4)
    assert frame.rdd.getNumPartitions() >= 3
    found = {row.offset: row.size for row in frame.collect()}
    values = {each["offset"]: each["value"] for each in CRASH.expected_records(DAMAGED, "read_committed")}
    assert found == {
        offset: None if value is None else len(b64decode(value)) for offset, value in values.items()
    }


def test_a_function_may_stop_before_the_end(spark: SparkSession) -> None:
    def first(found: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield next(found).slice(0, 1)

    frame = map_arrow(spark, first, "offset long", PATH, columns=["offset"])
    assert [row.offset for row in frame.collect()] == COMMITTED[:1]


def test_a_task_that_runs_again_gives_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    flag = str(tmp_path / "failed")

    def fail_once(found: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, list[int]]]:
        attempt = TaskContext.get().attemptNumber()  # type: ignore[union-attr]
        for each in found:
            yield attempt, offsets(each)
        if attempt == 0:
            with open(flag, "x"):
                raise RuntimeError("after the last batch, as late as possible")

    found = batches(spark, PATH, isolation_level="read_uncommitted").mapPartitions(fail_once).collect()
    assert Path(flag).exists()
    assert {attempt for attempt, _ in found} == {1}
    assert [offset for _, each in found for offset in each] == UNCOMMITTED


def test_what_a_broker_appends_after_the_plan_is_not_read(spark: SparkSession, tmp_path: Path) -> None:
    def transactional(offset: int) -> bytes:
        return batch(offset, transactional=True, producer_id=1, producer_epoch=0)

    path = write_log(tmp_path, "t-0", {0: [batch(0), transactional(2)]})
    planned = [batches(spark, tmp_path), batches(spark, tmp_path, isolation_level="read_uncommitted")]
    with open(path / f"{0:020}.log", "ab") as log:
        log.write(marker(4, "commit", 1) + batch(5))
    assert [rdd.flatMap(offsets).collect() for rdd in planned] == [[0, 1], [0, 1, 2, 3]]
    assert batches(spark, tmp_path).flatMap(offsets).collect() == [0, 1, 2, 3, 5, 6]


def test_damage_fails_the_job_or_is_passed_to_a_callback(spark: SparkSession) -> None:
    path = str(case("clean_flip_last_payload").logs)
    with pytest.raises(PySparkException, match=f"position {BATCH_OF_88.position}, offset 88"):
        batches(spark, path, isolation_level="read_uncommitted").count()
    positions = spark.sparkContext.accumulator(0)
    found = batches(
        spark,
        path,
        isolation_level="read_uncommitted",
        on_corrupt=lambda error: positions.add(error.position),
    )
    lost = set(BATCH_OF_88.offsets)
    assert found.flatMap(offsets).collect() == [offset for offset in UNCOMMITTED if offset not in lost]
    assert positions.value == BATCH_OF_88.position


def test_a_file_that_shrank_after_the_plan_fails_the_task(spark: SparkSession, tmp_path: Path) -> None:
    path = write_log(tmp_path, "t-0", {0: [batch(0), batch(2)]})
    planned = batches(spark, tmp_path)
    (path / f"{0:020}.log").write_bytes(batch(0))
    with pytest.raises(PySparkException, match="not what it was when the read was planned"):
        planned.count()

"""``export`` with Spark's executors: the same files as without, also when Spark continues an export of
another engine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.golden.cases import case
from tests.golden.damage import DAMAGED
from tests.spark.answers import expected_lines, line
from tests.unit.export.outputs import Stop, StoppingOutput, run_export, visible
from txnkafka.export import StagedUnit, UnitTask
from txnkafka.spark.export import SparkEngine

INTERLEAVED = case("interleaved").logs


def test_the_same_files_as_without_spark(spark: SparkSession, tmp_path: Path) -> None:
    report = run_export(INTERLEAVED, tmp_path / "spark", file_bytes=40_000, engine=SparkEngine(spark))
    run_export(INTERLEAVED, tmp_path / "local", file_bytes=40_000)
    assert report.files > 4
    assert visible(tmp_path / "spark") == visible(tmp_path / "local")


def test_spark_reads_what_it_wrote(spark: SparkSession, tmp_path: Path) -> None:
    crash = case("crash")
    run_export(crash.answered, tmp_path / "out", "parquet", engine=SparkEngine(spark))
    found = spark.read.parquet(str(tmp_path / "out"))
    frame = found.where(f"topic = '{DAMAGED.topic}' and partition = {DAMAGED.partition}").orderBy("offset")
    rows = frame.selectExpr("*", "unix_millis(timestamp) as time").collect()
    assert [line(row.asDict(), row.time) for row in rows] == expected_lines(crash, DAMAGED, "read_committed")
    assert found.where("date <> to_date(timestamp) or date is null").count() == 0


def test_spark_continues_an_export(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Stop):
        run_export(INTERLEAVED, tmp_path / "out", file_bytes=40_000, files=StoppingOutput(60))
    begun = len(visible(tmp_path / "out"))
    numbers = []

    def counted(tasks: Iterable[UnitTask]) -> Iterable[StagedUnit]:
        waiting = list(tasks)
        numbers.extend(task.unit.number for task in waiting)
        return SparkEngine(spark)(waiting)

    run_export(INTERLEAVED, tmp_path / "out", file_bytes=40_000, engine=counted)
    run_export(INTERLEAVED, tmp_path / "local", file_bytes=40_000)
    assert begun > 0
    assert len(numbers) < len(visible(tmp_path / "local"))
    assert visible(tmp_path / "out") == visible(tmp_path / "local")


def test_damage_stops_the_partition_and_not_the_job(spark: SparkSession, tmp_path: Path) -> None:
    broken = case("clean_flip_last_payload").logs
    given = {"isolation_level": "read_uncommitted", "file_bytes": 8000}
    report = run_export(broken, tmp_path / "spark", engine=SparkEngine(spark), **given)
    local = run_export(broken, tmp_path / "local", **given)
    assert report.stopped == local.stopped
    assert len(report.stopped) == 1
    assert visible(tmp_path / "spark") == visible(tmp_path / "local")

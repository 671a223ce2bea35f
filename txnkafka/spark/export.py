"""Stages the units of an export in Spark's executors.

An executor writes the files of a unit and their record; the driver counts units and publishes their files. A
task that runs twice stages its unit twice; only one of them is published. When the driver dies, the next run
finds the staged units. The output directory must be the same path on all machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.sql import SparkSession

from txnkafka.env import LocalDataFiles
from txnkafka.errors import LogDirError
from txnkafka.export import StagedUnit, UnitTask, stage_unit
from txnkafka.spark.worker import settled


class SparkEngine:
    """Stages units on Spark. The default session is the active one, or a new one."""

    def __init__(self, spark: SparkSession | None = None) -> None:
        self._spark = spark

    def __call__(self, tasks: Iterable[UnitTask]) -> Iterator[StagedUnit]:
        waiting = list(tasks)
        if not waiting:
            return
        spark = SparkSession.builder.getOrCreate() if self._spark is None else self._spark
        context = spark.sparkContext
        slices = _slices(waiting, context.defaultParallelism)
        for unit in context.parallelize(waiting, slices).map(_stage).collect():
            _check_shared(waiting[0].folder, unit)
            yield unit


def _slices(tasks: list[UnitTask], parallelism: int) -> int:
    """Return the number of Spark tasks: one per ``file_bytes`` of log. A broker has many small partitions,
    and a Spark task costs tens of milliseconds."""
    total = sum(task.unit.size for task in tasks)
    return min(len(tasks), max(2 * parallelism, total // tasks[0].options.file_bytes))


def _check_shared(folder: str, unit: StagedUnit) -> None:
    files = LocalDataFiles()
    for file in unit.files:
        path = files.join(folder, file.staged)
        if not files.exists(path):
            raise LogDirError(
                f"{path}, which an executor wrote, does not exist for the driver: "
                "the output directory must be the same path on all machines"
            )


def _stage(task: UnitTask) -> StagedUnit:
    with settled():
        return stage_unit(LocalDataFiles(), task)

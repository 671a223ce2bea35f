"""The units of an export, staged by Spark's executors.

An executor writes the files of a unit and the record of them; the driver lets units count and shows their
files. A task that is run twice stages its unit twice, and one of the two counts. When the driver dies, what
was staged is found by whoever goes on. The output directory must be the same path everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.sql import SparkSession

from txnkafka.env import LocalOutput
from txnkafka.errors import LogDirError
from txnkafka.logdir.export import StagedUnit, UnitTask, stage_unit

__all__ = ["SparkEngine"]


class SparkEngine:
    """Stages units on Spark, one a task; without a session the one that is there, or a new one."""

    def __init__(self, spark: SparkSession | None = None) -> None:
        self._spark = spark

    def __call__(self, tasks: Iterable[UnitTask]) -> Iterator[StagedUnit]:
        waiting = list(tasks)
        if not waiting:
            return
        spark = SparkSession.builder.getOrCreate() if self._spark is None else self._spark
        staged = spark.sparkContext.parallelize(waiting, len(waiting)).map(_stage).collect()
        files = LocalOutput()
        for unit in staged:
            for each in unit.files:
                if not files.exists(each.staged):
                    raise LogDirError(
                        f"{each.staged}, which an executor wrote, is not there for the driver: "
                        "the output directory must be the same path on all machines"
                    )
            yield unit


def _stage(task: UnitTask) -> StagedUnit:
    return stage_unit(LocalOutput(), task)

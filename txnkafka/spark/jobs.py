"""Reads record batches in the executors for programs; only results cross to the JVM.

Crossing from a Python worker to the JVM costs more than decoding; a filter or an aggregate on record batches
in the worker saves that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, TypeVar, Unpack

from pyspark.sql import DataFrame, SparkSession

from txnkafka.spark.options import ReadKeywords, leaving_damage_out, read_options
from txnkafka.spark.plan import PartitionPlan, PartitionPlanner, ReadTask, plan_tasks
from txnkafka.spark.read import TaskReader
from txnkafka.spark.schema import KAFKA_COLUMNS, RECORD_COLUMNS, batch_schema, named_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.core.rdd import RDD
    from pyspark.sql.types import StructType

    from txnkafka.logdir import PartitionSource
    from txnkafka.record.chunk import OnCorrupt

SPREAD_BYTES = 32 << 30  # of log, whose headers are two million batches of 16 KiB
Batches = Iterator["pa.RecordBatch"]
Task = TypeVar("Task")
Path = str | PurePath | Iterable[str | PurePath]


def batches(
    spark: SparkSession,
    path: Path,
    *,
    columns: Sequence[str] = KAFKA_COLUMNS,
    on_corrupt: OnCorrupt | None = None,
    **reading: Unpack[ReadKeywords],
) -> RDD[pa.RecordBatch]:
    """Return the records of one or more log directories as an RDD of Arrow record batches, read_committed.

    Planning happens now, reading in the executors when the RDD is used; functions of ``map`` and
    ``mapPartitions`` run there too, in the same process. ``columns`` may be any of key, value, topic,
    partition, offset, timestamp, timestampType and headers. ``where`` selects records. ``on_corrupt`` is
    called in the executor with the error of a damaged batch, which is then left out; with
    ``fail_on_data_loss=False`` that is logged; by default the error fails the job."""
    tasks, reader = _plan(spark, path, columns, on_corrupt, reading)
    # one task a slice; an RDD without slices could not be collected
    return spark.sparkContext.parallelize(tasks, max(1, len(tasks))).mapPartitions(reader)


def map_arrow(
    spark: SparkSession,
    function: Callable[[Batches], Batches],
    schema: StructType | str,
    path: Path,
    *,
    columns: Sequence[str] = KAFKA_COLUMNS,
    on_corrupt: OnCorrupt | None = None,
    **reading: Unpack[ReadKeywords],
) -> DataFrame:
    """Return a DataFrame of the output of ``function`` for the record batches of each task; decoding and
    ``function`` run in one step.

    ``function`` gets an iterator of record batches, as with ``DataFrame.mapInArrow``, and may stop before its
    end; ``schema`` is the schema of its output. The other arguments are those of ``batches``."""
    tasks, reader = _plan(spark, path, columns, on_corrupt, reading)
    return planned_frame(spark, tasks, lambda wanted: function(reader(wanted)), schema)


def planned_frame(
    spark: SparkSession,
    tasks: Sequence[Task],
    read: Callable[[Iterator[Task]], Batches],
    schema: StructType | str,
) -> DataFrame:
    """Return a DataFrame of the output of ``read`` for planned tasks, a Spark task each."""
    planned = spark.sparkContext.broadcast(tasks)

    def run(numbers: Batches) -> Batches:
        yield from read(planned.value[number] for batch in numbers for number in batch.column(0).to_pylist())
        # Spark discards a worker that does not read its whole input
        for _ in numbers:
            pass

    return spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(run, schema)


def scan(
    spark: SparkSession,
    path: Path,
    *,
    columns: Sequence[str] = KAFKA_COLUMNS,
    on_corrupt: OnCorrupt | None = None,
    **reading: Unpack[ReadKeywords],
) -> DataFrame:
    """Return the records as a DataFrame with those columns.

    The rows are those of ``spark.read.format("txnkafka")`` with the same options; the cost of ``where`` and
    ``columns`` depends on what they select. The other arguments are those of ``batches``."""
    schema = named_columns(RECORD_COLUMNS, columns)
    return map_arrow(spark, _unchanged, schema, path, columns=columns, on_corrupt=on_corrupt, **reading)


def _unchanged(found: Batches) -> Batches:
    return found


def paths_of(path: Path) -> list[str]:
    """Return one path or several as a list of strings."""
    return [str(path)] if isinstance(path, str | PurePath) else [str(each_path) for each_path in path]


def _plan(
    spark: SparkSession,
    path: Path,
    columns: Sequence[str],
    on_corrupt: OnCorrupt | None,
    reading: ReadKeywords,
) -> tuple[list[ReadTask], TaskReader]:
    options = read_options(**reading)
    if on_corrupt is not None:
        options = leaving_damage_out(options)
    schema = batch_schema(columns)
    context = spark.sparkContext
    tasks = plan_tasks(paths_of(path), options, context.defaultParallelism, partial(_spread, context))
    return tasks, TaskReader(schema, options, on_corrupt)


def _spread(
    context: SparkContext, planner: PartitionPlanner, sources: Sequence[PartitionSource], log_bytes: int
) -> Iterable[PartitionPlan]:
    """Plan in executors if that saves more time than a Spark job costs."""
    if log_bytes < SPREAD_BYTES or len(sources) == 1:
        return map(planner, sources)
    slices = min(len(sources), 4 * context.defaultParallelism)
    return context.parallelize(sources, slices).map(planner).toLocalIterator(prefetchPartitions=True)

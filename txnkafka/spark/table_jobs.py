"""Reads tables about a log directory and counts its records, for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Unpack

from pyspark.sql import DataFrame, SparkSession

from txnkafka.logdir.requested import count_requested
from txnkafka.record.predicate import ANY
from txnkafka.spark.jobs import Path, batches, paths_of, planned_frame
from txnkafka.spark.options import ReadKeywords, ReadOptions, read_options
from txnkafka.spark.read import damage_fails_the_job, damage_handler
from txnkafka.spark.selection import partition_request
from txnkafka.spark.tables import check_keywords, find_table
from txnkafka.spark.tables.partition_tasks import Sources, each_partition, plan_partitions

if TYPE_CHECKING:
    import pyarrow as pa

    from txnkafka.logdir import PartitionView


def table(spark: SparkSession, name: str, path: Path, **reading: Unpack[ReadKeywords]) -> DataFrame:
    """Return a table about one or more log directories of a broker: ``batches``, ``transactions``,
    ``offsets``, ``halves``, ``segments``, ``findings``, or the ``records`` themselves;
    docs/spark.md lists the columns.

    Partitions are listed now; executors read their logs when the frame is used. Raises ValueError for a
    keyword that does not apply to the table."""
    found = find_table(name)
    check_keywords(name, {keyword: keyword for keyword in reading})
    options = read_options(**reading)
    tasks = found.plan(paths_of(path), options, spark.sparkContext.defaultParallelism)
    schema = found.schema()
    arrow_schema = found.arrow_schema(schema)

    def rows(wanted: Iterator[object]) -> Iterator[pa.RecordBatch]:
        return find_table(name).rows(wanted, arrow_schema, options)

    return planned_frame(spark, tasks, rows, schema)


def count(spark: SparkSession, path: Path, **reading: Unpack[ReadKeywords]) -> int:
    """Return the number of records that a reader of the isolation level (default: read_committed) gets, which
    is the number of rows of the table ``records``, by reading batch headers.

    Only batches that an offset bound cuts and sets of magic 0 and 1 are decoded. CRCs are not checked: a
    batch with a wrong CRC counts with the number of records in its header. A task reads whole partitions.
    With ``where`` records are decoded as far as the predicate tests them, and CRCs are checked."""
    options = read_options(**reading)
    if options.where != ANY:
        chosen = batches(spark, path, columns=["offset"], **reading)
        return int(chosen.map(lambda batch: batch.num_rows).sum())
    tasks = plan_partitions(paths_of(path), options, spark.sparkContext.defaultParallelism)
    sources = spark.sparkContext.parallelize(tasks, max(1, len(tasks)))
    return sum(sources.mapPartitions(partial(count_partitions, options=options)).collect())


def count_partitions(tasks: Iterable[Sources], options: ReadOptions) -> Iterator[int]:
    """Counts the records of each partition in the executors."""

    def counted(view: PartitionView) -> Iterator[int]:
        request = partition_request(view, options)
        yield count_requested(view, replace(request, on_corrupt=damage_handler(options) or "stop"))

    with damage_fails_the_job():
        for sources in tasks:
            yield from each_partition(sources, counted)

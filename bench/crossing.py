"""The cost of moving rows from a Python worker into Spark's JVM: one record batch, made once per task, is
sent repeatedly. No reader can be faster than this."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from txnkafka.spark.jobs import planned_frame
from txnkafka.spark.read import MAX_BATCH_ROWS
from txnkafka.spark.schema import KAFKA_COLUMNS, RECORD_COLUMNS, arrow_schema_of, batch_schema, named_columns

__all__ = ["crossing", "crossing_scan"]

TASKS = 4
ONE_ROW = {
    "key": b"k" * 16,
    "value": b"v" * 100,
    "topic": "bench",
    "partition": 0,
    "offset": 1,
    "timestamp": 1_700_000_000_000_000,
    "timestampType": 0,
}


def crossing(spark: SparkSession, rows: int, schema: str | None) -> DataFrame:
    """Return ``rows`` rows with Kafka's columns, or those of ``schema``, from a Python DataSource."""
    spark.dataSource.register(_Crossing)
    source = spark.read.format(_Crossing.name()).option("rows", str(rows))
    return (source.schema(schema) if schema else source).load()


def crossing_scan(spark: SparkSession, rows: int, columns: list[str]) -> DataFrame:
    """Return the same from ``mapInArrow``, as ``scan`` uses it."""

    def batches(tasks: Iterable[int]) -> Iterator[pa.RecordBatch]:
        for wanted in tasks:
            yield from _batches(batch_schema(columns), wanted)

    return planned_frame(spark, [rows // TASKS] * TASKS, batches, named_columns(RECORD_COLUMNS, columns))


def _batches(schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
    batch = pa.RecordBatch.from_pylist([ONE_ROW] * MAX_BATCH_ROWS, schema)
    for start in range(0, rows, MAX_BATCH_ROWS):
        yield batch.slice(0, min(MAX_BATCH_ROWS, rows - start))


class _Crossing(DataSource):
    @classmethod
    def name(cls) -> str:
        return "crossing"

    def schema(self) -> StructType:
        return named_columns(RECORD_COLUMNS, KAFKA_COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(int(self.options["rows"]), arrow_schema_of(schema))


class _Reader(DataSourceReader):
    def __init__(self, rows: int, schema: pa.Schema) -> None:
        self._rows, self._schema = rows, schema

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(self._rows // TASKS)] * TASKS

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _batches(self._schema, partition.value)

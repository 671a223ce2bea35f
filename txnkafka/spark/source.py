"""``spark.read.format("txnkafka")``: a log directory as a DataFrame, under the names of Spark's Kafka source.

Spark asks for the schema and the plan in processes of the driver, and reads in the executors; all of them
import this module, so it loads little. Nothing is pushed down: Spark has no pruning for Python sources, a
narrower schema takes its place (``schema.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from txnkafka.spark.source_options import parse_source_options
from txnkafka.spark.tables import find_table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from txnkafka.spark.source_options import SourceOptions

__all__ = ["TxnKafkaDataSource"]


class TxnKafkaDataSource(DataSource):
    """Kafka log directories for ``spark.read``; see docs/spark.md for the options."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "txnkafka"

    def schema(self) -> StructType:
        """The columns of the table; of records those of Spark's Kafka source. Refuses options that are
        wrong."""
        options = parse_source_options(self.options)
        return find_table(options.table).schema(include_headers=options.include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader for the columns of ``schema``. Refuses columns that do not exist."""
        options = parse_source_options(self.options)
        return _Reader(options, find_table(options.table).arrow_schema(schema))


class _Partition(InputPartition):
    def __init__(self, task: object) -> None:
        super().__init__(task)


class _Reader(DataSourceReader):
    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        plan = find_table(self._options.table).plan
        return [_Partition(task) for task in plan(self._options.paths, self._options.reading, 1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark makes one partition with None of an empty plan
        tasks = [] if partition.value is None else [partition.value]
        return find_table(self._options.table).rows(tasks, self._schema, self._options.reading)

"""``spark.read.format("txnkafka")``: a log directory as a DataFrame, under the names of Spark's Kafka source.

Spark asks for the schema and the plan in processes of the driver, and reads in the executors; all of them
import this module, so it loads little. Nothing is pushed down: Spark has no pruning for Python sources, a
narrower schema takes its place (``schema.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from txnkafka.spark.schema import arrow_schema_of, source_schema
from txnkafka.spark.source_options import parse_source_options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from txnkafka.spark.plan import ReadTask
    from txnkafka.spark.source_options import SourceOptions

__all__ = ["TxnKafkaDataSource"]


class TxnKafkaDataSource(DataSource):
    """Kafka log directories for ``spark.read``; see docs/spark.md for the options."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "txnkafka"

    def schema(self) -> StructType:
        """The columns of Spark's Kafka source. Refuses options that are wrong."""
        return source_schema(parse_source_options(self.options).include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader for the columns of ``schema``. Refuses columns that do not exist."""
        return _Reader(parse_source_options(self.options), arrow_schema_of(schema))


class _Partition(InputPartition):
    def __init__(self, task: ReadTask) -> None:
        super().__init__(task)


class _Reader(DataSourceReader):
    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        from txnkafka.spark.plan import plan_tasks

        return [_Partition(task) for task in plan_tasks(self._options.paths, self._options.reading)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from txnkafka.spark.read import TaskReader, log_damage

        # Spark makes one partition with None of an empty plan
        tasks = [] if partition.value is None else [partition.value]
        reading = self._options.reading
        on_corrupt = None if reading.fail_on_data_loss else log_damage
        return TaskReader(self._schema, on_corrupt, reading.storage_options)(tasks)

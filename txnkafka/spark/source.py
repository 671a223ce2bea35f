"""``format("txnkafka")`` of ``spark.read`` and ``spark.readStream`` reads a log directory as a DataFrame,
with the names of Spark's Kafka source.

Spark requests the schema and the plan in processes of the driver, and reads in the executors; all of them
import this module, so it loads little. Spark has no pruning of columns for Python sources: a narrower schema,
or the option ``columns``, takes its place. Filters are accepted where the session pushes them.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)

from txnkafka.record.predicate import conjunction
from txnkafka.spark.source_options import either_options, parse_source_options
from txnkafka.spark.stream.directory_log import DirectoryLog
from txnkafka.spark.stream.limits import TriggerLimits
from txnkafka.spark.stream.reader import StreamReader
from txnkafka.spark.tables import find_table
from txnkafka.spark.worker import settled

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from txnkafka.spark.source_options import SourceOptions
    from txnkafka.spark.stream.stream_log import StreamLog

LOG = logging.getLogger("txnkafka.spark")


class TxnKafkaDataSource(DataSource):
    """Kafka logs for ``spark.read`` and ``spark.readStream``; see docs/spark.md for the options."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "txnkafka"

    @cached_property
    def _parsed(self) -> SourceOptions:
        """The options of a batch, parsed once: Spark pickles this object after ``schema`` and calls
        ``reader`` of the copy."""
        return parse_source_options(self.options)

    def schema(self) -> StructType:
        """Return the columns of the table, or those of the option ``columns``. Raises for invalid options."""
        with settled():
            options = either_options(lambda: self._parsed, self.options)
            return find_table(options.table).schema(options.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader for the columns of ``schema``. Raises for columns that do not exist."""
        options = self._parsed
        if options.limits != TriggerLimits():
            LOG.warning("limits of a trigger do not apply to a batch, and are ignored")
        kind = _PushingReader if options.table == "records" and _filters_are_pushed() else _Reader
        return kind(options, find_table(options.table).arrow_schema(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  (Spark's name)
        """Return a reader for the columns of ``schema``. An invalid option is an error when it is used: Spark
        would hide an error from here in one of its own."""
        try:
            options = parse_source_options(self.options, streaming=True)
            columns = find_table(options.table).arrow_schema(schema)
        except ValueError as error:
            return _Refusal(error)
        open_log: Callable[[], StreamLog] = partial(DirectoryLog, options.paths, options.reading)
        if options.broker is not None:
            from txnkafka.spark.stream.broker_log import BrokerLog

            open_log = partial(BrokerLog, options.broker, options.reading)
        return StreamReader(
            open_log,
            _rows(options, columns),
            options.limits,
            fail_on_data_loss=options.reading.fail_on_data_loss,
        )

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a writer in one transaction; see docs/sink.md for the options."""
        from txnkafka.spark.sink.writers import batch_writer

        return batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Return a writer of each batch in one transaction; see docs/sink.md for the options."""
        from txnkafka.spark.sink.writers import stream_writer

        return stream_writer(self.options, schema, overwrite=overwrite)


def _filters_are_pushed() -> bool:
    """Return whether Spark pushes filters. It refuses a reader that accepts filters unless
    ``spark.sql.python.filterPushdown.enabled`` is set; only then it creates the reader in a process that
    runs this module."""
    return any("data_source_pushdown_filters" in word for word in sys.orig_argv)


def _plan(options: SourceOptions) -> Iterable[object]:
    if options.broker is None:
        return find_table(options.table).plan(options.paths, options.reading, 1)
    from txnkafka.spark.broker.broker_plan import plan_broker_tasks

    return plan_broker_tasks(options.broker, options.reading)


def _rows(options: SourceOptions, schema: pa.Schema) -> Callable[[list[Any]], Iterator[pa.RecordBatch]]:
    """Return the function that reads tasks."""
    if options.broker is None:
        return partial(_table_rows, options, schema)
    from txnkafka.spark.broker.broker_read import BrokerReader

    return BrokerReader(schema, options.reading, options.broker)


def _table_rows(options: SourceOptions, schema: pa.Schema, tasks: list[Any]) -> Iterator[pa.RecordBatch]:
    return find_table(options.table).rows(tasks, schema, options.reading)


class _Partition(InputPartition):
    def __init__(self, task: object) -> None:
        super().__init__(task)


class _Reader(DataSourceReader):
    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        with settled():
            return [_Partition(task) for task in _plan(self._options)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        # for an empty plan Spark makes one partition with None; in Spark 4.0 it is None
        tasks = [] if partition is None or partition.value is None else [partition.value]
        return _rows(self._options, self._schema)(tasks)


class _PushingReader(_Reader):
    """Accepts the filters that have an equivalent predicate, in addition to ``where``."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  (Spark's name)
        from txnkafka.spark.filters import split_filters

        taken, left = split_filters(filters)
        reading = self._options.reading
        request = replace(reading.request, where=conjunction([reading.where, taken]))
        self._options = self._options._replace(reading=replace(reading, request=request))
        return left


class _Refusal(DataSourceStreamReader):
    """Raises the error of an option when Spark asks for the begin or, as Spark 4.0 does first, the end."""

    def __init__(self, error: ValueError) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, object]:  # noqa: N802  (Spark's name)
        raise self._error

    def latestOffset(self, *_: object) -> dict[str, object]:  # noqa: N802  (Spark's name)
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise self._error

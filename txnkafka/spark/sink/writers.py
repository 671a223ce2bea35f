"""The writers that Spark calls: ``write`` in tasks, ``commit`` and ``abort`` in a process of the driver.

Spark makes a writer anew for each call, and only messages reach the driver. Of a stream it makes one to send
it to the tasks of a batch, and one to commit the batch; only the first one asks the target for its topics.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pyspark.sql import datasource

from txnkafka.env import LocalDataFiles
from txnkafka.errors import KafkaError
from txnkafka.spark.sink.decision import BatchId
from txnkafka.spark.sink.publication import publish
from txnkafka.spark.sink.row_columns import check_rows
from txnkafka.spark.sink.sink_options import SinkOptions, parse_sink_options
from txnkafka.spark.sink.staged import Staged, staged_of
from txnkafka.spark.sink.target import open_target, topic_layouts
from txnkafka.spark.worker import settled
from txnkafka.staging import remove_staged

_HAS_ARROW: Final = hasattr(datasource, "DataSourceStreamArrowWriter")  # from Spark 4.1 on

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter, WriterCommitMessage
    from pyspark.sql.types import StructType

    from txnkafka.spark.sink.row_encoder import TopicLayout

    _BatchBase = datasource.DataSourceArrowWriter
    _StreamBase = datasource.DataSourceStreamArrowWriter
elif _HAS_ARROW:
    _BatchBase, _StreamBase = datasource.DataSourceArrowWriter, datasource.DataSourceStreamArrowWriter
else:
    _BatchBase, _StreamBase = datasource.DataSourceWriter, datasource.DataSourceStreamWriter

_COMMITS: Final = "python_streaming_sink_runner"  # the module of the process that commits a stream's batch


def batch_writer(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> DataSourceWriter:
    """Return the writer of ``df.write``. Raises ValueError for wrong options and columns, LogDirError and
    KafkaError for a target that cannot be opened."""
    _refuse_overwrite(overwrite)
    return BatchWriter(*_prepared(options, schema, is_stream=False))


def stream_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> DataSourceStreamWriter:
    """Return the writer of ``df.writeStream``. Raises like ``batch_writer``."""
    _refuse_overwrite(overwrite)
    return StreamWriter(*_prepared(options, schema, is_stream=True))


def _prepared(
    options: Mapping[str, str], schema: StructType, *, is_stream: bool
) -> tuple[SinkOptions, StructType, dict[str, TopicLayout]]:
    found = parse_sink_options(options, is_stream=is_stream)
    check_rows(schema, found.topic)
    if any(_COMMITS in word for word in sys.orig_argv):
        return found, schema, {}
    with open_target(found) as clients:
        return found, schema, topic_layouts(clients, found)


def _refuse_overwrite(overwrite: bool) -> None:
    if overwrite:
        raise ValueError("a log is only appended to: use mode('append') or outputMode('append')")


class _Writer:
    def __init__(self, options: SinkOptions, schema: StructType, layouts: Mapping[str, TopicLayout]) -> None:
        self._options = options
        self._schema = schema
        self._layouts = layouts

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Stage the rows of a task."""
        from txnkafka.spark.sink.rows import arrow_rows  # loads pyarrow, which the driver does not need
        from txnkafka.spark.sink.task import stage

        rows = iterator if _HAS_ARROW else arrow_rows(iterator, self._schema)
        with settled():
            return stage(rows, self._options, self._layouts)

    def _publish(self, batch: BatchId | None, staged: Sequence[Staged], transactional_id: str | None) -> None:
        """Publish staged rows; files that are not needed any more are removed."""
        if any(task.path is not None for task in staged):
            options = self._options._replace(transactional_id=transactional_id)
            with open_target(options) as clients:
                publish(clients, options, batch, staged, LocalDataFiles())
        _remove(staged)


class BatchWriter(_Writer, _BatchBase):
    """Writes a DataFrame in one transaction."""

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Publish the rows of all tasks."""
        staged = staged_of(messages)
        batch = None
        if self._options.version is not None:
            streams = [task.batch_id for task in staged if task.batch_id is not None]
            owner, run = (streams[0].owner, streams[0].run) if streams else ("", "")
            batch = BatchId(self._options.version, owner, run)
        self._publish(batch, staged, self._options.transactional_id)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove the staged files of tasks that have finished: see ``StreamWriter.abort``."""
        _remove(staged_of(messages))


class StreamWriter(_Writer, _StreamBase):
    """Writes each batch of a stream in one transaction."""

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Publish the rows of a batch, unless they were published. Spark repeats a batch after a crash of the
        driver; see ``publish`` for errors."""
        staged = staged_of(messages)
        known = [task.batch_id for task in staged if task.batch_id is not None]
        transactional_id = self._options.transactional_id or (known[0].owner if known else None)
        if staged and transactional_id is None:
            raise KafkaError("this version of Spark does not tell the id of the query: set transactionalId")
        batch = known[0]._replace(number=batchId) if known else BatchId(batchId)
        self._publish(batch, staged, transactional_id)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Remove the staged files of tasks that have finished.

        Spark also calls this after a ``commit`` that failed when the transaction was decided. No decision
        needs a staged file: all rows are in the target's log before the decision is made."""
        _remove(staged_of(messages))


def _remove(staged: Sequence[Staged]) -> None:
    files = LocalDataFiles()
    for task in staged:
        if task.path is not None:
            remove_staged(files, task.path)

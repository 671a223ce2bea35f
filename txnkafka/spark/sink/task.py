"""The part of a task: encodes its rows, and stages them durably."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark import TaskContext

from txnkafka.client.client_config import read_config
from txnkafka.client.producer import ProducerConfig
from txnkafka.env import LocalDataFiles, SystemClock
from txnkafka.model import NO_TIMESTAMP
from txnkafka.record.batch_header import header_fields
from txnkafka.record.builder import RecordBatchBuilder
from txnkafka.spark.sink.decision import BatchId
from txnkafka.spark.sink.row_encoder import RowEncoder
from txnkafka.spark.sink.staged import Staged, StagedBatch
from txnkafka.staging import StagedFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from txnkafka.spark.sink.row_encoder import TopicLayout
    from txnkafka.spark.sink.sink_options import SinkOptions


class TaskIdentity(NamedTuple):
    """The partition of a task, and in a streaming query the id of the batch."""

    partition: int
    batch: BatchId | None


def task_identity() -> TaskIdentity:
    """Return the identity of the running task.

    The names of the properties are not part of Spark's API: source ``StreamExecution`` and
    ``MicroBatchExecution``. The id of the run is the job group."""
    context = TaskContext.get()
    if context is None:
        return TaskIdentity(0, None)
    query, number, run = (
        context.getLocalProperty(name) or ""
        for name in ("sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id")
    )
    batch = BatchId(int(number), query, run) if query and number else None
    return TaskIdentity(context.partitionId(), batch)


def stage(rows: Iterable[pa.RecordBatch], options: SinkOptions, layouts: Mapping[str, TopicLayout]) -> Staged:
    """Encode and stage the rows of a task. An error leaves no file. Raises what RowEncoder raises;
    OSError."""
    identity = task_identity()
    number = 0 if identity.batch is None else identity.batch.number
    encoder = RowEncoder(
        options.topic, layouts, _builder(options),
        now_ms=SystemClock().now_ms(), first=identity.partition + number,
    )  # fmt: skip
    batches = []
    newest = NO_TIMESTAMP
    with StagedFile(LocalDataFiles(), options.staging) as file:
        for topic, partition, content, records in encoder.encode(rows):
            position = file.append(content)
            batches.append(StagedBatch(topic, partition, position, len(content), records))
            newest = max(newest, header_fields(content).max_timestamp)
        path = file.finish()
    return Staged(path, tuple(batches), newest, identity.batch)


def _builder(options: SinkOptions) -> RecordBatchBuilder:
    settings = {**options.client, "compression.type": options.compression}
    level = read_config(ProducerConfig, settings).compression_level
    return RecordBatchBuilder(options.compression, level)

"""What runs in the executors: a task's bytes to Arrow record batches.

CRCs, the read_committed filter and decoding happen here; nothing but the wanted columns leaves.
Invariant: the batches of a task are a function of its bytes; reading it again gives the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from txnkafka.env import LocalFileSystem
from txnkafka.errors import CorruptRecordError
from txnkafka.logdir import ReadUnit, Segment, read_unit
from txnkafka.model import TopicPartition
from txnkafka.record.arrow import to_arrow
from txnkafka.record.chunk import ChunkDecoder, OnCorrupt
from txnkafka.spark.plan import ReadTask

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MAX_BATCH_ROWS", "TaskReader", "log_damage", "without_empty_headers"]

MAX_BATCH_ROWS = 20_000
COPIED = frozenset(("key", "value", "headers"))
LOG = logging.getLogger("txnkafka.spark")


class TaskReader:
    """Reads tasks as record batches of ``schema``; small when pickled.

    ``on_corrupt`` takes the error of a batch that is then left out; without it the error is raised.
    """

    def __init__(self, schema: pa.Schema, on_corrupt: OnCorrupt | None = None) -> None:
        self.schema = schema
        self.on_corrupt = on_corrupt

    def __call__(self, tasks: Iterable[ReadTask]) -> Iterator[pa.RecordBatch]:
        """The record batches of some tasks, one after the other."""
        names = frozenset(self.schema.names)
        # without keys and values a walk that only looks at records will do, nothing is copied
        decoder = ChunkDecoder(headers="headers" in names, views=not names & COPIED)
        try:
            for task in tasks:
                for unit in task.units:
                    yield from self._unit(unit, decoder, mapped=task.mapped)
        except CorruptRecordError as error:
            error.remedy = (
                "The task fails, and the job with it; failOnDataLoss=false leaves the batch out, "
                "'txnkafka verify' lists all damage"
            )
            raise

    def _unit(self, unit: ReadUnit, decoder: ChunkDecoder, *, mapped: bool) -> Iterator[pa.RecordBatch]:
        segment = Segment(LocalFileSystem(), unit.start_offset, {"log": unit.path}, unit.end_position)
        segment.mapped = mapped
        topic_partition = TopicPartition(unit.topic, unit.partition)
        try:
            for columns in read_unit(segment, unit, decoder, self.on_corrupt):
                batch = to_arrow(columns, topic_partition, self.schema)
                if "headers" in batch.schema.names:
                    batch = without_empty_headers(batch)
                yield from _pieces(batch)
        finally:
            segment.close()


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.num_rows <= MAX_BATCH_ROWS:
        yield batch
        return
    for start in range(0, batch.num_rows, MAX_BATCH_ROWS):
        yield batch.slice(start, MAX_BATCH_ROWS)


def without_empty_headers(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A record without headers has null there, as in Spark's Kafka source."""
    import pyarrow as pa
    import pyarrow.compute as pc

    place = batch.schema.get_field_index("headers")
    headers: Any = batch.column(place)
    empty = pc.equal(pc.list_value_length(headers), 0)
    nulls = pa.ListArray.from_arrays(headers.offsets, headers.values, type=headers.type, mask=empty)
    return batch.set_column(place, batch.schema.field(place), nulls)


def log_damage(error: CorruptRecordError) -> None:
    """What on_corrupt does with ``fail_on_data_loss=False``: the log of the task says what is left out."""
    error.remedy = "This batch is left out, what follows it is read"
    LOG.warning("%s", error)

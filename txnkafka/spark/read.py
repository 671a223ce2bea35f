"""Reads tasks in the executors: their bytes become Arrow record batches.

CRC checks, the read_committed filter, decoding and predicates happen here; only the requested columns of the
selected records leave. Invariant: the batches of a task are a function of its bytes; reading it again gives
the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from txnkafka.env import FileSystem, open_file_system
from txnkafka.errors import CorruptRecordError, FileChangedError
from txnkafka.logdir import ReadUnit, open_unit, read_unit
from txnkafka.model import TopicPartition
from txnkafka.record.arrow import to_arrow
from txnkafka.record.chunk import ChunkDecoder, OnCorrupt
from txnkafka.record.filter import RecordFilter, decoder_for
from txnkafka.spark.options import ReadOptions
from txnkafka.spark.plan import ReadTask
from txnkafka.spark.planned_file import planned_unit
from txnkafka.spark.worker import settled

if TYPE_CHECKING:
    import pyarrow as pa

    from txnkafka._core.columns import RecordColumns
    from txnkafka.storage.formats.segment_reader import LogFileReader

MAX_BATCH_ROWS = 20_000
LOG = logging.getLogger("txnkafka.spark")


class TaskReader:
    """Reads tasks as record batches of ``schema``; small when pickled.

    Only records that match ``where`` of the options are yielded. ``on_corrupt`` gets the error of a damaged
    batch, which is then left out; without it the error is raised, or logged when the options do not fail on
    data loss."""

    def __init__(
        self, schema: pa.Schema, options: ReadOptions | None = None, on_corrupt: OnCorrupt | None = None
    ) -> None:
        options = ReadOptions() if options is None else options
        self.schema = schema
        self.on_corrupt = on_corrupt or damage_handler(options)
        self._where = options.where
        self._storage_options = options.storage_options

    def __call__(self, tasks: Iterable[ReadTask]) -> Iterator[pa.RecordBatch]:
        """Yield the record batches of some tasks, one after another."""
        decoder = decoder_for(self.schema.names, self._where)
        files: FileSystem | None = None
        with settled(), damage_fails_the_job():
            for task in tasks:
                for unit in task.units:
                    # a whole plan is on one file system; it is opened here since it cannot be pickled
                    files = files or open_file_system([unit.path], self._storage_options)[0]
                    unit = planned_unit(files, unit)
                    yield from self._unit(open_unit(files, unit, mapped=task.mapped), unit, decoder)

    def _unit(
        self, segment: LogFileReader, unit: ReadUnit, decoder: ChunkDecoder
    ) -> Iterator[pa.RecordBatch]:
        topic_partition = TopicPartition(unit.topic, unit.partition)
        select = RecordFilter(self._where, topic_partition)
        try:
            for columns in read_unit(segment, unit, decoder, self.on_corrupt):
                # no variable refers to the batch: while it is referenced its memory is not reused
                yield from record_rows(select(columns), topic_partition, self.schema)
        finally:
            segment.close()


def record_rows(
    columns: RecordColumns, topic_partition: TopicPartition, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of decoded records."""
    if len(columns) == 0:
        return
    batch = to_arrow(columns, topic_partition, schema)
    if "headers" in batch.schema.names:
        batch = without_empty_headers(batch)
    yield from pieces(batch)


@contextmanager
def damage_fails_the_job() -> Iterator[None]:
    """Give errors of damaged batches a remedy for Spark users."""
    try:
        yield
    except FileChangedError:
        raise
    except CorruptRecordError as error:
        error.remedy = (
            "The task fails, and with it the job; failOnDataLoss=false leaves the batch out, "
            "'txnkafka verify' lists all damage"
        )
        raise


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Divide rows into batches of at most ``MAX_BATCH_ROWS``."""
    if batch.num_rows <= MAX_BATCH_ROWS:
        yield batch
        return
    for start in range(0, batch.num_rows, MAX_BATCH_ROWS):
        yield batch.slice(start, MAX_BATCH_ROWS)


def without_empty_headers(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Replace empty headers by null, as in Spark's Kafka source."""
    import pyarrow as pa
    import pyarrow.compute as pc

    place = batch.schema.get_field_index("headers")
    headers: Any = batch.column(place)
    empty = pc.equal(pc.list_value_length(headers), 0)
    nulls = pa.ListArray.from_arrays(headers.offsets, headers.values, type=headers.type, mask=empty)
    return batch.set_column(place, batch.schema.field(place), nulls)


def damage_handler(options: ReadOptions) -> OnCorrupt | None:
    """Return the function that handles the error of a damaged batch; None if the task must fail."""
    return None if options.fail_on_data_loss else _log_damage


def _log_damage(error: CorruptRecordError) -> None:
    """Log a batch that is left out because of ``fail_on_data_loss=False``."""
    error.remedy = "This batch is left out, the following ones are read"
    LOG.warning("%s", error)

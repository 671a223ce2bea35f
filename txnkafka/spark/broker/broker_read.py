"""Reads ranges of offsets from a broker in the executors, and decodes them as the files of a log directory
are decoded: checksums, the read_committed filter and predicates apply in the executor."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from txnkafka.client.consumer.list_offsets import EARLIEST
from txnkafka.errors import CorruptRecordError, OffsetOutOfRangeError
from txnkafka.record.filter import RecordFilter, decoder_for
from txnkafka.spark.broker.source_client import SourceClient
from txnkafka.spark.log_bounds import OffsetRange
from txnkafka.spark.read import damage_fails_the_job, damage_handler, record_rows
from txnkafka.spark.worker import settled

if TYPE_CHECKING:
    import pyarrow as pa

    from txnkafka.record.chunk import ChunkDecoder
    from txnkafka.spark.options import ReadOptions

LOG = logging.getLogger("txnkafka.spark")


class BrokerReader:
    """Reads tasks as record batches of ``schema``; small when pickled. A damaged batch fails the task, or is
    left out and logged when the options do not fail on data loss; so are offsets that were deleted since the
    plan was made."""

    def __init__(self, schema: pa.Schema, options: ReadOptions, settings: Mapping[str, str]) -> None:
        self._schema = schema
        self._options = options
        self._settings = settings

    def __call__(self, tasks: Iterable[OffsetRange]) -> Iterator[pa.RecordBatch]:
        """Yield the record batches of some tasks, one after another."""
        decoder = decoder_for(self._schema.names, self._options.where)
        tasks = list(tasks)
        if not tasks:
            return
        with settled(), damage_fails_the_job(), SourceClient(self._settings) as client:
            for part in tasks:
                yield from self._range(client, part, decoder)

    def _range(
        self, client: SourceClient, part: OffsetRange, decoder: ChunkDecoder
    ) -> Iterator[pa.RecordBatch]:
        name, start = part.topic_partition, part.start
        select = RecordFilter(self._options.where, name)
        on_corrupt = damage_handler(self._options)
        committed = self._options.request.read_committed
        while start < part.end:
            rest = OffsetRange(name, start, part.end)
            try:
                for data in client.fetch(rest, committed=committed):
                    for columns in decoder.chunks(data.batches(start, part.end), on_corrupt):
                        yield from record_rows(select(columns), name, self._schema)
                    start = max(start, data.end_offset)
            except OffsetOutOfRangeError as error:
                start = self._after_loss(client, rest, error)
            except CorruptRecordError as error:
                error.locate(topic=name.topic, partition=name.partition)
                raise
            else:
                return

    def _after_loss(self, client: SourceClient, part: OffsetRange, error: OffsetOutOfRangeError) -> int:
        """Return where to continue after deleted offsets."""
        if self._options.fail_on_data_loss:
            raise error
        name = part.topic_partition
        first = client.offsets({name: EARLIEST}, committed=False)[name]
        if first <= part.start:  # the log was truncated instead
            first = part.end
        LOG.warning("%s; reading goes on at offset %d", error, min(first, part.end))
        return first

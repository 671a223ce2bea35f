"""The decoded records of an open log, for the logs with the broker's own state.

Source: ``CoordinatorLoaderImpl``, ``TransactionStateManager.loadTransactionMetadata``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka._core.read_committed import select
from txnkafka.errors import LocatedError
from txnkafka.record.batch import records_of
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnkafka.record.batch import Record
    from txnkafka.storage.log.partition_log import PartitionLog

Header = tuple[int, int, int, int]  # last offset, producer id, attributes, control type


def records_of_log(log: PartitionLog) -> Iterator[Record]:
    """Yield the records of all data batches from the log start to the log end, durable or not. The log must
    not change during the iteration. Raises CorruptRecordError and OSError."""
    for _, records in parts_of_log(log):
        yield from records


def parts_of_log(log: PartitionLog) -> Iterator[tuple[Iterator[Header], Iterator[Record]]]:
    """Yield the log in parts: the headers of all batches of the part, and the records of its data batches,
    which must be consumed before the next part. Otherwise like ``records_of_log``."""
    decoder = ChunkDecoder()
    for segment in log.segments:
        if not segment.size:
            continue
        reader = segment.view()
        try:
            for _, _, index in reader.windows():
                selected = SelectedBatches(reader.read, index, select(index), settled=reader.guard)
                columns = index.last_offset, index.producer_id, index.attributes, index.control_type
                yield zip(*columns, strict=True), _records(log, reader.path, decoder, selected)
        finally:
            reader.close()


def _records(
    log: PartitionLog, path: str, decoder: ChunkDecoder, selected: SelectedBatches
) -> Iterator[Record]:
    try:
        for columns in decoder.chunks(selected):
            for record in records_of(columns):
                if record.offset >= log.log_start_offset:
                    yield record
    except LocatedError as error:
        topic, partition = log.topic_partition
        error.locate(topic=topic, partition=partition, file=path)
        raise

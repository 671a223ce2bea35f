"""The data records of an open log, decoded: for the logs that the broker keeps its own state in.

Source: ``CoordinatorLoaderImpl``, ``TransactionStateManager.loadTransactionMetadata``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka._core.read_committed import select
from txnkafka.record.batch import records_of
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnkafka.record.batch import Record
    from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["records_of_log"]


def records_of_log(log: PartitionLog) -> Iterator[Record]:
    """Yield the records of all data batches from the log start to the log end, whether they are durable or
    not. The log must not change meanwhile. Raises CorruptRecordError and OSError."""
    decoder = ChunkDecoder()
    for segment in log.segments:
        if not segment.size:
            continue
        reader = segment.view()
        try:
            for _, _, index in reader.windows():
                selected = SelectedBatches(reader.read, index, select(index), settled=reader.guard)
                for columns in decoder.chunks(selected):
                    for record in records_of(columns):
                        if record.offset >= log.log_start_offset:
                            yield record
        finally:
            reader.close()

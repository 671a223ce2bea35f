"""Reads a log as a consumer does: one read after the other, each with its aborted transactions, filtered by
the rules of the Java consumer's CompletedFetch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.golden.answers import record_row
from tests.unit.storage.reads import Answer, read
from txnkafka import CorruptRecordError
from txnkafka._core.scan import BatchIndex, scan
from txnkafka.model import IsolationLevel
from txnkafka.record.batch import records_of
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches
from txnkafka.storage.formats.txn_index import AbortedTxn
from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["consume"]

Json = Any
TRANSACTIONAL, CONTROL, ABORT = 0x10, 0x20, 0
BOUNDED = 2  # only records at the offsets of the read count


def consume(
    log: PartitionLog, isolation_level: str, *, max_bytes: int = 1 << 20
) -> tuple[list[Json], CorruptRecordError | None]:
    """Return all records from the log start on, and the error at which a consumer stops."""
    found: list[Json] = []
    try:
        found.extend(_fetches(log, IsolationLevel[isolation_level.upper()], max_bytes))
    except CorruptRecordError as error:
        return found, error
    return found, None


def _fetches(log: PartitionLog, isolation_level: IsolationLevel, max_bytes: int) -> Iterator[Json]:
    position = log.log_start_offset
    while position <= log.log_end_offset:
        answer = read(log, position, max_bytes=max_bytes, isolation_level=isolation_level)
        index = scan(answer.records)
        if not len(index):
            return
        for record in _decoded(answer, index, position):
            if record["offset"] >= position:  # else the batch is misplaced
                position = record["offset"] + 1
                yield record
        position = max(position, index.last_offset[-1] + 1)


def _decoded(answer: Answer, index: BatchIndex, offset: int) -> Iterator[Json]:
    selection = bytearray(BOUNDED * shown for shown in _shown(index, answer.aborted_transactions))
    data = answer.records
    batches = SelectedBatches(
        lambda position, length: data[position : position + length], index, selection, start_offset=offset
    )
    for columns in ChunkDecoder(headers=True).chunks(batches):
        yield from map(record_row, records_of(columns))


def _shown(index: BatchIndex, aborted: list[AbortedTxn] | None) -> Iterator[bool]:
    waiting = sorted(aborted or [], key=lambda each: each.first_offset)
    hidden: set[int] = set()
    for batch in index:
        while waiting and waiting[0].first_offset <= batch.last_offset:
            hidden.add(waiting.pop(0).producer_id)
        if batch.attributes & CONTROL:
            if batch.control_type == ABORT:
                hidden.discard(batch.producer_id)
            yield False
        else:
            yield not (batch.attributes & TRANSACTIONAL and batch.producer_id in hidden)

"""The aborted transactions of a segment that was loaded: from its ``.txnindex``, or from the log where there
is none that can be believed.

Kafka takes a missing file for "no aborts" and shows aborted data then. Here a segment without a file is
looked at once, header by header, before its first answer.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from txnkafka._core.producer_table import ProducerTable
from txnkafka.errors import CorruptFileError
from txnkafka.storage.headers import ATTRIBUTE_CONTROL
from txnkafka.storage.txn_index import parse_txn_index
from txnkafka.storage.txn_index_file import TxnIndexFile

if TYPE_CHECKING:
    from txnkafka._core.scan import BatchIndex
    from txnkafka.model import CompletedTxn
    from txnkafka.storage.partition_log import PartitionLog
    from txnkafka.storage.segment import LogSegment

__all__ = ["load_producers", "replay", "transactions_of"]

LOG = logging.getLogger("txnkafka.storage")
_ABORT = 0
_LARGEST = 1 << 30


def transactions_of(log: PartitionLog, segment: LogSegment) -> TxnIndexFile:
    """The aborted transactions whose markers lie in a segment."""
    if segment.txn_index is None:
        segment.txn_index = _from_file(segment) or _from_log(log, segment)
    return segment.txn_index


def _from_file(segment: LogSegment) -> TxnIndexFile | None:
    path = segment.path("txnindex")
    if not segment.files.exists(path):
        return None
    entries, problems = parse_txn_index(segment.files.read(path, _LARGEST), segment.base_offset)
    if problems:
        LOG.warning("%s is damaged (%s): made anew from the log", path, problems[0].text)
        return None
    return TxnIndexFile(segment.base_offset, entries)


def _from_log(log: PartitionLog, segment: LogSegment) -> TxnIndexFile:
    index = TxnIndexFile(segment.base_offset)
    if any(_has_aborts(batches) for batches in segment.windows()):
        table = ProducerTable()
        completed: list[CompletedTxn] = []
        start = load_producers(log, table, segment.base_offset)
        replay(log, table, start, segment.base_offset, completed)
        completed.clear()
        for batches in segment.windows():
            table.replay(batches, log.log_start_offset, completed)
        index.add(completed)
    if segment.files.exists(segment.path("txnindex")) or index.entries:
        index.replaces_file()
    return index


def _has_aborts(batches: BatchIndex) -> bool:
    kinds = zip(batches.attributes, batches.control_type, strict=True)
    return any(attributes & ATTRIBUTE_CONTROL and kind == _ABORT for attributes, kind in kinds)


def load_producers(log: PartitionLog, table: ProducerTable, end_offset: int) -> int:
    """Load the newest snapshot at or below ``end_offset`` that holds; returns its offset, or where the log
    begins when there is none. One that does not hold is removed."""
    for offset in reversed([each for each in log.snapshots.offsets if each <= end_offset]):
        try:
            table.load(
                log.snapshots.read(offset),
                now_ms=log.loaded_ms,
                expiration_ms=log.config.producer_id_expiration_ms,
            )
            return offset
        except CorruptFileError as error:
            LOG.warning("%s is damaged and goes: %s", log.snapshots.path(offset), error)
            log.snapshots.remove(offset)
    table.clear()
    return log.segments[0].base_offset


def replay(
    log: PartitionLog, table: ProducerTable, start: int, end: int, completed: list[CompletedTxn]
) -> None:
    """Take the batches in [start, end) into ``table``, but for what lies below the log start."""
    first = max(start, log.log_start_offset)
    for number in range(log.segment_of(start), len(log.segments)):
        segment = log.segments[number]
        if segment.base_offset >= end:
            return
        place = segment.find(first) if segment.base_offset < first else (0, 0, 0)
        if place is None:
            continue
        for batches in segment.windows(place[0]):
            count = batches.find(end)
            if count < len(batches):
                batches.truncate(count, "end", "")
            table.replay(batches, first, completed)

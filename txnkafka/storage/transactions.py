"""The aborted transactions of a segment that was loaded: from its ``.txnindex``, and from the log where there
is none that can be believed.

The file has no checksum and no length, and Kafka makes none for a segment without aborts. So a file that is
missing, empty or cut between two entries looks like that of a segment with fewer aborts, and Kafka shows
aborted data then. Here a file is believed up to its last entry; the headers behind that one's marker are
looked at once, before the first answer, for an ABORT marker that is not in the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka._core.producer_table import ProducerTable
from txnkafka.errors import CorruptFileError
from txnkafka.storage.headers import ATTRIBUTE_CONTROL
from txnkafka.storage.txn_index import parse_txn_index
from txnkafka.storage.txn_index_file import TxnIndexFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnkafka._core.scan import BatchIndex
    from txnkafka.model import CompletedTxn
    from txnkafka.storage.partition_log import PartitionLog
    from txnkafka.storage.segment import LogSegment

__all__ = ["load_producers", "replay", "transactions_of"]

_ABORT = 0
_LARGEST = 1 << 30
_NEVER = (1 << 63) - 1


def transactions_of(log: PartitionLog, segment: LogSegment) -> TxnIndexFile:
    """The aborted transactions whose markers lie in a segment."""
    if segment.txn_index is None:
        index = _from_file(log, segment)
        if any(_has_aborts(batches) for batches in _behind(segment, index)):
            _add_from_log(log, segment, index)
        segment.txn_index = index
    return segment.txn_index


def _from_file(log: PartitionLog, segment: LogSegment) -> TxnIndexFile:
    path = segment.path("txnindex")
    if not segment.files.exists(path):
        return TxnIndexFile(segment.base_offset)
    entries, problems = parse_txn_index(segment.files.read(path, _LARGEST), segment.base_offset)
    fault = problems[0].text if problems else ""
    if any(each.first_offset == each.last_offset for each in entries):
        fault = "an aborted transaction has no data"  # zeros look like one
    if not fault:
        return TxnIndexFile(segment.base_offset, entries)
    log.note(f"{path} is damaged, {fault}: made anew from the log")
    index = TxnIndexFile(segment.base_offset)
    index.replaces_file()
    return index


def _behind(segment: LogSegment, index: TxnIndexFile) -> Iterator[BatchIndex]:
    """The batches behind the marker of the last entry."""
    place = segment.find(index.entries[-1].last_offset + 1) if index.entries else (0, 0, 0)
    return iter(()) if place is None else segment.windows(place[0])


def _add_from_log(log: PartitionLog, segment: LogSegment, index: TxnIndexFile) -> None:
    """Add what the markers behind the last entry say. One of a transaction without data here, or whose data
    the cleaner has removed, says nothing."""
    table = ProducerTable()
    completed: list[CompletedTxn] = []
    start = load_producers(log, table, segment.base_offset)
    replay(log, table, start, segment.base_offset, completed)
    completed.clear()
    for batches in segment.windows():
        table.replay(batches, segment.base_offset, completed)
    known = index.entries[-1].last_offset if index.entries else segment.base_offset - 1
    missing = [each for each in completed if each.is_aborted and each.last_offset > known]
    if missing and index.is_saved:
        log.note(f"{segment.path('txnindex')} lacks {len(missing)} aborted transactions: added from the log")
    index.add(missing)


def _has_aborts(batches: BatchIndex) -> bool:
    kinds = zip(batches.attributes, batches.control_type, strict=True)
    return any(attributes & ATTRIBUTE_CONTROL and kind == _ABORT for attributes, kind in kinds)


def load_producers(log: PartitionLog, table: ProducerTable, end_offset: int) -> int:
    """Load the newest snapshot at or below ``end_offset`` that holds; returns its offset, or where the log
    begins when there is none. One that does not hold is removed.

    Nobody is expired yet: who was idle then may have written since, and is known by what was before."""
    for offset in reversed([each for each in log.snapshots.offsets if each <= end_offset]):
        try:
            table.load(log.snapshots.read(offset), now_ms=log.loaded_ms, expiration_ms=_NEVER)
            return offset
        except CorruptFileError as error:
            log.note(f"{log.snapshots.path(offset)} is damaged and goes: {error.reason}")
            log.snapshots.remove(offset)
    table.clear()
    return log.segments[0].base_offset


def replay(
    log: PartitionLog, table: ProducerTable, start: int, end: int, completed: list[CompletedTxn]
) -> None:
    """Take the batches in [start, end) into ``table``, those below the log start too as long as they are there:
    what is known of producers does not depend on when the log was opened."""
    for number in range(log.segment_of(start), len(log.segments)):
        segment = log.segments[number]
        if segment.base_offset >= end:
            return
        place = segment.find(start) if segment.base_offset < start else (0, 0, 0)
        if place is None:
            continue
        for batches in segment.windows(place[0]):
            count = batches.find(end)
            if count < len(batches):
                batches.truncate(count, "end", "")
            table.replay(batches, start, completed)

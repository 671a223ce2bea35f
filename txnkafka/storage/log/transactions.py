"""Loads the aborted transactions of a segment: from its ``.txnindex``, or from the log if that file is not
reliable.

The file has no checksum and no length, and Kafka creates no file for a segment without aborts. So a file that
is missing, empty or cut between two entries looks like the file of a segment with fewer aborts, and Kafka
then serves aborted data. Here, a file is trusted up to its last entry; the headers after that entry's marker
are scanned once, before the first use, for ABORT markers missing in the file.

A read needs the markers of the transactions with data in its range, which may be in any later segment. A
transaction that ends after the base of a segment was open at that base, and the producer snapshot there lists
it. So from the first base on at which none of these transactions was open, files are not compared with the
log. They are still read, as in Kafka: without snapshots, Kafka writes new ones that lack the transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka._core.producer_table import ProducerTable
from txnkafka.errors import CorruptFileError, CorruptRecordError
from txnkafka.record.batch_header import ATTRIBUTE_CONTROL, ATTRIBUTE_DELETE_HORIZON, CONTROL_ABORT
from txnkafka.storage.formats.limits import TXN_INDEX_LIMIT
from txnkafka.storage.formats.txn_index import parse_txn_index
from txnkafka.storage.log.log_segment import OUT_OF_ORDER
from txnkafka.storage.log.producer_history import load_newest, load_producers, replay
from txnkafka.storage.log.txn_index_file import TxnIndexFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from txnkafka._core.scan import BatchIndex
    from txnkafka.model import CompletedTxn
    from txnkafka.storage.formats.txn_index import AbortedTxn
    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.log.producer_history import WithHistory

_NONE_OPEN = (1 << 63) - 1


def transactions_of(log: WithHistory, segment: LogSegment) -> TxnIndexFile:
    """Return the aborted transactions whose markers are in a segment. Raises CorruptRecordError and
    OSError."""
    if segment.txn_index is None:
        index = _from_file(log, segment)
        if any(_aborts(batches) for batches in _behind(segment, index)):
            _add_from_log(log, segment, index)
        segment.txn_index = index
    return segment.txn_index


def have_ended(log: WithHistory, segment: LogSegment, offset: int) -> bool:
    """Return True if all transactions that began below ``offset`` had ended at the base of a segment, by the
    snapshot there; False without a sound snapshot."""
    base = segment.base_offset
    if offset > base:
        return False
    if segment.oldest_at_base is None:
        table = ProducerTable()
        known = [base] if log.snapshots.newest(base) == base else []
        try:
            if load_newest(table, log.snapshots, known, log.loaded_ms).offset is None:
                return False
        except OSError:  # only a short cut: code that depends on the snapshot raises the error
            return False
        first = table.first_undecided_offset
        segment.oldest_at_base = _NONE_OPEN if first is None else first
    return offset <= segment.oldest_at_base


def listed_transactions(log: WithHistory, segment: LogSegment) -> TxnIndexFile:
    """Return the aborted transactions in a segment's file, which may be incomplete; for a damaged file, the
    result of ``transactions_of``. Raises CorruptRecordError and OSError."""
    if segment.listed_txns is None:
        entries, fault = _read_file(log, segment)
        if fault:
            return transactions_of(log, segment)
        segment.listed_txns = TxnIndexFile(segment.base_offset, entries)
    return segment.listed_txns


def _from_file(log: WithHistory, segment: LogSegment) -> TxnIndexFile:
    listed, segment.listed_txns = segment.listed_txns, None
    if listed is not None:
        return listed
    entries, fault = _read_file(log, segment)
    if not fault:
        return TxnIndexFile(segment.base_offset, entries)
    log.note(segment.path("txnindex"), "rebuilt from the log", f"it is damaged, {fault}")
    index = TxnIndexFile(segment.base_offset)
    index.replaces_file()
    return index


def _read_file(log: WithHistory, segment: LogSegment) -> tuple[list[AbortedTxn], str]:
    """Return the entries of the file, none for a missing file, and the reason not to trust them."""
    entries: list[AbortedTxn] = []
    if not segment.files.exists("txnindex"):
        return entries, ""
    try:
        content = segment.files.read("txnindex", TXN_INDEX_LIMIT)
        entries, problems = parse_txn_index(content, segment.base_offset)
        fault = problems[0].text if problems else ""
    except CorruptFileError as error:
        fault = error.reason
    if any(entry.first_offset == entry.last_offset for entry in entries):
        fault = "an aborted transaction has no data"  # zeros look like this entry
    if entries and entries[-1].last_offset >= log.log_end_offset:
        fault = "an aborted transaction ends after the log end"  # no later entry could follow it
    return entries, fault


def _behind(segment: LogSegment, index: TxnIndexFile) -> Iterator[BatchIndex]:
    """Yield the headers of the batches after the marker of the last entry."""
    place = segment.find(index.entries[-1].last_offset + 1) if index.entries else (0, 0, 0)
    return iter(()) if place is None else segment.windows(place[0])


def _add_from_log(log: WithHistory, segment: LogSegment, index: TxnIndexFile) -> None:
    """Add the aborted transactions with markers after the last entry. Ignores markers of transactions without
    data in this log, or whose data the cleaner has removed."""
    known = index.entries[-1].last_offset if index.entries else segment.base_offset - 1
    missing = [aborted for aborted in _aborted_in(log, segment) if aborted.last_offset > known]
    if missing and index.is_saved:
        why = f"aborted transactions are missing, {len(missing)} of them"
        log.note(segment.path("txnindex"), "completed from the log", why)
    add_aborted(segment, index, missing)


def add_aborted(segment: LogSegment, index: TxnIndexFile, completed: list[CompletedTxn]) -> None:
    """Add the aborted transactions among those that end in a segment. Raises CorruptRecordError if their
    markers are not in offset order."""
    try:
        index.add(completed)
    except ValueError as error:
        raise CorruptRecordError(f"{error}: {OUT_OF_ORDER}", file=segment.path("log")) from None


def _aborted_in(log: WithHistory, segment: LogSegment) -> list[CompletedTxn]:
    """Return the transactions that the segment's markers abort, computed from the log."""
    table = ProducerTable()
    completed: list[CompletedTxn] = []
    start = load_producers(log, table, segment.base_offset)
    replay(log.segments, table, start, segment.base_offset, completed)
    completed.clear()
    wanted: set[int] = set()
    for batches in segment.windows():
        table.replay(batches, segment.base_offset, completed)
        wanted.update(_aborts(batches))
    return [aborted for aborted in completed if aborted.last_offset in wanted]


def check_transactions(log: WithHistory, segment: LogSegment) -> None:
    """Compare the entries of a segment's file with the markers in its log; if an entry has no marker, or an
    entry is missing, rebuild all entries. Raises CorruptRecordError and OSError."""
    index = transactions_of(log, segment)
    markers = {
        (producer_id, offset)
        for batches in segment.windows()
        for producer_id, offset, attributes, kind in zip(
            batches.producer_id, batches.base_offset, batches.attributes, batches.control_type, strict=True
        )
        if attributes & ATTRIBUTE_CONTROL and kind == CONTROL_ABORT
    }
    listed = {(entry.producer_id, entry.last_offset): entry for entry in index.entries}
    aborted = _aborted_in(log, segment) if markers else []
    if listed.keys() <= markers and all(_covers(listed, transaction) for transaction in aborted):
        return
    log.note(segment.path("txnindex"), "rebuilt from the log", "it contradicts the log")
    segment.txn_index = TxnIndexFile(segment.base_offset)
    segment.txn_index.replaces_file()
    add_aborted(segment, segment.txn_index, aborted)


def _covers(listed: Mapping[tuple[int, int], AbortedTxn], aborted: CompletedTxn) -> bool:
    entry = listed.get((aborted.producer_id, aborted.last_offset))
    return entry is not None and entry.first_offset <= aborted.first_offset


def _aborts(batches: BatchIndex) -> list[int]:
    """Return the offsets of ABORT markers without a delete horizon. Compaction sets a delete horizon once no
    data of the transaction is left, regardless of snapshots."""
    columns = zip(batches.base_offset, batches.attributes, batches.control_type, strict=True)
    kind = ATTRIBUTE_CONTROL | ATTRIBUTE_DELETE_HORIZON
    return [
        offset
        for offset, attributes, control_type in columns
        if attributes & kind == ATTRIBUTE_CONTROL and control_type == CONTROL_ABORT
    ]

"""Surveys batch headers before reading: transactions and their outcomes, damage visible in headers, and
places to cut.

A transaction's outcome is recorded after its data, possibly segments later, so the survey continues beyond
the requested offsets until every transaction with data in them is decided, or the log ends.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple

from txnkafka._core.read_committed import TransactionRange, TransactionScan
from txnkafka.logdir.finding import Finding
from txnkafka.logdir.header_damage import header_damage
from txnkafka.logdir.header_pass import SegmentHeaders, header_pass, segment_containing
from txnkafka.logdir.header_point import HeaderPoint, PassMark, resumed_scan, segment_of
from txnkafka.logdir.plan import HiddenRange, ReadUnit, SegmentMap, cuts_of, read_units
from txnkafka.model import TopicPartition
from txnkafka.shown import counted, offset_range
from txnkafka.storage.formats import AbortedTxn, iter_txn_index
from txnkafka.storage.formats.limits import TXN_INDEX_LIMIT
from txnkafka.storage.formats.segment_reader import SegmentReader

NEVER = (1 << 63) - 1
# after a clean shutdown, a broker without this file serves aborted records
_REMEDY = "delete the file, then run 'txnkafka repair' before the broker starts: it rebuilds it from the log"
LISTED_PER_FILE = 100  # contradictions; unlisted ones also hide their records


class Survey(NamedTuple):
    """The result of a survey. ``transactions``: ended ones, in the order of their markers, then open ones;
    ``index_only``: aborted transactions in a ``.txnindex`` that the log contradicts."""

    segments: list[SegmentMap]
    transactions: list[TransactionRange]
    index_only: list[AbortedTxn]
    findings: list[Finding]

    def hidden(self) -> list[HiddenRange]:
        """Return the ranges hidden from a read_committed reader: all transactions not known to be
        committed."""
        ranges = [txn for txn in self.transactions if txn.outcome != "committed"]
        hidden = [HiddenRange(txn.producer_id, txn.first_offset, txn.last_offset) for txn in ranges]
        return hidden + [
            HiddenRange(txn.producer_id, txn.first_offset, txn.last_offset) for txn in self.index_only
        ]

    def units(
        self, topic_partition: TopicPartition, start_offset: int, end_offset: int, *, read_committed: bool
    ) -> list[ReadUnit]:
        """Return the units that read [start_offset, end_offset)."""
        hidden = self.hidden() if read_committed else []
        return read_units(
            *topic_partition, self.segments, hidden, start_offset=start_offset, end_offset=end_offset
        )

    def _path_of(self, offset: int) -> str:
        """Return the path of the segment that contains an offset; at least one segment must exist."""
        paths = (segment.path for segment in self.segments if offset < segment.limit)
        return next(paths, self.segments[-1].path)

    def held_back(self, end_offset: int, start_offset: int = 0) -> list[Finding]:
        """Return findings about transactions that begin in [start_offset, end_offset) and whose records a
        read_committed reader misses though they were not aborted."""
        return [
            _held_back(txn, self._path_of(txn.first_offset))
            for txn in self.transactions
            if txn.outcome in ("undecided", "open") and start_offset <= txn.first_offset < end_offset
        ]


def survey(
    segments: list[SegmentReader],
    start_offset: int,
    end_offset: int,
    unit_bytes: int,
    *,
    with_txn_index: bool = True,
    begin: HeaderPoint | None = None,
    mark: PassMark | None = None,
) -> Survey:
    """Survey [start_offset, end_offset) of a log; ``unit_bytes`` is the distance between cuts.

    Without ``with_txn_index``, only the log is read, which suffices for read_uncommitted. ``begin`` is the
    point at ``start_offset`` where an earlier survey set its ``mark``; this survey sets ``mark`` at
    ``end_offset``."""
    result = Survey([], [], [], [])
    if not segments:
        return result
    if begin is None:
        first = segment_containing(segments, start_offset)
        scan = TransactionScan(segments[first].base_offset)
    else:
        first, scan = segment_of(segments, begin.segment), resumed_scan(begin)
    surveyed: list[SegmentReader] = []
    for headers in header_pass(segments, first, scan, begin, mark):
        if headers.hole:
            result.findings.append(_hole(headers))
        cuts = cuts_of(headers.index, headers.next_offset, unit_bytes, headers.misplaced)
        part = SegmentMap(headers.segment.path, cuts, headers.limit, header_damage(headers))
        if result.segments and result.segments[-1].path == part.path:
            result.segments[-1] = result.segments[-1].joined(part)
        else:
            result.segments.append(part)
            surveyed.append(headers.segment)
        if scan.next_offset >= end_offset and not _waiting(scan, end_offset):
            break
    result.transactions.extend(scan.ended)
    result.transactions.extend(scan.open_transactions())
    if with_txn_index:
        _contradictions(surveyed, scan.ended, result)
    return result


def transactions_between(
    segments: list[SegmentReader], start_offset: int, end_offset: int
) -> Iterator[TransactionRange]:
    """Yield the transactions with records in [start_offset, end_offset): ended ones in the order of their
    markers, then open ones. Keeps only the transactions that end in one segment in memory.

    The counts of a transaction cover its batches from the segment that contains ``start_offset`` on."""
    if not segments:
        return
    first = segment_containing(segments, start_offset)
    scan = TransactionScan(segments[first].base_offset)
    for headers in header_pass(segments, first, scan):
        ended = _with_beginnings(scan.ended, _txn_index(headers.segment) if scan.ended else ())
        scan.ended.clear()
        yield from (txn for txn in ended if _lies_in(txn, start_offset, end_offset))
        if scan.next_offset >= end_offset and not _waiting(scan, end_offset):
            break
    yield from (txn for txn in scan.open_transactions() if _lies_in(txn, start_offset, end_offset))


def _lies_in(transaction: TransactionRange, start_offset: int, end_offset: int) -> bool:
    return transaction.first_offset < end_offset and transaction.last_offset >= start_offset


def _with_beginnings(ended: list[TransactionRange], named: Iterable[AbortedTxn]) -> list[TransactionRange]:
    """Return the transactions with their true first offsets, which only the index has if the first records
    are deleted or before the first segment."""
    keys = {(txn.producer_id, txn.last_offset) for txn in ended}
    first_offsets = {
        key: entry.first_offset for entry in named if (key := (entry.producer_id, entry.last_offset)) in keys
    }
    found = []
    for txn in ended:
        first = first_offsets.get((txn.producer_id, txn.last_offset), txn.first_offset)
        found.append(txn._replace(first_offset=first) if first < txn.first_offset else txn)
    return found


def _waiting(scan: TransactionScan, end_offset: int) -> bool:
    return any(txn.first_offset < end_offset for txn in scan.open_transactions())


def _txn_index(segment: SegmentReader) -> Iterator[AbortedTxn]:
    """Yield the sound entries of a segment's index."""
    path = segment.files.get("txnindex")
    if path is None:
        return iter(())
    try:
        content = segment.file_system.read(path, TXN_INDEX_LIMIT)
    except OSError:
        return iter(())
    return (entry for _, entry in iter_txn_index(content, segment.base_offset))


def _contradictions(segments: list[SegmentReader], ended: list[TransactionRange], result: Survey) -> None:
    """Add the index entries that contradict the log to ``result``. Kafka trusts the index; this reader trusts
    it only for hiding: records in an entry are hidden even if the log contradicts the entry. An entry
    contradicts the log if its ABORT marker does not exist, or if it begins before the transaction that the
    marker ended: a consumer would drop the records between."""
    first_offsets = {
        (txn.producer_id, txn.last_offset): txn.first_offset for txn in ended if txn.outcome == "aborted"
    }
    committed: _Committed | None = None
    for segment in segments:
        count = 0
        for entry in _txn_index(segment):
            if entry.first_offset >= first_offsets.get((entry.producer_id, entry.last_offset), NEVER):
                continue
            committed = committed or _Committed(ended)
            contradicted = committed.overlapping(entry)
            if contradicted is not None:
                count += 1
                result.index_only.append(entry)
                if count <= LISTED_PER_FILE:
                    result.findings.append(_contradiction(segment.files["txnindex"], entry, contradicted))
        if count > LISTED_PER_FILE:
            result.findings.append(_more_contradictions(segment.files["txnindex"], count - LISTED_PER_FILE))


class _Committed:
    """The committed transactions of each producer, searchable by offsets."""

    def __init__(self, ended: Iterable[TransactionRange]) -> None:
        found: defaultdict[int, list[TransactionRange]] = defaultdict(list)
        for txn in ended:
            if txn.outcome == "committed":
                found[txn.producer_id].append(txn)
        self._by_producer = {}
        for producer_id, transactions in found.items():
            transactions.sort(key=attrgetter("first_offset"))
            # the largest last offset so far: ranges may overlap in a damaged log
            ends = list(accumulate((txn.last_offset for txn in transactions), max))
            self._by_producer[producer_id] = transactions, ends

    def overlapping(self, entry: AbortedTxn) -> TransactionRange | None:
        """Return the first transaction of the entry's producer that overlaps the entry, or None."""
        transactions, ends = self._by_producer.get(entry.producer_id, ((), ()))
        first = bisect_left(ends, entry.first_offset)
        if first == len(ends) or transactions[first].first_offset > entry.last_offset:
            return None
        return transactions[first]


def _more_contradictions(path: str, count: int) -> Finding:
    return Finding(
        path,
        None,
        "error",
        "txnindex-contradicts-log",
        f"{count} more entries of the index contradict COMMIT markers of the log, and are hidden too",
        _REMEDY,
    )


def _contradiction(path: str, entry: AbortedTxn, committed: TransactionRange) -> Finding:
    return Finding(
        path,
        None,
        "error",
        "txnindex-contradicts-log",
        f"the index says that producer {entry.producer_id} aborted "
        f"{offset_range(entry.first_offset, entry.last_offset)}, "
        f"but the log has a COMMIT marker for {committed.first_offset} to {committed.last_offset}; "
        "hidden from read_committed, as a broker would hide it",
        _REMEDY,
    )


def _hole(headers: SegmentHeaders) -> Finding:
    return Finding(
        headers.segment.path,
        None,
        "error",
        "missing-segment",
        f"offsets up to {headers.segment.base_offset - 1} are missing: the segment before this one is gone",
        "restore the missing segment from a replica or a backup",
    )


def _held_back(transaction: TransactionRange, path: str) -> Finding:
    return Finding(
        path,
        None,
        "error",
        "undecided-transaction",
        f"the end marker of producer {transaction.producer_id}'s transaction at "
        f"{offset_range(transaction.first_offset, transaction.last_offset)} is missing or damaged: "
        f"held back from read_committed: {counted(transaction.records, 'record')}",
        "restore the missing or damaged segment, or read these offsets with read_uncommitted",
    )

"""The pass over batch headers that comes before reading: transactions and their outcome, damage that
headers show, places to cut.

A transaction's outcome stands behind its data, possibly segments later, so the survey goes on beyond the
wanted offsets until every transaction with data among them is decided, or the log ends.
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
from txnkafka.logdir.header_pass import SegmentHeaders, header_pass, segment_containing
from txnkafka.logdir.header_point import HeaderPoint, PassMark, resumed_scan, segment_of
from txnkafka.logdir.plan import DamagedBatch, HiddenRange, ReadUnit, SegmentMap, cuts_of, read_units
from txnkafka.model import TopicPartition
from txnkafka.storage.formats import AbortedTxn, iter_txn_index
from txnkafka.storage.formats.limits import TXN_INDEX_LIMIT
from txnkafka.storage.formats.segment_reader import SegmentReader

__all__ = ["Survey", "survey", "transactions_between"]

NEVER = (1 << 63) - 1
# a broker that is started without the file after a clean stop shows what was aborted
_REMEDY = "delete the file, then run 'txnkafka repair' before the broker starts: it rebuilds it from the log"
LISTED_PER_FILE = 100  # contradictions; what they hide is hidden, listed or not


class Survey(NamedTuple):
    """``transactions`` ended in the order of their markers, then the open ones; ``index_only`` are
    aborted transactions that a ``.txnindex`` names and the log contradicts."""

    segments: list[SegmentMap]
    transactions: list[TransactionRange]
    index_only: list[AbortedTxn]
    findings: list[Finding]

    def hidden(self) -> list[HiddenRange]:
        """What a read_committed reader does not see: everything transactional that is not known to be
        committed."""
        ranges = [each for each in self.transactions if each.outcome != "committed"]
        hidden = [HiddenRange(each.producer_id, each.first_offset, each.last_offset) for each in ranges]
        return hidden + [
            HiddenRange(each.producer_id, each.first_offset, each.last_offset) for each in self.index_only
        ]

    def units(
        self, topic_partition: TopicPartition, start_offset: int, end_offset: int, *, read_committed: bool
    ) -> list[ReadUnit]:
        """The plan that reads [start_offset, end_offset)."""
        hidden = self.hidden() if read_committed else []
        return read_units(
            *topic_partition, self.segments, hidden, start_offset=start_offset, end_offset=end_offset
        )

    def held_back(self, end_offset: int, start_offset: int = 0) -> list[Finding]:
        """Transactions that begin in [start_offset, end_offset) whose records a read_committed reader misses
        though they were not aborted."""
        return [
            _held_back(each)
            for each in self.transactions
            if each.outcome in ("undecided", "open") and start_offset <= each.first_offset < end_offset
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
    """Survey [start_offset, end_offset) of a log; ``unit_bytes`` is how far apart cuts should be.

    Without the ``.txnindex`` files only the log is asked, which is all that read_uncommitted needs. ``begin``
    is where an earlier survey set its ``mark``, at ``start_offset``; ``mark`` is set at ``end_offset``.
    """
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
        part = SegmentMap(headers.segment.path, cuts, headers.limit, _damage(headers))
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
    """The transactions with records in [start_offset, end_offset): those that ended in the order of their
    markers, then open ones. Only those that end in one segment are in memory at once.

    What is counted of one lies at or behind the segment that contains ``start_offset``.
    """
    if not segments:
        return
    first = segment_containing(segments, start_offset)
    scan = TransactionScan(segments[first].base_offset)
    for headers in header_pass(segments, first, scan):
        ended = _with_beginnings(scan.ended, _txn_index(headers.segment) if scan.ended else ())
        scan.ended.clear()
        yield from (each for each in ended if _lies_in(each, start_offset, end_offset))
        if scan.next_offset >= end_offset and not _waiting(scan, end_offset):
            break
    yield from (each for each in scan.open_transactions() if _lies_in(each, start_offset, end_offset))


def _lies_in(transaction: TransactionRange, start_offset: int, end_offset: int) -> bool:
    return transaction.first_offset < end_offset and transaction.last_offset >= start_offset


def _with_beginnings(
    ended: list[TransactionRange], named: Iterable[AbortedTxn]
) -> list[TransactionRange]:
    """Each from where it really began: that may lie before the first segment, or be deleted, and then only
    the index knows."""
    keys = {(each.producer_id, each.last_offset) for each in ended}
    first_offsets = {
        key: entry.first_offset
        for entry in named
        if (key := (entry.producer_id, entry.last_offset)) in keys
    }
    found = []
    for each in ended:
        first = first_offsets.get((each.producer_id, each.last_offset), each.first_offset)
        found.append(each._replace(first_offset=first) if first < each.first_offset else each)
    return found


def _waiting(scan: TransactionScan, end_offset: int) -> bool:
    return any(each.first_offset < end_offset for each in scan.open_transactions())


def _damage(headers: SegmentHeaders) -> list[DamagedBatch]:
    index = headers.index
    reason = "the batch's offsets do not fit between those of its neighbours: its base offset is damaged"
    found = [
        DamagedBatch(index.position[i], index.size[i], headers.end_before(i), headers.begin_after(i), reason)
        for i in headers.misplaced
    ]
    if index.stop != "end":
        # The last segment was cut to whole batches before, so this one is not the last.
        reason = f"the segment is damaged from here on: {index.stop_reason}"
        end = headers.end_before(len(index))
        found.append(DamagedBatch(index.end_position, 0, end, headers.limit, reason))
    return found


def _txn_index(segment: SegmentReader) -> Iterator[AbortedTxn]:
    """The sound entries of a segment's index."""
    path = segment.files.get("txnindex")
    if path is None:
        return iter(())
    try:
        content = segment.file_system.read(path, TXN_INDEX_LIMIT)
    except OSError:
        return iter(())
    return (entry for _, entry in iter_txn_index(content, segment.base_offset))


def _contradictions(segments: list[SegmentReader], ended: list[TransactionRange], result: Survey) -> None:
    """Kafka believes the index. So do we, in one direction: what it calls aborted is hidden even if the
    log contradicts. An entry contradicts when the log has no such ABORT marker, or when it begins before
    the transaction that the marker ended: a consumer would drop what lies between."""
    first_offsets = {
        (each.producer_id, each.last_offset): each.first_offset for each in ended if each.outcome == "aborted"
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
    """The committed transactions of each producer, to be searched by offsets."""

    def __init__(self, ended: Iterable[TransactionRange]) -> None:
        found: defaultdict[int, list[TransactionRange]] = defaultdict(list)
        for each in ended:
            if each.outcome == "committed":
                found[each.producer_id].append(each)
        self._by_producer = {}
        for producer_id, transactions in found.items():
            transactions.sort(key=attrgetter("first_offset"))
            # the largest last offset so far: in a damaged log they may overlap
            ends = list(accumulate((each.last_offset for each in transactions), max))
            self._by_producer[producer_id] = transactions, ends

    def overlapping(self, entry: AbortedTxn) -> TransactionRange | None:
        """The first of the entry's producer that has offsets in common with it."""
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
        f"offsets {entry.first_offset} to {entry.last_offset}, "
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


def _held_back(transaction: TransactionRange) -> Finding:
    return Finding(
        "",
        None,
        "error",
        "undecided-transaction",
        f"the end marker of producer {transaction.producer_id}'s transaction at offsets "
        f"{transaction.first_offset} to {transaction.last_offset} is missing: "
        f"its {transaction.records} records are held back from read_committed",
        "restore the missing segment, or read these offsets with read_uncommitted",
    )

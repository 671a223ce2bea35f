"""The pass over batch headers that comes before reading: transactions and their outcome, damage that
headers show, places to cut.

A transaction's outcome stands behind its data, possibly segments later, so the survey goes on beyond the
wanted offsets until every transaction with data among them is decided, or the log ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from txnkafka._core.read_committed import TransactionRange, TransactionScan
from txnkafka._core.scan import BatchIndex
from txnkafka.logdir.finding import Finding
from txnkafka.logdir.order import misplaced_batches
from txnkafka.logdir.plan import DamagedBatch, HiddenRange, ReadUnit, SegmentMap, cuts_of, read_units
from txnkafka.logdir.segment import MAX_OPEN_SEGMENTS, Segment
from txnkafka.model import TopicPartition
from txnkafka.storage import AbortedTxn, parse_txn_index

__all__ = ["Survey", "is_hole", "segment_containing", "survey"]

TXN_INDEX_LIMIT = 1 << 30


class Survey(NamedTuple):
    """``transactions`` ended in the order of their markers, then the open ones; ``index_only`` are aborted
    transactions that a ``.txnindex`` names and the log contradicts."""

    segments: list[SegmentMap]
    transactions: list[TransactionRange]
    index_only: list[AbortedTxn]
    findings: list[Finding]

    def hidden(self) -> list[HiddenRange]:
        """What a read_committed reader does not see: everything transactional that is not known to be
        committed."""
        return [
            HiddenRange(each.producer_id, each.first_offset, each.last_offset)
            for each in self.transactions
            if each.outcome != "committed"
        ] + [HiddenRange(each.producer_id, each.first_offset, each.last_offset) for each in self.index_only]

    def units(
        self, topic_partition: TopicPartition, start_offset: int, end_offset: int, *, read_committed: bool
    ) -> list[ReadUnit]:
        """The plan that reads [start_offset, end_offset)."""
        hidden = self.hidden() if read_committed else []
        return read_units(
            *topic_partition, self.segments, hidden, start_offset=start_offset, end_offset=end_offset
        )


def segment_containing(segments: list[Segment], offset: int) -> int:
    """Number of the last segment whose base offset is not above ``offset``."""
    return max((i for i, segment in enumerate(segments) if segment.base_offset <= offset), default=0)


def survey(segments: list[Segment], start_offset: int, end_offset: int, unit_bytes: int) -> Survey:
    """Survey [start_offset, end_offset) of a log; ``unit_bytes`` is how far apart cuts should be."""
    result = Survey([], [], [], [])
    if not segments:
        return result
    first = segment_containing(segments, start_offset)
    scan = TransactionScan(segments[first].base_offset)
    previous: BatchIndex | None = None
    for i in range(first, len(segments)):
        segment = segments[i]
        if scan.next_offset >= end_offset and not _waiting(scan, end_offset):
            break
        if previous is not None and is_hole(previous, scan.next_offset, segment.base_offset):
            scan.hole()
            result.findings.append(_hole(segment, scan.next_offset))
        expected = max(scan.next_offset, segment.base_offset)
        index = segment.scan()
        misplaced = misplaced_batches(index, expected)
        damage = _damage(index, misplaced, last=i == len(segments) - 1)
        next_base = segments[i + 1].base_offset if i + 1 < len(segments) else 1 << 62
        result.segments.append(
            SegmentMap(segment.path, cuts_of(index, expected, unit_bytes, misplaced), next_base, damage)
        )
        _feed(scan, index, misplaced)
        _compare_txn_index(segment, scan, result)
        if len(segments) > MAX_OPEN_SEGMENTS:
            segment.close()
        previous = index
    result.transactions.extend(scan.ended)
    result.transactions.extend(scan.open_transactions())
    held_back = [
        each
        for each in result.transactions
        if each.outcome in ("undecided", "open") and each.first_offset < end_offset
    ]
    result.findings.extend(_undecided(each) for each in held_back)
    return result


def _waiting(scan: TransactionScan, end_offset: int) -> bool:
    return any(each.first_offset < end_offset for each in scan.open_transactions())


def _feed(scan: TransactionScan, index: BatchIndex, misplaced: list[int]) -> None:
    start = 0
    for i in (*misplaced, len(index)):
        scan.feed(index, start, i)
        start = i + 1


def is_hole(index: BatchIndex, next_offset: int, base_offset: int) -> bool:
    """True when segments are missing between ``index`` and a segment at ``base_offset``.

    The cleaner leaves gaps too, but then the segment before the gap has gaps itself: cleaned segments keep
    their base offsets.
    """
    if base_offset <= next_offset or not len(index):
        return False
    records = sum(index.record_count)
    return bool(records == next_offset - index.base_offset[0])


def _damage(index: BatchIndex, misplaced: Iterable[int], *, last: bool) -> list[DamagedBatch]:
    reason = "the batch's offsets do not fit between those of its neighbours: its base offset is damaged"
    found = [DamagedBatch(index.position[i], index.size[i], index.base_offset[i], reason) for i in misplaced]
    if index.stop != "end" and not last:
        end = index.last_offset[len(index) - 1] + 1 if len(index) else -1
        found.append(
            DamagedBatch(
                index.end_position, 0, end, f"the segment is damaged from here on: {index.stop_reason}"
            )
        )
    return found


def _compare_txn_index(segment: Segment, scan: TransactionScan, result: Survey) -> None:
    """Kafka believes the index. So do we, in one direction: what it calls aborted is hidden even if the
    log contradicts."""
    path = segment.files.get("txnindex")
    if path is None:
        return
    try:
        entries, _ = parse_txn_index(segment.file_system.read(path, TXN_INDEX_LIMIT), segment.base_offset)
    except OSError:
        return
    committed = [each for each in scan.ended if each.outcome == "committed"] if entries else []
    for entry in entries:
        for each in committed:
            if (
                each.producer_id == entry.producer_id
                and each.first_offset <= entry.last_offset
                and entry.first_offset <= each.last_offset
            ):
                result.index_only.append(entry)
                result.findings.append(_contradiction(path, entry, each))
                break


def _contradiction(path: str, entry: AbortedTxn, committed: TransactionRange) -> Finding:
    return Finding(
        path, None, "error", "txnindex-contradicts-log",
        f"the index says that producer {entry.producer_id} aborted "
        f"offsets {entry.first_offset} to {entry.last_offset}, "
        f"but the log has a COMMIT marker for {committed.first_offset} to {committed.last_offset}; "
        "hidden from read_committed, as a broker would hide it",
        "delete the .txnindex and let the broker rebuild it, or read without it",
    )  # fmt: skip


def _hole(segment: Segment, next_offset: int) -> Finding:
    return Finding(
        segment.path, None, "error", "missing-segment",
        f"offsets {next_offset} to {segment.base_offset - 1} are missing: "
        "the segment before this one is gone",
        "restore the missing segment from a replica or a backup",
    )  # fmt: skip


def _undecided(transaction: TransactionRange) -> Finding:
    return Finding(
        "", None, "error", "undecided-transaction",
        f"the end marker of producer {transaction.producer_id}'s transaction at offsets "
        f"{transaction.first_offset} to {transaction.last_offset} is missing: "
        f"its {transaction.records} records are held back from read_committed",
        "restore the missing segment, or read these offsets with read_uncommitted",
    )  # fmt: skip

"""Finds the transactions open at the end of a log, and the resulting last stable offset.

The newest producer snapshot has the transactions open at its offset; later headers show the changes since.
Without a snapshot, the headers suffice. Only a snapshot has an open transaction whose records were deleted
(DeleteRecords, retention): it keeps the last stable offset at the log start.
Source: ProducerStateManager.firstUnstableOffset, UnifiedLog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from txnkafka._core.read_committed import TransactionRange, TransactionScan
from txnkafka.logdir.header_pass import header_pass, segment_containing
from txnkafka.logdir.header_point import HeaderPoint, PassMark, resumed_scan, segment_of
from txnkafka.model import ProducerStateEntry
from txnkafka.storage.formats.segment_reader import SegmentReader

NEVER = (1 << 63) - 1


class Undecided(NamedTuple):
    """The open transactions, oldest first, and the first unstable offset (the largest offset if none is
    open). ``seen`` returns the point where a later scan of the log continues; None for an empty log."""

    open_transactions: list[TransactionRange]
    first_unstable_offset: int
    seen: Callable[[], SeenHeaders | None]


class SeenHeaders(NamedTuple):
    """The point at the end of a pass, and its start: the offset of the snapshot, its producers with open
    transactions, and their last markers after it."""

    point: HeaderPoint
    snapshot_offset: int | None
    known: tuple[ProducerStateEntry, ...]
    markers: dict[int, int]


def find_undecided(
    segments: list[SegmentReader],
    snapshot: tuple[int, Iterable[ProducerStateEntry]] | None,
    log_start_offset: int,
    seen: SeenHeaders | None = None,
) -> Undecided:
    """Find the open transactions at the end of ``segments``. Headers ``seen`` by an earlier pass are not
    scanned again, unless a newer snapshot exists: then few headers follow it."""
    snapshot_offset, entries = snapshot if snapshot is not None else (0, ())
    known = {entry.producer_id: entry for entry in entries if entry.has_open_transaction}
    start = max(
        log_start_offset,
        min((entry.current_txn_first_offset for entry in known.values()), default=snapshot_offset),
    )
    scan, markers = TransactionScan(start), {}
    named = None if snapshot is None else snapshot_offset
    if seen is not None and (seen.snapshot_offset, seen.known) == (named, tuple(known.values())):
        scan, markers = resumed_scan(seen.point), seen.markers
        first, begin = segment_of(segments, seen.point.segment), seen.point
    else:
        first, begin = segment_containing(segments, start), None
        if snapshot is None and segments:
            # a running broker keeps open transactions after deleting their records; headers show the rest
            scan = TransactionScan(segments[first].base_offset)
    mark = PassMark(begin=begin)
    for _ in header_pass(segments, first, scan, begin, mark):
        scan.ended.clear()  # a log may have millions
    markers = {key: offset for key, offset in (markers | scan.markers).items() if key in known}
    found = _open_transactions(scan, known, markers, snapshot_offset, log_start_offset)

    def seen_now() -> SeenHeaders | None:
        point = mark.point
        return None if point is None else SeenHeaders(point, named, tuple(known.values()), markers)

    if not found:
        return Undecided([], NEVER, seen_now)
    unstable = _first_unstable(segments, found[0].first_offset, log_start_offset)
    return Undecided(found, unstable, seen_now)


def _open_transactions(
    scan: TransactionScan,
    known: dict[int, ProducerStateEntry],
    markers: dict[int, int],
    snapshot_offset: int,
    log_start_offset: int,
) -> list[TransactionRange]:
    still_open = {
        producer_id: max(entry.current_txn_first_offset, log_start_offset)
        for producer_id, entry in known.items()
        if markers.get(producer_id, -1) < snapshot_offset
    }
    found = [
        # if its first records are deleted, only the snapshot has its true first offset
        txn._replace(first_offset=still_open.pop(txn.producer_id, max(txn.first_offset, log_start_offset)))
        for txn in scan.open_transactions()
        if txn.first_offset >= snapshot_offset or txn.producer_id in known
    ]
    found += [_only_in_snapshot(known[producer_id], first) for producer_id, first in still_open.items()]
    return sorted(found, key=lambda txn: txn.first_offset)


def _only_in_snapshot(entry: ProducerStateEntry, first_offset: int) -> TransactionRange:
    return TransactionRange(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        first_offset=first_offset,
        last_offset=first_offset,
        first_timestamp=-1,
        last_timestamp=entry.last_timestamp,
        batches=0,
        records=0,
        bytes=0,
        outcome="open",
        last_data_offset=first_offset,
        marker_timestamp=-1,
        coordinator_epoch=-1,
    )


def _first_unstable(segments: list[SegmentReader], offset: int, log_start_offset: int) -> int:
    """Return the first unstable offset; at the log start, the base offset of the batch that contains it, as
    in Kafka."""
    if offset > log_start_offset or not segments:
        return offset
    segment = segments[segment_containing(segments, offset)]
    # usually the batch is at the segment's beginning: do not scan the rest
    windows = (index for _, _, index in segment.windows())
    for index in segment.indexes() if segment.remembered else windows:
        i = index.find(offset)
        if i < len(index):
            return min(index.base_offset[i], offset)
    return offset
